//! Dumps and snapshots into the store of the server, beside the bucket: the same moment can be opened there and compared.
//!
//! The bucket comes first: this reads what waits or stays on the node, on a thread of its own, and nothing waits for it.
//! What the server does not take is counted and not kept: the bucket has it.

mod feed;
mod series;

pub(crate) use crate::store::feed::StoreFeed;

use crate::error::ServerError;

/// Where profiles are stored.
pub trait ProfileSink: Send {
    /// Stores a profile, in any format that a server tells by its content. `Ok` means that it is durable.
    ///
    /// # Errors
    /// [`ServerError`].
    fn store(&mut self, profile: &[u8]) -> Result<(), ServerError>;
}

/// What became of the files of a daemon.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct StoreCounts {
    pub(crate) stored: u64,
    pub(crate) lost: u64,
}
