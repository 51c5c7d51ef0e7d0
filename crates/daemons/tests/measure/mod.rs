//! What compares times and shares of a live machine: with sharp bounds, on a quiet host.

mod perf_collector;
mod perf_tool;
mod perfetto;
mod perfetto_decoded;
