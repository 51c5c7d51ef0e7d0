//! Who waits for profiles hears of what was stored.

use std::sync::Arc;
use std::sync::Mutex;
use std::sync::PoisonError;

use candela_model::Profile;
use candela_model::SERVICE_NAME_LABEL;
use candela_query::ProfileKey;
use tokio::sync::broadcast;

/// Arrivals that a waiter may be behind: it looks at one in a millisecond. Beyond this it misses some and waits on.
const QUEUE: usize = 256;

/// Tells of profiles as they are stored. Without anybody who waits nothing is done.
#[derive(Debug)]
pub(crate) struct Arrivals {
    /// None once the server ends.
    sender: Mutex<Option<broadcast::Sender<Arc<Arrival>>>>,
}

/// What was stored together.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Arrival {
    pub(crate) tenant: String,
    pub(crate) profiles: Vec<Arrived>,
}

/// One stored profile.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Arrived {
    pub(crate) key: ProfileKey,
    pub(crate) service: String,
}

// === impl Arrivals ===

impl Default for Arrivals {
    fn default() -> Self {
        let (sender, _) = broadcast::channel(QUEUE);
        Self {
            sender: Mutex::new(Some(sender)),
        }
    }
}

impl Arrivals {
    /// What will be stored from now on; it is closed when the server ends.
    pub(crate) fn listen(&self) -> broadcast::Receiver<Arc<Arrival>> {
        match &*self.lock() {
            Some(sender) => sender.subscribe(),
            None => broadcast::channel(1).1,
        }
    }

    /// What is to be told of a profile once it is stored; `None` where nobody waits.
    pub(crate) fn announcement(&self, tenant: &str, profile: &Profile) -> Option<Arrival> {
        let is_awaited = self.lock().as_ref()?.receiver_count() > 0;
        is_awaited.then(|| Arrival {
            tenant: tenant.to_owned(),
            profiles: profile
                .series
                .iter()
                .map(|series| Arrived {
                    key: ProfileKey::new(
                        tenant,
                        &series.labels,
                        &series.profile_type,
                        series.start_ns,
                    ),
                    service: series
                        .labels
                        .get(SERVICE_NAME_LABEL)
                        .unwrap_or_default()
                        .to_owned(),
                })
                .collect(),
        })
    }

    pub(crate) fn tell(&self, arrival: Option<Arrival>) {
        let Some(arrival) = arrival else {
            return;
        };
        if let Some(sender) = &*self.lock() {
            // Whoever waited may have gone.
            let _ = sender.send(Arc::new(arrival));
        }
    }

    /// Nothing is stored any more: whoever waits, waits in vain.
    pub(crate) fn close(&self) {
        drop(self.lock().take());
    }

    /// The sender is whole whoever panicked.
    fn lock(&self) -> std::sync::MutexGuard<'_, Option<broadcast::Sender<Arc<Arrival>>>> {
        self.sender.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_is_made_for_nobody() {
        let arrivals = Arrivals::default();
        let profile = Profile::default();
        assert_eq!(arrivals.announcement("t", &profile), None);
        let mut heard = arrivals.listen();
        let announcement = arrivals.announcement("t", &profile);
        assert!(announcement.is_some());
        arrivals.tell(announcement);
        assert_eq!(heard.try_recv().expect("it was told").tenant, "t");
        arrivals.close();
        let closed = broadcast::error::TryRecvError::Closed;
        assert_eq!(heard.try_recv(), Err(closed.clone()));
        assert_eq!(arrivals.listen().try_recv(), Err(closed));
    }
}
