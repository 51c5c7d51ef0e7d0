//! The small C-ABI library that samples allocations inside a process.
//!
//! This crate is compiled twice. As `libcandela-preload.so`, by the build script, it stands between a
//! program and its `malloc`: loaded by `LD_PRELOAD`, it counts the bytes that each thread allocates and picks
//! allocations as a Poisson process over bytes would, one in [`DEFAULT_INTERVAL`] on average. A picked
//! allocation, and later the end of its life, is told by a call of a function that does nothing
//! ([`probes`]): whoever wants to know attaches a uprobe there. Nothing is written, sent or kept for nobody.
//!
//! As a Rust library it is that file's bytes ([`LIBRARY`]), the names in it, and the same code for tests.
//!
//! Inside a foreign `malloc` almost nothing is allowed, so the library never allocates, locks, panics,
//! or asks for thread-local storage that somebody must allocate. All its state is atomic and bounded; a fork at any
//! moment leaves both processes with a state that works.

#![no_std]

#[cfg(test)]
extern crate std;

mod arena;
mod distance;
mod environment;
pub mod hooks;
mod live;
mod next;
pub mod probes;
mod sampling;
mod system;
mod thread;

/// How many bytes lie between two sampled ones on average, unless [`INTERVAL_VARIABLE`] says otherwise.
pub const DEFAULT_INTERVAL: u64 = 512 * 1024;

/// The environment variable for another interval, in bytes; 0 is every allocation.
pub const INTERVAL_VARIABLE: &str = "CANDELA_ALLOC_INTERVAL";

/// The environment variable for a seed, a number that is not 0: the same program then gives the same samples.
pub const SEED_VARIABLE: &str = "CANDELA_ALLOC_SEED";

/// The file name that the library should have: its frames are told by it.
pub const FILE_NAME: &str = "libcandela-preload.so";

/// The library, to be written to a file and named in `LD_PRELOAD`.
#[cfg(not(candela_preload))]
pub static LIBRARY: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/libcandela-preload.so"));

/// Nothing here can panic; if it did, the program that we are a guest in should not go on with a broken heap.
#[cfg(candela_preload)]
#[panic_handler]
fn panic(_: &core::panic::PanicInfo<'_>) -> ! {
    system::abort()
}
