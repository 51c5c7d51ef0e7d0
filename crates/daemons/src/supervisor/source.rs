//! Where documents come from and reports go: what a client of the server implements.

use candela_fleet::FleetDocument;

use crate::error::ServerError;
use crate::stop::Stop;
use crate::supervisor::state::NodeReport;

/// What the server says.
#[derive(Clone, Debug, PartialEq)]
pub enum SourceEvent {
    /// A document holds from now on.
    Document {
        /// Its number, which grows.
        version: u64,
        /// The document.
        document: Box<FleetDocument>,
    },
    /// Somebody wants a snapshot now.
    Snapshot {
        /// The number of the wish.
        id: String,
        /// Which daemon's.
        trigger_name: String,
    },
}

/// Tells what the server says; on a thread of its own.
pub trait DocumentSource: Send {
    /// Waits for the next thing. It may come long after `stop` was set: nobody waits for this thread.
    ///
    /// # Errors
    /// [`ServerError`]; it is asked again, after a while.
    fn next(&mut self, stop: &Stop) -> Result<SourceEvent, ServerError>;
}

/// Tells the server; on another thread.
pub trait ReportSink: Send {
    /// Hands a report over. `Ok` means that the server has it, with its snapshots.
    ///
    /// # Errors
    /// [`ServerError`]; it is tried again with what is true by then.
    fn report(&mut self, report: &NodeReport) -> Result<(), ServerError>;
}
