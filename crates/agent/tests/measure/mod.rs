//! What compares clocks, shares, losses and memory of a live machine: with sharp bounds, on a quiet host.

mod budget;
mod off_cpu;
mod storms;
