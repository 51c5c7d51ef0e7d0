//! Names of JIT-compiled code from `/tmp/perf-PID.map`, which V8, the JVM, CPython and others
//! append to as they compile.

mod intervals;
mod reader;

pub use intervals::{JitSymbol, PerfMap};
pub use reader::{PerfMapReader, Refresh};
