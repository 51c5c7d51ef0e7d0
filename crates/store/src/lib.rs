//! The durable log, the head, Parquet blocks and the catalog: everything that was ever pushed,
//! from the moment it is acknowledged until retention removes it.
//!
//! A profile goes to the log first ([`Store::append`] returns when it is durable), is visible in
//! the head at once, and after a minute in a block: five Parquet tables that explain themselves to
//! any other engine. A [`Snapshot`] sees each profile exactly once, wherever it is at the moment.
//!
//! This crate never sees HTTP or any push dialect, and answers no query: it hands out rows.
//!
//! ```
//! use candela_model::{Labels, Profile, ProfileSeries, ProfileType, Sample, StackId};
//! use candela_store::{Store, StoreOptions, TimeRange};
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let directory = tempfile::tempdir()?;
//! let mut options = StoreOptions::new(directory.path());
//! options.max_age = None;
//! let store = Store::open(options)?;
//! let mut profile = Profile::default();
//! let mut series = ProfileSeries::new(
//!     Labels::from_pairs([("service_name", "demo")]),
//!     "process_cpu:cpu:nanoseconds:cpu:nanoseconds".parse::<ProfileType>()?,
//! );
//! series.samples.push(Sample::new(StackId(0), 10_000_000));
//! profile.series.push(series);
//!
//! store.append("anonymous", profile).await?;
//! let snapshot = store.snapshot("anonymous", TimeRange::ALL)?;
//! assert_eq!(snapshot.heads[0].profiles[0].total, 10_000_000);
//!
//! store.shutdown().await?;
//! # Ok(())
//! # }
//! ```
#![forbid(unsafe_code)]

mod block;
mod catalog;
mod check;
mod clock;
mod codec;
mod compact;
mod data_dir;
mod documents;
mod duplicates;
mod error;
mod failpoint;
mod flush;
#[cfg(feature = "fuzzing")]
pub mod fuzzing;
mod head;
mod leftovers;
mod locations;
mod log;
mod logs;
mod loose;
mod open;
mod options;
mod recover;
mod resymbolize;
mod retention;
mod shared;
mod snapshot;
mod space;
mod status;
mod storage;
mod store;
mod sync;

pub use crate::block::Block;
pub use crate::block::BlockMeta;
pub use crate::block::FileMeta;
pub use crate::block::HeadRows;
pub use crate::block::LabelTable;
pub use crate::block::Level;
pub use crate::block::ProfileRow;
pub use crate::block::ProfileTable;
pub use crate::block::SCHEMA_VERSION;
pub use crate::block::SampleChunk;
pub use crate::block::SampleColumns;
pub use crate::block::ServiceMeta;
pub use crate::block::StackTree;
pub use crate::block::Table;
pub use crate::block::Tier;
pub use crate::block::UnsymbolizedMeta;
pub use crate::check::BlockCheck;
pub use crate::check::RebuiltCatalog;
pub use crate::check::rebuild_catalog;
pub use crate::check::verify_blocks;
pub use crate::clock::Clock;
pub use crate::clock::ManualClock;
pub use crate::clock::SystemClock;
pub use crate::compact::CUT_FRAME;
pub use crate::compact::Erased;
pub use crate::compact::Erasure;
pub use crate::compact::KEPT_LABELS;
pub use crate::documents::DocumentError;
pub use crate::documents::DocumentKind;
pub use crate::documents::DocumentMeta;
pub use crate::documents::Documents;
pub use crate::error::AppendError;
pub use crate::error::BlockError;
pub use crate::error::BlockErrorKind;
pub use crate::error::StoreError;
#[cfg(feature = "failpoints")]
pub use crate::failpoint::FAILPOINTS;
pub use crate::head::HeadProfile;
pub use crate::head::HeadTables;
pub use crate::locations::LocationRow;
pub use crate::locations::LocationTable;
pub use crate::loose::LooseProfiles;
pub use crate::options::LogPlace;
pub use crate::options::RetentionRule;
pub use crate::options::StoreOptions;
pub use crate::options::SyncMode;
pub use crate::resymbolize::BlockSymbolizer;
pub use crate::resymbolize::CodeLine;
pub use crate::resymbolize::CodePlace;
pub use crate::resymbolize::Resymbolized;
pub use crate::resymbolize::UnsymbolizedBinary;
pub use crate::snapshot::HeadView;
pub use crate::snapshot::QuarantinedBlock;
pub use crate::snapshot::Snapshot;
pub use crate::snapshot::TimeRange;
pub use crate::status::CompactionStatus;
pub use crate::status::StoreStatus;
pub use crate::status::TierStatus;
pub use crate::storage::Backend;
pub use crate::storage::GcsOptions;
pub use crate::storage::ObjectLocation;
pub use crate::storage::S3Options;
pub use crate::storage::Secret;
pub use crate::storage::check_backend;
pub use crate::store::Appended;
pub use crate::store::Store;
