//! From what runs to what is to run, step by step. Pure: it is told what happened and when, and says what to do.

use std::collections::BTreeMap;
use std::time::Duration;

use candela_fleet::DaemonId;
use candela_fleet::DaemonRevision;
use candela_fleet::FleetDocument;
use candela_fleet::ObservabilityDaemon;
use candela_fleet::wanted_daemons;

use crate::backoff::Backoff;
use crate::error::DaemonError;
use crate::supervisor::state::DaemonState;

/// One that ran as long as this was well: its next failure is a first one.
const WELL_AFTER: Duration = Duration::from_secs(60);

/// Waits between starts of a daemon that fails.
#[derive(Clone, Copy, Debug)]
pub struct RestartWaits {
    /// After the first failure.
    pub first: Duration,
    /// After many.
    pub longest: Duration,
}

impl Default for RestartWaits {
    fn default() -> Self {
        Self {
            first: Duration::from_secs(1),
            longest: Duration::from_secs(120),
        }
    }
}

/// Which start of a daemon it was: what an earlier one says late is not taken for its successor's.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Generation(u64);

/// What is to be done.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Action {
    Start {
        id: DaemonId,
        generation: Generation,
        daemon: Box<ObservabilityDaemon>,
    },
    /// Its end is told by [`Reconciler::ended`].
    Stop {
        id: DaemonId,
        generation: Generation,
    },
    /// It is in no document any more, and has ended.
    Forget { id: DaemonId },
}

/// What is to run, and what does.
#[derive(Debug)]
pub(crate) struct Reconciler {
    waits: RestartWaits,
    spread: u64,
    /// The one daemon that is looked at; all by default.
    only: Option<String>,
    next_generation: u64,
    entries: BTreeMap<DaemonId, Entry>,
}

/// One daemon as it is.
#[derive(Debug)]
pub(crate) struct Entry {
    wish: Wish,
    phase: Phase,
    pub(crate) last_error: Option<String>,
    pub(crate) since_ms: u64,
    backoff: Backoff,
}

/// What the document says of it.
#[derive(Clone, Debug, PartialEq)]
enum Wish {
    Run {
        revision: DaemonRevision,
        daemon: Box<ObservabilityDaemon>,
    },
    Rest(DaemonRevision),
    Gone,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Phase {
    /// It does not run, and nothing says when it will.
    Idle,
    Starting(Run),
    Running(Run),
    Stopping(Run),
    /// Until when.
    BackingOff(DaemonRevision, Duration),
    Failed(DaemonRevision),
}

/// A start, and what it runs with.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Run {
    generation: Generation,
    revision: DaemonRevision,
    began: Duration,
}

/// When something happens.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Moment {
    pub(crate) monotonic: Duration,
    pub(crate) unix_ms: u64,
}

impl Reconciler {
    /// Nothing runs. Waits differ by `spread`. With `only`, all other daemons are somebody else's.
    pub(crate) fn new(waits: RestartWaits, spread: u64, only: Option<String>) -> Self {
        Self {
            waits,
            spread,
            only,
            next_generation: 0,
            entries: BTreeMap::new(),
        }
    }

    /// A document holds from now on.
    pub(crate) fn follow(&mut self, document: &FleetDocument, now: Moment) -> Vec<Action> {
        let mut wishes = wishes_of(document);
        if let Some(only) = &self.only {
            wishes.retain(|id, _| id.as_str() == only);
        }
        for (id, entry) in &mut self.entries {
            let before = entry.state();
            entry.wish = wishes.remove(id).unwrap_or(Wish::Gone);
            if entry.state() != before {
                entry.since_ms = now.unix_ms;
            }
        }
        for (id, wish) in wishes {
            let entry = Entry {
                wish,
                phase: Phase::Idle,
                last_error: None,
                since_ms: now.unix_ms,
                backoff: Backoff::new(self.waits.first, self.waits.longest),
            };
            self.entries.insert(id, entry);
        }
        self.advance(now)
    }

