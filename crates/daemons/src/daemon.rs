//! What a daemon is, to those that start and stop it.

use std::fmt;
use std::sync::Arc;
use std::sync::mpsc::Receiver;

use candela_fleet::ObservabilityDaemon;

use crate::clock::Clock;
use crate::error::DaemonError;
use crate::notes::Notes;
use crate::outbox::Outbox;
use crate::stop::Stop;

/// Something that fills an outbox.
pub trait Daemon: Send {
    /// Works until it is stopped; on a thread of its own.
    ///
    /// # Errors
    /// Why it cannot go on. It is tried again later unless [`DaemonError::is_permanent`].
    fn run(self: Box<Self>, context: DaemonContext) -> Result<(), DaemonError>;
}

/// Makes daemons of what a document says.
pub trait DaemonKinds: Send + Sync {
    /// The daemon of an element, not started.
    ///
    /// # Errors
    /// [`DaemonError::Impossible`] for what this build or host never does.
    fn create(&self, daemon: &ObservabilityDaemon) -> Result<Box<dyn Daemon>, DaemonError>;
}

/// What a daemon works with.
pub struct DaemonContext {
    /// Where its files go.
    pub outbox: Arc<Outbox>,
    /// The time.
    pub clock: Arc<dyn Clock>,
    /// Set when it is to end.
    pub stop: Stop,
    /// To be called once it is at work.
    pub started: Box<dyn Fn() + Send>,
    /// What it says of itself.
    pub notes: Notes,
    /// To be called when something does not work although it runs, and with `None` when it works again.
    pub notice: Box<dyn Fn(Option<String>) + Send>,
    /// Snapshots that somebody asks for.
    pub requests: Receiver<SnapshotRequest>,
}

/// Somebody wants a snapshot.
pub struct SnapshotRequest {
    /// Who waits for it.
    pub answer: SnapshotAnswer,
}

/// Takes the name of the file that waits for its upload, or why there is none.
pub type SnapshotAnswer = Box<dyn FnOnce(Result<String, String>) + Send>;

impl fmt::Debug for DaemonContext {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut debug = formatter.debug_struct("DaemonContext");
        debug.field("outbox", &self.outbox.root());
        debug.finish_non_exhaustive()
    }
}

impl fmt::Debug for SnapshotRequest {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("SnapshotRequest")
            .finish_non_exhaustive()
    }
}
