//! What compares clocks of a live machine: with sharp bounds, on a quiet host.

mod wall;
