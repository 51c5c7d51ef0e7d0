//! What can go wrong while an object file is opened or its symbols are read.

use crate::foreign::Refusal;
use std::io;
use std::path::PathBuf;

/// Why an object file, a perf map or the kernel's symbols could not be read.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The file could not be opened, mapped or read.
    #[error("cannot read {path}: {source}")]
    Io {
        /// The file as the caller named it.
        path: PathBuf,
        /// The system's reason.
        source: io::Error,
    },
    /// The path names a directory, a pipe, a socket or a device.
    #[error("{path} is not a regular file, so it holds no symbols")]
    NotRegularFile {
        /// The file as the caller named it.
        path: PathBuf,
    },
    /// The bytes are no ELF file that can be parsed.
    #[error("{path} is not a readable ELF file: {reason}")]
    NotElf {
        /// The file as the caller named it.
        path: PathBuf,
        /// What the parser stumbled over.
        reason: String,
    },
    /// `/proc/kallsyms` shows zero for every address.
    #[error(
        "the kernel hides its symbol addresses (kptr_restrict is {kptr_restrict}); run as root or with \
         CAP_SYSLOG, or set kernel.kptr_restrict=0 and kernel.perf_event_paranoid=1"
    )]
    KernelAddressesHidden {
        /// The value of `/proc/sys/kernel/kptr_restrict`, or `unknown`.
        kptr_restrict: String,
    },
    /// Somebody else chose the file, and it was refused.
    #[error("{path} is not read: {refusal}")]
    Refused {
        /// The file as the process knows it.
        path: PathBuf,
        /// Why it was not opened.
        refusal: Refusal,
    },
}

impl Error {
    pub(crate) fn io(path: impl Into<PathBuf>, source: io::Error) -> Self {
        Self::Io {
            path: path.into(),
            source,
        }
    }

    pub(crate) fn refused(path: impl Into<PathBuf>, refusal: Refusal) -> Self {
        let path = path.into();
        match refusal {
            Refusal::System(source) => Self::Io { path, source },
            refusal => Self::Refused { path, refusal },
        }
    }

    pub(crate) fn not_elf(path: impl Into<PathBuf>, reason: &impl ToString) -> Self {
        Self::NotElf {
            path: path.into(),
            reason: reason.to_string(),
        }
    }
}
