//! Names of real programs.

mod host;
