//! What the fleet's document asks of one node: daemons, their files, their uploads.
//!
//! ```text
//! server ─ document ─► supervisor ─ starts, changes, stops ─► daemons ─ files ─► outbox ─ uploads ─► bucket
//!    ▲                     │
//!    └────── reports ──────┘
//! ```
//!
//! | question | answer |
//! |---|---|
//! | who follows the document, and tells how it goes? | [`Supervisor`] |
//! | where does the document come from? | [`DocumentSource`]: a server, by [`FleetStream`] |
//! | where do reports go? | [`ReportSink`]: the server, by [`FleetReports`] |
//! | what is a daemon? | [`Daemon`], made by [`DaemonKinds`]; those that there are by [`NodeKinds`] |
//! | who writes dumps of samples? | [`DumpDaemon`], or [`PerfDaemon`] by the host's perf |
//! | who takes snapshots of traces? | [`TraceDaemon`], of a [`TraceEngine`]; asked by the server, or at a port of [`TriggerPortOptions`] |
//! | where do files wait, and for how long? | [`Outbox`] |
//! | what does a daemon say of its limits? | [`Notes`] |
//! | how do they get into the store? | [`ProfileSink`]: the server, by [`FleetProfiles`] |
//! | how do they get into the bucket? | [`Uploader`], to a [`Bucket`] |
//! | would they? | [`check_bucket`] |
//!
//! This crate sees no storage and no queries, and no routes of a server.
#![forbid(unsafe_code)]

mod backoff;
mod clock;
mod daemon;
mod error;
mod kinds;
mod limits;
mod notes;
mod outbox;
mod perf_collector;
mod perf_tool;
mod perfetto;
mod server;
mod stop;
mod store;
mod supervisor;
mod upload;

pub use crate::backoff::Backoff;
pub use crate::clock::Clock;
pub use crate::clock::ManualClock;
pub use crate::clock::SystemClock;
pub use crate::daemon::Daemon;
pub use crate::daemon::DaemonContext;
pub use crate::daemon::DaemonKinds;
pub use crate::daemon::SnapshotAnswer;
pub use crate::daemon::SnapshotRequest;
pub use crate::error::BucketCheckError;
pub use crate::error::DaemonError;
pub use crate::error::OutboxError;
pub use crate::error::ServerError;
pub use crate::error::UploadError;
pub use crate::kinds::NodeKinds;
pub use crate::notes::Notes;
pub use crate::outbox::DropReason;
pub use crate::outbox::Outbox;
pub use crate::outbox::OutboxCounts;
pub use crate::outbox::OutboxFile;
pub use crate::outbox::OutboxLimits;
pub use crate::outbox::WaitingFile;
pub use crate::perf_collector::DumpDaemon;
pub use crate::perf_tool::PerfDaemon;
pub use crate::perfetto::TRIGGER_PORT;
pub use crate::perfetto::TraceDaemon;
pub use crate::perfetto::TraceEngine;
#[cfg(feature = "perfetto")]
pub use crate::perfetto::TracedError;
pub use crate::perfetto::TriggerPortError;
pub use crate::perfetto::TriggerPortOptions;
pub use crate::perfetto::WantedSnapshot;
pub use crate::server::FleetProfiles;
pub use crate::server::FleetReports;
pub use crate::server::FleetStream;
pub use crate::server::ServerOptions;
pub use crate::stop::Stop;
pub use crate::store::ProfileSink;
pub use crate::supervisor::Connect;
pub use crate::supervisor::DaemonReport;
pub use crate::supervisor::DaemonState;
pub use crate::supervisor::DocumentSource;
pub use crate::supervisor::NodeReport;
pub use crate::supervisor::Parts as SupervisorParts;
pub use crate::supervisor::PodIdentity;
pub use crate::supervisor::ReportSink;
pub use crate::supervisor::RestartWaits;
pub use crate::supervisor::SnapshotReport;
pub use crate::supervisor::SnapshotStatus;
pub use crate::supervisor::SourceEvent;
pub use crate::supervisor::Supervisor;
pub use crate::supervisor::SupervisorHandle;
pub use crate::supervisor::SupervisorOptions;
pub use crate::upload::Bucket;
pub use crate::upload::BucketCheck;
pub use crate::upload::BucketOptions;
pub use crate::upload::ObjectSink;
pub use crate::upload::StaticKeys;
pub use crate::upload::Turn;
pub use crate::upload::UploadStatus;
pub use crate::upload::Uploader;
pub use crate::upload::UploaderHandle;
pub use crate::upload::check_bucket;
