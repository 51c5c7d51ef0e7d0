//! What needs this host: its kernel, its programs, a browser.

mod allocations;
mod faults;
mod forks;
mod growth;
mod life;
mod off_cpu;
mod recorded_twins;
mod stacks;
mod switches;
mod tables;
mod twins;
