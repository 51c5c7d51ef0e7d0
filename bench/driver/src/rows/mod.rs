//! The rows, by what they are about.

pub(crate) mod cost;
pub(crate) mod ingest;
pub(crate) mod start;
pub(crate) mod store;
pub(crate) mod truth;