    /// A daemon is at work.
    pub(crate) fn started(&mut self, id: &DaemonId, generation: Generation, now: Moment) {
        let Some(entry) = self.entries.get_mut(id) else {
            return;
        };
        if let Phase::Starting(run) = entry.phase
            && run.generation == generation
        {
            // Why it did not work before is history.
            entry.last_error = None;
            entry.enter(Phase::Running(run), now);
        }
    }

    /// A daemon that runs has a problem, or has none any more.
    pub(crate) fn noticed(
        &mut self,
        id: &DaemonId,
        generation: Generation,
        problem: Option<String>,
    ) {
        if let Some(entry) = self.entries.get_mut(id)
            && let Some(run) = entry.phase.run()
            && run.generation == generation
        {
            entry.last_error = problem;
        }
    }

    /// A daemon has ended, because it was stopped or by itself.
    pub(crate) fn ended(
        &mut self,
        id: &DaemonId,
        generation: Generation,
        result: Result<(), DaemonError>,
        now: Moment,
    ) -> Vec<Action> {
        let spread = self.spread;
        let Some(entry) = self.entries.get_mut(id) else {
            return Vec::new();
        };
        let Some(run) = entry.phase.run().filter(|run| run.generation == generation) else {
            return Vec::new();
        };
        let was_stopped = matches!(entry.phase, Phase::Stopping(_));
        let is_permanent = result.as_ref().is_err_and(DaemonError::is_permanent);
        match result {
            Ok(()) if was_stopped => entry.last_error = None,
            Ok(()) => entry.last_error = Some("it ended without a reason".to_owned()),
            Err(error) => entry.last_error = Some(error.to_string()),
        }
        let phase = if was_stopped {
            Phase::Idle
        } else if is_permanent {
            Phase::Failed(run.revision)
        } else {
            if now.monotonic.saturating_sub(run.began) >= WELL_AFTER {
                entry.backoff.succeeded();
            }
            let until = now.monotonic + entry.backoff.failed(spread);
            Phase::BackingOff(run.revision, until)
        };
        entry.enter(phase, now);
        self.advance(now)
    }

    /// Time has passed.
    pub(crate) fn tick(&mut self, now: Moment) -> Vec<Action> {
        self.advance(now)
    }

    /// When there will be something to do at the latest.
    pub(crate) fn next_deadline(&self) -> Option<Duration> {
        let waits = self.entries.values().filter_map(|entry| match entry.phase {
            Phase::BackingOff(_, until) => Some(until),
            _ => None,
        });
        waits.min()
    }

    /// Stops everything; what runs tells its end as always.
    pub(crate) fn stop_all(&mut self, now: Moment) -> Vec<Action> {
        self.follow(&FleetDocument::default(), now)
    }

    /// Whether something has not ended yet.
    pub(crate) fn is_busy(&self) -> bool {
        let mut entries = self.entries.values();
        entries.any(|entry| entry.phase.run().is_some())
    }

    /// Whether what waits of it is for this agent to upload: where each daemon has an agent of its own, only its own.
    pub(crate) fn is_ours(&self, id: &str) -> bool {
        self.only.as_ref().is_none_or(|only| only == id)
    }

    /// Whether a document that holds has it, at work or at rest.
    pub(crate) fn knows(&self, id: &str) -> bool {
        self.entries.keys().any(|known| known.as_str() == id)
    }

    /// All that is known, in the order of names.
    pub(crate) fn entries(&self) -> impl Iterator<Item = (&DaemonId, &Entry)> {
        self.entries.iter()
    }

