//! What compares clocks, shares, losses and memory of a live machine: with sharp bounds, on a quiet host.

mod budget;
mod containers;
mod continuous_kinds;
mod kernel_events;
mod labels;
mod life;
mod locks;
mod off_cpu;
mod storms;
mod truth;
