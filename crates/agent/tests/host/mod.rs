//! What needs this host: its kernel, its programs, a browser.

mod allocations;
pub(crate) mod containers;
mod continuous;
pub(crate) mod continuous_kinds;
mod faults;
mod filters;
mod go_heaps;
pub(crate) mod kernel_events;
pub(crate) mod labels;
pub(crate) mod languages;
pub(crate) mod life;
pub(crate) mod locks;
mod namespaces;
mod runtimes;
mod services;
pub(crate) mod shares;
mod spans;
mod strangers;
mod wakers;
