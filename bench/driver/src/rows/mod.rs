//! The rows, by what they are about.

pub(crate) mod cost;
pub(crate) mod daemons;
pub(crate) mod files;
pub(crate) mod ingest;
pub(crate) mod questions;
pub(crate) mod start;
pub(crate) mod store;
pub(crate) mod strangers;
pub(crate) mod symbols;
pub(crate) mod throughput;
pub(crate) mod truth;
pub(crate) mod window;
