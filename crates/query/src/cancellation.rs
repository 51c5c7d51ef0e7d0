//! Stopping queries whose answers nobody waits for.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering;

/// Says that nobody waits for an answer any more. Clones are one and the same.
#[derive(Clone, Debug, Default)]
pub struct Cancellation {
    is_cancelled: Arc<AtomicBool>,
}

/// Cancels when it is dropped: whoever waits for an answer holds it.
#[derive(Debug)]
#[must_use = "what is not held cancels at once"]
pub struct CancelOnDrop(Cancellation);

impl Cancellation {
    /// Queries that look at it end soon: a look costs nothing, so they look at each chunk of
    /// samples.
    pub fn cancel(&self) {
        self.is_cancelled.store(true, Ordering::Relaxed);
    }

    /// Whether it was.
    #[inline]
    #[must_use]
    pub fn is_cancelled(&self) -> bool {
        self.is_cancelled.load(Ordering::Relaxed)
    }

    /// What cancels when it goes out of scope.
    pub fn on_drop(&self) -> CancelOnDrop {
        CancelOnDrop(self.clone())
    }
}

impl Drop for CancelOnDrop {
    fn drop(&mut self) {
        self.0.cancel();
    }
}
