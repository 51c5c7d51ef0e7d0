//! `/api/v1`: what is asked.

pub(crate) mod asked;
pub(crate) mod chart;
mod code;
mod comparison;
pub(crate) mod data;
pub(crate) mod diff;
mod diff_answer;
pub(crate) mod disassembly;
pub(crate) mod document;
pub(crate) mod errors;
pub(crate) mod flamegraph;
pub(crate) mod head;
pub(crate) mod heatmap;
pub(crate) mod labels;
pub(crate) mod next_profile;
pub(crate) mod pprof;
pub(crate) mod selection;
pub(crate) mod series;
pub(crate) mod services;
pub(crate) mod source;
#[cfg(feature = "sql")]
pub(crate) mod sql;
#[cfg(not(feature = "sql"))]
#[path = "no_sql.rs"]
pub(crate) mod sql;
pub(crate) mod status;
pub(crate) mod symbols;
pub(crate) mod top;
pub(crate) mod tree;

pub(crate) use self::errors::CANCELLED;
pub(crate) use self::head::milliseconds;
