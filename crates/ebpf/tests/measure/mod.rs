//! What compares the sums of samples with what programs count: with sharp bounds, on a quiet host.

mod forks;
mod growth;
mod off_cpu;
