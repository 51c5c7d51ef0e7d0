//! Profiles that come twice.
//!
//! A client that hears nothing sends again, and what it sent first may be stored all the same. The
//! sender's side of a profile has a key; within some minutes each key is stored once. A second one
//! that comes while the first is on its way waits for it: it must not be acknowledged before.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::Mutex;

use hashbrown::HashMap;
use tokio::sync::watch;

use crate::sync::lock;

/// How long a key is remembered, nanoseconds: longer than clients try again.
pub(crate) const WINDOW_NS: i64 = 600_000_000_000;

/// Keys remembered at most, 64 bytes each; beyond that the oldest are forgotten early.
const MOST_KEYS: usize = 1_000_000;

/// The key of what was received. 0 stands for none.
pub(crate) type Key = u128;

/// A key and when what it stands for was received, nanoseconds since the Unix epoch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ReceivedKey {
    pub(crate) key: Key,
    pub(crate) received_ns: i64,
}

/// The keys of the last minutes.
#[derive(Debug, Default)]
pub(crate) struct DuplicateWindow {
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    entries: HashMap<Key, Entry>,
    /// Durable keys by the time of their reception.
    order: VecDeque<(i64, Key)>,
}

#[derive(Debug)]
enum Entry {
    OnItsWay(watch::Receiver<Outcome>),
    Durable,
}

/// What became of the first one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Outcome {
    Open,
    Durable,
}

/// What is known of a key.
#[derive(Debug)]
pub(crate) enum Admission {
    /// Nothing: it is to be stored, and the ticket goes with it.
    New(Ticket),
    /// The first one is on its way. The channel closes without an outcome when it fails.
    OnItsWay(watch::Receiver<Outcome>),
    /// It is stored.
    Stored,
}

/// Goes with a profile to the log. Dropped before [`Ticket::durable`], its key is free again.
#[derive(Debug)]
pub(crate) struct Ticket {
    window: Arc<DuplicateWindow>,
    key: Key,
    received_ns: i64,
    outcome: watch::Sender<Outcome>,
}

impl DuplicateWindow {
    /// Looks a key up, and reserves it when it is new.
    pub(crate) fn admit(self: &Arc<Self>, key: Key, now_ns: i64) -> Admission {
        let mut state = lock(&self.state);
        state.forget_before(now_ns.saturating_sub(WINDOW_NS));
        match state.entries.get(&key) {
            Some(Entry::Durable) => return Admission::Stored,
            Some(Entry::OnItsWay(outcome)) => return Admission::OnItsWay(outcome.clone()),
            None => {}
        }
        let (sender, receiver) = watch::channel(Outcome::Open);
        state.entries.insert(key, Entry::OnItsWay(receiver));
        Admission::New(Ticket {
            window: Arc::clone(self),
            key,
            received_ns: now_ns,
            outcome: sender,
        })
    }

    /// Forgets all keys but those on their way.
    pub(crate) fn forget_all(&self) {
        let mut state = lock(&self.state);
        state.forget_before(i64::MAX);
    }

    /// Notes a key that log or catalog have from before a restart; `false` when it was known then,
    /// by the rule of [`DuplicateWindow::admit`]: what that took must not be taken for a duplicate.
    pub(crate) fn remember(&self, received: ReceivedKey) -> bool {
        let mut state = lock(&self.state);
        state.forget_before(received.received_ns.saturating_sub(WINDOW_NS));
        if state.entries.contains_key(&received.key) {
            return false;
        }
        state.keep(received);
        true
    }
}

impl State {
    fn keep(&mut self, received: ReceivedKey) {
        self.entries.insert(received.key, Entry::Durable);
        self.order.push_back((received.received_ns, received.key));
        while self.order.len() > MOST_KEYS {
            self.forget_oldest();
        }
    }

    fn forget_before(&mut self, limit_ns: i64) {
        while self
            .order
            .front()
            .is_some_and(|&(received_ns, _)| received_ns < limit_ns)
        {
            self.forget_oldest();
        }
    }

    fn forget_oldest(&mut self) {
        if let Some((_, key)) = self.order.pop_front() {
            self.entries.remove(&key);
        }
    }
}

impl Ticket {
    pub(crate) fn received(&self) -> ReceivedKey {
        ReceivedKey {
            key: self.key,
            received_ns: self.received_ns,
        }
    }

    /// The profile is durable and visible: from now on its key is known.
    pub(crate) fn durable(self) {
        lock(&self.window.state).keep(self.received());
        self.outcome.send_replace(Outcome::Durable);
    }
}

impl Drop for Ticket {
    fn drop(&mut self) {
        let mut state = lock(&self.window.state);
        if let Some(Entry::OnItsWay(_)) = state.entries.get(&self.key) {
            state.entries.remove(&self.key);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ticket(window: &Arc<DuplicateWindow>, key: Key, now_ns: i64) -> Ticket {
        match window.admit(key, now_ns) {
            Admission::New(ticket) => ticket,
            other => panic!("{key} is known: {other:?}"),
        }
    }

    #[test]
    fn a_key_is_stored_once_within_the_window() {
        let window = Arc::new(DuplicateWindow::default());
        ticket(&window, 7, 0).durable();
        assert!(matches!(window.admit(7, WINDOW_NS), Admission::Stored));
        ticket(&window, 8, WINDOW_NS).durable();
        drop(ticket(&window, 7, WINDOW_NS + 1));
        assert!(matches!(window.admit(8, WINDOW_NS + 1), Admission::Stored));
    }

    #[test]
    fn the_second_waits_for_the_first() {
        let window = Arc::new(DuplicateWindow::default());
        let first = ticket(&window, 7, 0);
        let Admission::OnItsWay(outcome) = window.admit(7, 1) else {
            panic!("it is on its way");
        };
        assert_eq!(*outcome.borrow(), Outcome::Open);
        first.durable();
        assert_eq!(*outcome.borrow(), Outcome::Durable);
    }

    #[test]
    fn what_failed_may_come_again() {
        let window = Arc::new(DuplicateWindow::default());
        let first = ticket(&window, 7, 0);
        let Admission::OnItsWay(outcome) = window.admit(7, 1) else {
            panic!("it is on its way");
        };
        drop(first);
        assert!(outcome.has_changed().is_err(), "nobody will tell any more");
        ticket(&window, 7, 2).durable();
    }

    #[test]
    fn keys_of_the_log_are_known_after_a_restart() {
        let window = Arc::new(DuplicateWindow::default());
        let received = ReceivedKey {
            key: 7,
            received_ns: 5,
        };
        assert!(window.remember(received));
        assert!(!window.remember(received), "it is known");
        assert!(matches!(window.admit(7, 6), Admission::Stored));
        let much_later = ReceivedKey {
            received_ns: received.received_ns + WINDOW_NS + 1,
            ..received
        };
        assert!(window.remember(much_later), "it was taken again");
        drop(ticket(&window, 1, much_later.received_ns));
    }
}
