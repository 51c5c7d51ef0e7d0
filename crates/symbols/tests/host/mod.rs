//! Real programs, compiled while the test runs, symbolized and compared with what other tools say
//! about them.

#![expect(clippy::print_stderr, reason = "a skipped test says why")]

mod archive;
mod cache;
mod compare;
mod debug_files;
mod debuginfod;
#[cfg(feature = "disassembly")]
mod disassembly;
mod equivalence;
mod foreign;
mod go;
mod jit;
mod native;
mod workshop;
