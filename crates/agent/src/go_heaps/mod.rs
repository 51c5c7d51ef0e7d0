//! Heap profiles of Go programs, read from outside: each has one, which its runtime keeps for `runtime/pprof`.
//!
//! Nothing is written to a process and nothing waits in it. What is told is what the runtime itself would tell:
//! the heap as of its last garbage collections (`runtime/mprof.go`).

mod bucket;
mod discovery;
mod error;
mod estimate;
mod memory;
mod process;
mod reading;
mod room;
mod source;
mod stacks;
mod watch;

pub use self::error::GoHeapError;
pub(crate) use self::source::GoHeaps;
pub(crate) use self::watch::GoHeapWatch;
