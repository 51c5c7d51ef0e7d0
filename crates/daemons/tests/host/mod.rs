//! What needs this host: its kernel, its programs, a browser.

pub(crate) mod perf_collector;
pub(crate) mod perf_tool;
pub(crate) mod perfetto;
pub(crate) mod perfetto_decoded;
mod traced;
mod traced_failures;
mod trigger_port;
