//! The commands, as whoever types them sees them.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on should stop")]

mod access;
mod buckets;
mod command_line;
mod config_import;
mod configuration_page;
mod crash;
mod deploy;
mod files;
mod host;
mod infra;
mod infra_buckets;
mod kills;
mod measure;
#[expect(clippy::print_stdout, reason = "a test that skips says why")]
mod moto_proxy;
mod partial;
mod query;
mod scripts;
mod sql;
mod sql_files;
mod store;
mod support;

#[cfg(feature = "server")]
#[expect(dead_code, reason = "the tests of the store use all of it")]
#[path = "../../store/tests/buckets/gcs.rs"]
mod gcs;
#[cfg(feature = "server")]
#[expect(dead_code, reason = "the tests of the store use all of it")]
#[path = "../../store/tests/buckets/s3.rs"]
mod s3;
#[cfg(feature = "server")]
#[path = "../../store/tests/buckets/serve.rs"]
mod serve;
#[path = "support/users.rs"]
mod users;
