//! What needs this host: programs that write profiles, and that read them.

mod callgrind_live;
mod legacy_live;
mod perf_data_live;
