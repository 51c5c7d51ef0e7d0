//! What compares clocks, shares and counts of a live machine: with sharp bounds, on a quiet host.

mod clients;
mod doctor_frames;
mod on_demand;
mod shares;
mod shutdown;
mod symbols;
mod wall;
mod window;
mod without_bpf;
