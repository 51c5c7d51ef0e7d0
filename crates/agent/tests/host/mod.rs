//! What needs this host: its kernel, its programs, a browser.

mod allocations;
mod containers;
mod continuous;
mod continuous_kinds;
mod faults;
mod filters;
mod go_heaps;
mod kernel_events;
mod labels;
mod languages;
mod life;
mod locks;
mod namespaces;
mod runtimes;
mod services;
mod shares;
mod spans;
mod wakers;
