//! Follows the document: daemons of it run, others do not, and what they leave is uploaded.

mod driver;
mod last_document;
mod outlets;
mod own_labels;
mod reconciler;
mod reporter;
mod snapshots;
mod source;
mod state;

pub use crate::supervisor::driver::Parts;
pub use crate::supervisor::driver::Supervisor;
pub use crate::supervisor::driver::SupervisorHandle;
pub use crate::supervisor::driver::SupervisorOptions;
pub use crate::supervisor::outlets::Connect;
pub use crate::supervisor::reconciler::RestartWaits;
pub use crate::supervisor::source::DocumentSource;
pub use crate::supervisor::source::ReportSink;
pub use crate::supervisor::source::SourceEvent;
pub use crate::supervisor::state::DaemonReport;
pub use crate::supervisor::state::DaemonState;
pub use crate::supervisor::state::NodeReport;
pub use crate::supervisor::state::PodIdentity;
pub use crate::supervisor::state::SnapshotReport;
pub use crate::supervisor::state::SnapshotStatus;
