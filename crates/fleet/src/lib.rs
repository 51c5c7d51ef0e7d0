//! The fleet's configuration: one JSON document that says which daemons run on every node.
//!
//! The document's keys and values are those of a published product, so that its files are taken as
//! they are. Reading it checks it against all rules, and tells all that is wrong at once, each with its
//! path; nothing is dropped unseen.
//!
//! | question | answer |
//! |---|---|
//! | is this text a document, and what does it say? | [`FleetDocument::read`] |
//! | what is wrong, and where? | [`Problems`], of [`Problem`] |
//! | what was added, and what is hardly meant so? | [`Note`] |
//! | how is it written? | [`FleetDocument`] as text |
//! | what does a value that is absent mean? | methods of [`PerfCollector`], [`PerfettoDaemon`], [`ObservabilityDaemon`] |
//! | what would applying it change? | [`DocumentDiff::between`] |
//! | which daemons start, change, stop? | [`changes`], [`wanted_daemons`] |
//! | what does a Perfetto configuration ask for? | [`TraceConfig`], read by [`text_proto`] |
//! | how much is `64Mi`? | [`Quantity`] |
//! | what runs it in Kubernetes? | `kubernetes::Manifest`, in builds with the feature `kubernetes` |
//!
//! This crate sees no network, no file and no clock.
//!
//! ```
//! use candela_fleet::{DocumentDiff, FleetDocument};
//!
//! let document = |hz: u32| {
//!     let collector = format!(r#"{{"exportTo": "s3://profiles", "perfPollingFrequencyHz": {hz}}}"#);
//!     format!(r#"{{"observabilityDaemons": [{{"perfCollector": {collector}}}]}}"#)
//! };
//! let old = FleetDocument::read(&document(99))?.document;
//! let new = FleetDocument::read(&document(49))?.document;
//! assert_eq!(
//!     DocumentDiff::between(&old, &new).to_string(),
//!     "@ [\"observability_daemons\",0,\"perf_collector\",\"perf_polling_frequency_hz\"]\n- 99\n+ 49",
//! );
//! let problems = FleetDocument::read(&document(0)).unwrap_err();
//! assert_eq!(
//!     problems.to_string(),
//!     "observability_daemons[0].perf_collector.perf_polling_frequency_hz: \
//!      0 is outside 1 to 1000 Hz; 99 is usual, 49 costs half",
//! );
//! # Ok::<(), candela_fleet::Problems>(())
//! ```
#![forbid(unsafe_code)]

mod cross_checks;
mod daemon;
mod destination;
mod diff;
mod document;
mod fields;
mod identity;
mod json;
#[cfg(feature = "kubernetes")]
pub mod kubernetes;
mod list_alignment;
mod object;
mod path;
mod perf_collector;
mod perfetto_daemon;
mod process_filter;
mod quantity;
mod report;
mod resources;
mod spelling;
pub mod text_proto;
pub mod trace_config;

pub use crate::daemon::DaemonBody;
pub use crate::daemon::ObservabilityDaemon;
pub use crate::destination::BucketKind;
pub use crate::destination::Destination;
pub use crate::diff::Difference;
pub use crate::diff::DocumentDiff;
pub use crate::document::AcceptedDocument;
pub use crate::document::CommonPersistenceSpecs;
pub use crate::document::FleetDocument;
pub use crate::document::MOST_DAEMONS;
pub use crate::document::MOST_DOCUMENT_BYTES;
pub use crate::identity::DaemonId;
pub use crate::identity::DaemonRevision;
pub use crate::identity::FleetChanges;
pub use crate::identity::WantedDaemon;
pub use crate::identity::changes;
pub use crate::identity::wanted_daemons;
pub use crate::json::Json;
pub use crate::path::DocumentPath;
pub use crate::path::PathSegment;
pub use crate::perf_collector::PerfCollector;
pub use crate::perf_collector::Profiler;
pub use crate::perfetto_daemon::PerfettoDaemon;
pub use crate::perfetto_daemon::PerfettoEngine;
pub use crate::perfetto_daemon::PerfettoTrigger;
pub use crate::process_filter::ProcessFacts;
pub use crate::process_filter::ProcessFilter;
pub use crate::quantity::Quantity;
pub use crate::quantity::QuantityError;
pub use crate::report::Note;
pub use crate::report::NoteKind;
pub use crate::report::Problem;
pub use crate::report::Problems;
pub use crate::report::TextPosition;
pub use crate::resources::DEFAULT_CPU_REQUEST;
pub use crate::resources::DEFAULT_MEMORY_REQUEST;
pub use crate::resources::Resources;
pub use crate::trace_config::TraceConfig;
