//! `/api/v1`: what is asked.

mod columns;
pub(crate) mod diff;
mod errors;
pub(crate) mod flamegraph;
mod head;
pub(crate) mod heatmap;
pub(crate) mod labels;
pub(crate) mod pprof;
mod selection;
pub(crate) mod series;
pub(crate) mod services;
pub(crate) mod status;
pub(crate) mod top;
pub(crate) mod tree;
