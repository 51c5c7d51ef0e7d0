//! Read-only SQL over the profiles of one tenant: the five tables of its blocks, and what is still
//! in memory, as DataFusion tables.
//!
//! A query sees one snapshot, so each profile once, and nothing but the tenant's own. It may read
//! and compute, within a budget of memory, time, rows and bytes; it may not change anything, and no
//! file, address or table other than these five is within its reach.
//!
//! The default build answers every other question without this crate: adding integers by stack id
//! needs no query framework.
//!
//! ```
//! use candela_sql::SqlEngine;
//! use candela_sql::SqlOptions;
//! use candela_store::Store;
//! use candela_store::StoreOptions;
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let directory = tempfile::tempdir()?;
//! let store = Store::open(StoreOptions::new(directory.path()))?;
//! let engine = SqlEngine::new(store, SqlOptions::default());
//! let answer = engine.query("anonymous", "SELECT count(*) AS n FROM samples").await?;
//! assert_eq!(answer.to_csv()?, b"n\n0\n");
//! # Ok(())
//! # }
//! ```
#![forbid(unsafe_code)]

mod answer;
mod content;
mod counted;
mod engine;
mod error;
mod functions;
mod growing;
mod growing_syntax;
mod literals;
mod made_texts;
mod options;
mod pruning;
mod registry;
mod session;
mod statement;
mod table;
mod threads;
mod wrapping;

pub use crate::answer::SqlAnswer;
pub use crate::engine::SqlEngine;
pub use crate::error::SqlError;
pub use crate::options::SqlOptions;
