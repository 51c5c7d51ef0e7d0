//! What needs this host: its kernel, its programs, a browser.

mod allocations;
mod faults;
pub(crate) mod forks;
mod life;
pub(crate) mod off_cpu;
mod stacks;
mod switches;
mod tables;