    fn advance(&mut self, now: Moment) -> Vec<Action> {
        let mut actions = Vec::new();
        for (id, entry) in &mut self.entries {
            if let Some(run) = entry.phase.run() {
                let is_wanted = entry.wish.revision() == Some(run.revision);
                if !is_wanted && !matches!(entry.phase, Phase::Stopping(_)) {
                    entry.enter(Phase::Stopping(run), now);
                    actions.push(Action::Stop {
                        id: id.clone(),
                        generation: run.generation,
                    });
                }
                continue;
            }
            let Wish::Run { revision, daemon } = &entry.wish else {
                entry.rest(now);
                continue;
            };
            let must_wait = match entry.phase {
                Phase::BackingOff(failed, until) => failed == *revision && now.monotonic < until,
                Phase::Failed(failed) => failed == *revision,
                _ => false,
            };
            if must_wait {
                continue;
            }
            if !matches!(entry.phase, Phase::BackingOff(failed, _) if failed == *revision) {
                // It is another one by now: its failures are its own.
                entry.backoff.succeeded();
            }
            let run = Run {
                generation: Generation(self.next_generation),
                revision: *revision,
                began: now.monotonic,
            };
            self.next_generation += 1;
            actions.push(Action::Start {
                id: id.clone(),
                generation: run.generation,
                daemon: daemon.clone(),
            });
            entry.enter(Phase::Starting(run), now);
        }
        self.forget_the_gone(&mut actions);
        actions
    }

    fn forget_the_gone(&mut self, actions: &mut Vec<Action>) {
        self.entries.retain(|id, entry| {
            let is_over = entry.wish == Wish::Gone && entry.phase.run().is_none();
            if is_over {
                actions.push(Action::Forget { id: id.clone() });
            }
            !is_over
        });
    }
}

impl Entry {
    /// What it is doing.
    pub(crate) fn state(&self) -> DaemonState {
        match (self.phase, &self.wish) {
            (Phase::Starting(_), _) => DaemonState::Starting,
            (Phase::Running(_), _) => DaemonState::Running,
            // Until it has ended it neither rests nor is gone.
            (Phase::Stopping(_), _) => DaemonState::Stopped,
            (Phase::BackingOff(..), _) => DaemonState::BackingOff,
            (Phase::Failed(_), _) => DaemonState::Failed,
            (Phase::Idle, Wish::Rest(_)) => DaemonState::Suspended,
            (Phase::Idle, _) => DaemonState::Stopped,
        }
    }

    /// What it runs with, or is to run with.
    pub(crate) fn revision(&self) -> Option<DaemonRevision> {
        let of_run = self.phase.run().map(|run| run.revision);
        of_run.or(match &self.wish {
            Wish::Run { revision, .. } | Wish::Rest(revision) => Some(*revision),
            Wish::Gone => None,
        })
    }

    fn enter(&mut self, phase: Phase, now: Moment) {
        let before = self.state();
        self.phase = phase;
        if self.state() != before {
            self.since_ms = now.unix_ms;
        }
    }

    /// It does not run and shall not: what it waited for is over.
    fn rest(&mut self, now: Moment) {
        self.enter(Phase::Idle, now);
    }
}

impl Wish {
    fn revision(&self) -> Option<DaemonRevision> {
        match self {
            Self::Run { revision, .. } => Some(*revision),
            Self::Rest(_) | Self::Gone => None,
        }
    }
}

impl Phase {
    fn run(&self) -> Option<Run> {
        match self {
            Self::Starting(run) | Self::Running(run) | Self::Stopping(run) => Some(*run),
            Self::Idle | Self::BackingOff(..) | Self::Failed(_) => None,
        }
    }
}

fn wishes_of(document: &FleetDocument) -> BTreeMap<DaemonId, Wish> {
    // Names count those that rest, so they are the same as in a document that is awake.
    let awake = FleetDocument {
        suspended: None,
        ..document.clone()
    };
    let all = wanted_daemons(&awake).into_iter();
    let mut wishes: BTreeMap<DaemonId, Wish> =
        all.map(|it| (it.id, Wish::Rest(it.revision))).collect();
    for wanted in wanted_daemons(document) {
        let wish = Wish::Run {
            revision: wanted.revision,
            daemon: Box::new(wanted.daemon.clone()),
        };
        wishes.insert(wanted.id, wish);
    }
    wishes
}

#[cfg(test)]
mod tests;
