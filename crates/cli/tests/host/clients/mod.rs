//! Published clients, from their registries, against the real server: each profiles a small real
//! program, whose hot function is then found by query.
//!
//! Clients are installed by their own package managers, at the versions of the lock files below
//! `tests/programs`, into a cache that the next run finds again: `$CANDELA_TEST_CACHE`, or
//! `~/.cache/candela/clients`.
#![expect(clippy::print_stdout, reason = "a test that skips says why")]

pub(crate) mod asked;
mod cache;
mod client;
mod connect;
pub(crate) mod go;
pub(crate) mod java;
pub(crate) mod node;
mod otlp;
mod pages;
mod pprof;
pub(crate) mod python;
pub(crate) mod rust;
