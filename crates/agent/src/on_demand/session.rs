//! One session at a time, and its end before its time.

use std::sync::Arc;
use std::sync::OnceLock;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering;

use tokio::sync::watch;

/// What goes on, seen by all requests.
#[derive(Debug)]
pub(crate) struct Sessions(watch::Sender<State>);

#[derive(Debug)]
enum State {
    Idle,
    Active {
        progress: Progress,
        signals: Signals,
    },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Progress {
    /// Unwind tables are built; no sample was taken yet.
    Starting,
    Sampling,
    /// Somebody has ended it.
    Ending,
}

/// Tells a session's thread to end.
#[derive(Clone, Debug, Default)]
pub(crate) struct Signals {
    /// Takes no more samples.
    pub(crate) stop: Arc<AtomicBool>,
    /// Nobody wants what was taken. Set before `stop` is.
    pub(crate) discard: Arc<AtomicBool>,
    /// Why what takes the samples could not be told to end.
    pub(crate) undelivered: Arc<OnceLock<String>>,
}

/// What becomes of the samples of a session that is ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ending {
    Keep,
    Discard,
}

/// The session that goes on, held by its thread; its end is when this is dropped.
#[derive(Debug)]
pub(crate) struct Session {
    sessions: Arc<Sessions>,
    pub(crate) signals: Signals,
}

// === impl Sessions ===

impl Default for Sessions {
    fn default() -> Self {
        Self(watch::Sender::new(State::Idle))
    }
}

impl Sessions {
    /// A new session, unless there is one.
    pub(crate) fn begin(self: &Arc<Self>) -> Option<Session> {
        let signals = Signals::default();
        let is_new = self.0.send_if_modified(|state| {
            let is_idle = matches!(state, State::Idle);
            if is_idle {
                *state = State::Active {
                    progress: Progress::Starting,
                    signals: signals.clone(),
                };
            }
            is_idle
        });
        is_new.then(|| Session {
            sessions: Arc::clone(self),
            signals,
        })
    }

    /// Whether samples are taken.
    pub(crate) fn is_in_progress(&self) -> bool {
        matches!(
            *self.0.borrow(),
            State::Active {
                progress: Progress::Sampling,
                ..
            }
        )
    }

    /// Ends the session in progress, whose signals these are; none when there is none. One that takes no samples
    /// yet is none, as [`Self::is_in_progress`] says, and one that was ended is none any more.
    pub(crate) fn end(&self, ending: Ending) -> Option<Signals> {
        self.end_where(ending, |progress| progress == Progress::Sampling)
    }

    /// Ends whatever session there is, for whoever waits for nothing any more.
    pub(crate) fn abandon(&self) {
        self.end_where(Ending::Discard, |progress| progress != Progress::Ending);
    }

    fn end_where(&self, ending: Ending, is_meant: impl Fn(Progress) -> bool) -> Option<Signals> {
        let mut ended = None;
        self.0.send_if_modified(|state| match state {
            State::Active { progress, signals } if is_meant(*progress) => {
                *progress = Progress::Ending;
                signals.end(ending);
                ended = Some(signals.clone());
                true
            }
            _ => false,
        });
        ended
    }

    /// Completes once there is no session.
    pub(crate) async fn idle(&self) {
        let mut state = self.0.subscribe();
        // The sender is ours, and lives as long as we do.
        let _ = state.wait_for(|state| matches!(state, State::Idle)).await;
    }
}

// === impl Session ===

impl Session {
    /// The first sample can be taken from now on.
    pub(crate) fn has_begun(&self) {
        self.sessions.0.send_if_modified(|state| match state {
            State::Active { progress, .. } if *progress == Progress::Starting => {
                *progress = Progress::Sampling;
                true
            }
            _ => false,
        });
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        self.sessions.0.send_replace(State::Idle);
    }
}

// === impl Signals ===

impl Signals {
    pub(crate) fn end(&self, ending: Ending) {
        if ending == Ending::Discard {
            self.discard.store(true, Ordering::SeqCst);
        }
        self.stop.store(true, Ordering::SeqCst);
    }

    pub(crate) fn is_stopped(&self) -> bool {
        self.stop.load(Ordering::SeqCst)
    }

    pub(crate) fn is_discarded(&self) -> bool {
        self.discard.load(Ordering::SeqCst)
    }

    /// Notes for whoever ends the session that what takes the samples does not hear of it.
    pub(crate) fn cannot_end(&self, reason: &str) {
        // The first reason is the cause of others.
        let _ = self.undelivered.set(reason.to_owned());
    }

    pub(crate) fn undelivered(&self) -> Option<&str> {
        self.undelivered.get().map(String::as_str)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn there_is_one_session() {
        let sessions = Arc::new(Sessions::default());
        let first = sessions.begin().expect("idle");
        assert!(sessions.begin().is_none());
        assert!(!sessions.is_in_progress(), "nothing is sampled yet");
        first.has_begun();
        assert!(sessions.is_in_progress());
        assert!(sessions.begin().is_none());
        drop(first);
        assert!(!sessions.is_in_progress());
        assert!(sessions.begin().is_some());
    }

    #[test]
    fn a_session_is_ended_once() {
        let sessions = Arc::new(Sessions::default());
        assert!(sessions.end(Ending::Discard).is_none(), "nothing to end");
        let session = sessions.begin().expect("idle");
        session.has_begun();
        assert!(sessions.end(Ending::Discard).is_some());
        assert!(session.signals.is_stopped() && session.signals.is_discarded());
        assert!(sessions.end(Ending::Discard).is_none(), "it ends already");
        assert!(!sessions.is_in_progress());
        assert!(sessions.begin().is_none(), "until it has ended");
        session.has_begun();
        assert!(!sessions.is_in_progress(), "too late to begin");
        drop(session);
        assert!(sessions.end(Ending::Discard).is_none());
        assert!(!sessions.begin().expect("idle").signals.is_stopped());
    }

    #[test]
    fn a_session_that_starts_is_not_in_progress_and_nothing_to_stop() {
        let sessions = Arc::new(Sessions::default());
        let session = sessions.begin().expect("idle");
        for ending in [Ending::Keep, Ending::Discard] {
            assert!(sessions.end(ending).is_none());
            assert!(!session.signals.is_stopped() && !session.signals.is_discarded());
        }
        session.has_begun();
        assert!(sessions.end(Ending::Keep).is_some());
        assert!(session.signals.is_stopped() && !session.signals.is_discarded());
    }

    #[test]
    fn the_end_of_the_process_ends_what_has_not_begun() {
        let sessions = Arc::new(Sessions::default());
        sessions.abandon();
        let session = sessions.begin().expect("idle");
        sessions.abandon();
        assert!(session.signals.is_stopped() && session.signals.is_discarded());
        session.has_begun();
        assert!(!sessions.is_in_progress(), "too late to begin");
    }

    #[test]
    fn whoever_waits_for_the_end_sees_it() {
        let runtime = tokio::runtime::Builder::new_current_thread().build();
        let runtime = runtime.expect("a runtime");
        let sessions = Arc::new(Sessions::default());
        let session = sessions.begin().expect("idle");
        let thread = std::thread::spawn(move || drop(session));
        runtime.block_on(sessions.idle());
        thread.join().expect("no panic");
        assert!(sessions.begin().is_some());
    }
}
