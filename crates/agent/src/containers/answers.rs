//! What is known of containers, who asks for them, and what nobody knows.

use std::sync::Arc;
use std::sync::Condvar;
use std::sync::Mutex;
use std::sync::MutexGuard;
use std::sync::PoisonError;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering;
use std::time::Instant;

use hashbrown::HashMap;

use crate::containers::facts::ContainerFacts;

/// Containers that are remembered. A host runs some hundreds at a time.
const MOST_CONTAINERS: usize = 4096;

/// What there is about a container.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Finding {
    Known(Arc<ContainerFacts>),
    /// What is known is not all; they may be asked again at this time (CLOCK_MONOTONIC, nanoseconds).
    Partly {
        facts: Arc<ContainerFacts>,
        again_ns: u64,
    },
    /// The runtimes are being asked.
    Awaited,
    /// Nobody tells; they may be asked again at this time.
    Unknown {
        again_ns: u64,
    },
}

/// Answers by the container's id.
#[derive(Debug, Default)]
pub(super) struct Answers {
    by_id: Mutex<HashMap<String, Finding>>,
    arrived: Condvar,
    count: AtomicU64,
}

// === impl Answers ===

impl Answers {
    /// What there is about a container, unless nobody knew it and may be asked again.
    pub(super) fn find(&self, id: &str, now_ns: u64) -> Option<Finding> {
        match self.lock().get(id) {
            Some(Finding::Unknown { again_ns }) if *again_ns <= now_ns => None,
            found => found.cloned(),
        }
    }

    /// Notes what there is until who is being asked has answered.
    pub(super) fn ask(&self, id: &str, meanwhile: Finding) {
        let mut by_id = self.lock();
        if by_id.len() >= MOST_CONTAINERS {
            // What still runs is asked for again when it is next met.
            by_id.retain(|_, finding| *finding == Finding::Awaited);
        }
        by_id.insert(id.to_owned(), meanwhile);
    }

    pub(super) fn set(&self, id: &str, finding: Finding) {
        self.lock().insert(id.to_owned(), finding);
        self.count.fetch_add(1, Ordering::Release);
        self.arrived.notify_all();
    }

    /// How many answers there were so far.
    pub(super) fn count(&self) -> u64 {
        self.count.load(Ordering::Acquire)
    }

    /// Waits until a container is not awaited any more.
    pub(super) fn wait(&self, id: &str, deadline: Instant) -> Option<Finding> {
        let left = deadline.saturating_duration_since(Instant::now());
        let waited = self.arrived.wait_timeout_while(self.lock(), left, |by_id| {
            by_id.get(id) == Some(&Finding::Awaited)
        });
        let (by_id, _) = waited.unwrap_or_else(PoisonError::into_inner);
        by_id.get(id).cloned()
    }

    /// The map is whole whoever panicked.
    fn lock(&self) -> MutexGuard<'_, HashMap<String, Finding>> {
        self.by_id.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_nobody_knows_is_asked_again_later() {
        let answers = Answers::default();
        assert_eq!(answers.find("a", 0), None);
        answers.ask("a", Finding::Awaited);
        assert_eq!(answers.find("a", 0), Some(Finding::Awaited));
        let unknown = Finding::Unknown { again_ns: 100 };
        answers.set("a", unknown.clone());
        assert_eq!(answers.find("a", 99), Some(unknown));
        assert_eq!(answers.find("a", 100), None);
        assert_eq!(answers.count(), 1);
    }

    #[test]
    fn the_memory_is_bounded() {
        let answers = Answers::default();
        for number in 0..=MOST_CONTAINERS {
            let id = number.to_string();
            answers.ask(&id, Finding::Awaited);
            if number > 0 {
                answers.set(&id, Finding::Known(Arc::default()));
            }
        }
        assert_eq!(answers.lock().len(), 2, "what is awaited is kept");
        assert_eq!(answers.find("0", 0), Some(Finding::Awaited));
    }
}
