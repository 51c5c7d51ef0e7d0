//! Commands over profile files: `convert`, `push`, `open`, `diff`, and reading files for `query`.

pub(crate) mod convert;
pub(crate) mod diff;
pub(crate) mod input;
#[cfg(feature = "server")]
pub(crate) mod open;
pub(crate) mod push;
mod samples;
mod served;
#[cfg(feature = "server")]
pub(crate) mod serving;
mod side;
