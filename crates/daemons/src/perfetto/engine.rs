//! What records, whatever it is.

use std::time::Duration;

use crate::error::DaemonError;

/// Records all the time, and gives copies of what it has.
pub trait TraceEngine: Send {
    /// Goes on recording for so long at most.
    ///
    /// # Errors
    /// When it cannot go on.
    fn turn(&mut self, timeout: Duration) -> Result<(), DaemonError>;

    /// Whether it records by now. Until then triggers wait.
    fn is_recording(&self) -> bool;

    /// A snapshot is wanted from now on.
    ///
    /// # Errors
    /// When there will be none.
    fn trigger(&mut self, wanted: &WantedSnapshot) -> Result<(), DaemonError>;

    /// Whether everything is there that is to be in a snapshot.
    fn is_whole(&self, wanted: &WantedSnapshot) -> bool;

    /// The packets of a snapshot that was triggered, with what there is of it. Recording goes on.
    ///
    /// # Errors
    /// When there is none.
    fn snapshot(&mut self, wanted: &WantedSnapshot) -> Result<Vec<u8>, DaemonError>;

    /// Ends it.
    ///
    /// # Errors
    /// When it did not end well.
    fn finish(self: Box<Self>) -> Result<(), DaemonError>;
}

/// A snapshot that somebody wants.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WantedSnapshot {
    /// Which: no two of an engine have the same.
    pub number: u64,
    /// When it was triggered, nanoseconds since the epoch.
    pub triggered_ns: u64,
    /// Until when it is to have what happens, nanoseconds since the epoch.
    pub until_ns: i64,
}
