//! What needs this host: its kernel, its programs, a browser.

mod perf_collector;
mod perf_tool;
mod perfetto;
mod perfetto_decoded;
mod traced;
mod traced_failures;
mod trigger_port;
