//! Why the heap of a Go program is not told.

use std::io;

/// Why the heap profile of a Go program cannot be had; each completes the sentence "it is a Go program, but …".
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum GoHeapError {
    /// The kernel does not let us read it, or it has ended.
    #[error("its memory cannot be read: {0}; run as root, or with CAP_SYS_PTRACE, while it runs")]
    Unreadable(#[from] io::Error),
    /// Neither symbols nor code tell where the profile is.
    #[error(
        "it is stripped, and its version of Go is none whose heap profile is known (1.18 to 1.26); build it without -ldflags=-s"
    )]
    Unknown,
    /// `runtime.MemProfileRate` is 0.
    #[error(
        "it profiles no memory (runtime.MemProfileRate is 0); the linker turns that off in programs without \
         runtime/pprof: import net/http/pprof in it, or runtime/pprof and use it"
    )]
    Off,
    /// What should be a bucket is none.
    #[error("its heap profile is laid out in another way than those of Go 1.18 to 1.26")]
    Unlike,
    /// More is not read.
    #[error(
        "its heap profile has more than {most} places that allocate, or so many with deep stacks: there is no room for \
         more, of one program or of all"
    )]
    TooLarge {
        /// So many are read.
        most: usize,
    },
    /// There are too many.
    #[error("{most} Go programs are read already, which is as many as are read at a time")]
    TooMany {
        /// So many are read.
        most: usize,
    },
}

impl GoHeapError {
    /// Whether more privileges would help.
    pub(crate) fn is_permission(&self) -> bool {
        matches!(self, Self::Unreadable(error) if error.kind() == io::ErrorKind::PermissionDenied)
    }
}
