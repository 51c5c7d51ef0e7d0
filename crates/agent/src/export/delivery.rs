//! The thread that hands profiles to the exporter, keeps what it does not take, and tries again.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::mpsc::Receiver;
use std::sync::mpsc::RecvTimeoutError;
use std::sync::mpsc::SyncSender;
use std::sync::mpsc::TrySendError;
use std::sync::mpsc::sync_channel;
use std::time::Duration;
use std::time::Instant;

use candela_model::Profile;

use crate::export::backoff::Backoff;
use crate::export::exporter::ExportError;
use crate::export::exporter::Exporter;
use crate::export::spool::Spool;
use crate::ledger::DropReason;
use crate::status::StatusBoard;

/// Windows between symbolization and export. All kinds of a window come at once, each as a profile.
const QUEUED_WINDOWS: usize = 4;

/// Windows kept in memory where there is no spool: a minute of them.
const KEPT_WINDOWS: usize = 6;

/// How often waiting profiles are looked at.
const TURN: Duration = Duration::from_secs(1);

/// Waiting profiles sent per turn, so that new ones do not wait behind a long queue.
const REPLAYED_PER_TURN: usize = 16;

/// The way into the delivery thread. It never blocks.
#[derive(Clone, Debug)]
pub(crate) struct ProfileQueue {
    sender: SyncSender<Profile>,
    board: Arc<StatusBoard>,
}

/// What the thread works with.
pub(crate) struct Delivery {
    exporter: Box<dyn Exporter>,
    spool: Option<Spool>,
    kept: VecDeque<Profile>,
    most_kept: usize,
    backoff: Backoff,
    stuck: StuckProfile,
    queue: Receiver<Profile>,
    board: Arc<StatusBoard>,
}

/// Finds out that the receiver is well and just never takes the oldest profile on disk.
#[derive(Debug, Default)]
struct StuckProfile {
    /// How often it was not taken although others were before.
    strikes: u32,
    /// Whether another one was taken since the last attempt.
    others_pass: bool,
}

/// After so many it is given up, so that it does not hold up all behind it.
const MOST_STRIKES: u32 = 5;

// === impl StuckProfile ===

impl StuckProfile {
    fn other_passed(&mut self) {
        self.others_pass = true;
    }

    /// The oldest one was not taken: whether to give it up.
    fn failed(&mut self) -> bool {
        self.strikes += u32::from(std::mem::take(&mut self.others_pass));
        self.strikes >= MOST_STRIKES
    }
}

// === impl ProfileQueue ===

impl ProfileQueue {
    /// Queues a profile; where the queue is full its samples are counted as dropped.
    pub(crate) fn push(&self, profile: Profile) {
        match self.sender.try_send(profile) {
            Ok(()) => {}
            Err(TrySendError::Full(profile) | TrySendError::Disconnected(profile)) => {
                let samples = sample_count(&profile);
                self.board.ledger.add(DropReason::ExporterBehind, samples);
            }
        }
    }

    /// Queues a profile, or gives it back where the queue is full.
    pub(crate) fn try_push(&self, profile: Profile) -> Result<(), Box<Profile>> {
        self.sender
            .try_send(profile)
            .map_err(|refused| match refused {
                TrySendError::Full(profile) | TrySendError::Disconnected(profile) => {
                    Box::new(profile)
                }
            })
    }

    /// A queue without a thread behind it, and what comes out of it.
    #[cfg(test)]
    pub(crate) fn for_tests(board: Arc<StatusBoard>) -> (Self, Receiver<Profile>) {
        let (sender, queue) = sync_channel(QUEUED_WINDOWS);
        (Self { sender, board }, queue)
    }
}

// === impl Delivery ===

impl Delivery {
    /// Hands over up to `profiles_per_window` profiles at once, every interval.
    pub(crate) fn new(
        exporter: Box<dyn Exporter>,
        spool: Option<Spool>,
        profiles_per_window: usize,
        board: Arc<StatusBoard>,
    ) -> (Self, ProfileQueue) {
        let profiles_per_window = profiles_per_window.max(1);
        let (sender, queue) = sync_channel(QUEUED_WINDOWS * profiles_per_window);
        board.parts().delivery.exporter = exporter.name();
        let profiles = ProfileQueue {
            sender,
            board: Arc::clone(&board),
        };
        let delivery = Self {
            exporter,
            spool,
            kept: VecDeque::new(),
            most_kept: KEPT_WINDOWS * profiles_per_window,
            backoff: Backoff::default(),
            stuck: StuckProfile::default(),
            queue,
            board,
        };
        (delivery, profiles)
    }

    /// Runs until all queues into it are dropped; then everything is tried once more.
    pub(crate) fn run(mut self) {
        loop {
            match self.queue.recv_timeout(TURN) {
                Ok(profile) => self.deliver(profile),
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => break,
            }
            self.replay();
        }
        // The last word: whoever stops the agent waits for it.
        self.backoff.succeeded();
        self.replay();
        self.drop_kept();
    }

    fn deliver(&mut self, profile: Profile) {
        if !self.backoff.may_try(Instant::now()) {
            self.keep(profile);
            return;
        }
        self.exporter.set_vitals(&self.board.vitals());
        let result = self.exporter.export(&profile);
        if self.note(&result, profile.series.len() as u64, sample_count(&profile)) {
            self.keep(profile);
            return;
        }
        self.stuck.other_passed();
    }

    /// Counts what came of an attempt with a profile of that many series and samples; true when it
    /// should be repeated.
    fn note(&mut self, result: &Result<(), ExportError>, series: u64, samples: u64) -> bool {
        let mut refused = 0;
        match result {
            Ok(()) => {}
            Err(ExportError::PartlyRejected { series, .. }) => refused = *series,
            Err(ExportError::Rejected { .. }) => refused = series,
            Err(ExportError::Unavailable { reason } | ExportError::NotAllowed { reason }) => {
                // Once for each time that it goes away: who gave a wrong address must see it.
                if !self.backoff.is_waiting() {
                    let receiver = self.exporter.name();
                    tracing::warn!(%receiver, %reason, "profiles cannot be handed over; they wait here");
                }
                self.backoff.failed(Instant::now());
                let delivery = &mut self.board.parts().delivery;
                delivery.failed_attempts += 1;
                delivery.last_error.clone_from(reason);
                return true;
            }
        }
        if let Err(error) = result {
            tracing::warn!(%error, "the receiver refused series");
            self.board.ledger.add(DropReason::ExportRejected, refused);
        }
        if self.backoff.is_waiting() {
            tracing::info!(receiver = %self.exporter.name(), "profiles are taken again");
        }
        self.backoff.succeeded();
        let delivery = &mut self.board.parts().delivery;
        match result {
            Err(error) => delivery.last_error = error.to_string(),
            Ok(()) => {
                delivery.last_error.clear();
                delivery.profiles += 1;
                delivery.samples += samples;
            }
        }
        false
    }

    fn keep(&mut self, profile: Profile) {
        if let Some(spool) = &mut self.spool
            && let Some(bytes) = self.exporter.to_spool(&profile)
        {
            spool.push(&bytes);
            self.show_spool();
            return;
        }
        if self.kept.len() >= self.most_kept
            && let Some(oldest) = self.kept.pop_front()
        {
            self.board
                .ledger
                .add(DropReason::ExporterBehind, sample_count(&oldest));
        }
        self.kept.push_back(profile);
    }

    fn replay(&mut self) {
        for _ in 0..REPLAYED_PER_TURN {
            if !self.backoff.may_try(Instant::now()) {
                return;
            }
            if let Some(profile) = self.kept.pop_front() {
                let result = self.exporter.export(&profile);
                if self.note(&result, profile.series.len() as u64, sample_count(&profile)) {
                    self.kept.push_front(profile);
                    return;
                }
                continue;
            }
            let Some(bytes) = self.spool.as_mut().and_then(Spool::oldest) else {
                return;
            };
            let result = self.exporter.export_spooled(&bytes);
            // How many series and samples it has is not known without decoding it.
            if self.note(&result, 1, 0) {
                if !self.stuck.failed() {
                    return;
                }
                tracing::warn!("a spooled profile is given up: others pass and it never does");
                self.board.ledger.add(DropReason::ExportRejected, 1);
            }
            self.stuck = StuckProfile::default();
            if let Some(spool) = &mut self.spool {
                spool.remove_oldest();
            }
            self.show_spool();
        }
    }

    fn drop_kept(&mut self) {
        for profile in self.kept.drain(..) {
            self.board
                .ledger
                .add(DropReason::ExporterBehind, sample_count(&profile));
        }
    }

    fn show_spool(&self) {
        if let Some(spool) = &self.spool {
            let delivery = &mut self.board.parts().delivery;
            delivery.spooled_profiles = spool.len() as u64;
            delivery.spooled_bytes = spool.bytes();
        }
    }
}

/// Samples as taken where their distance tells: equal stacks are one entry with a larger value. What has no
/// period, such as bytes or the time of each wait, is counted by entries; its values are not samples.
fn sample_count(profile: &Profile) -> u64 {
    let series = profile.series.iter();
    let samples = series.map(|series| match series.period {
        2.. => (series.total() / series.period).unsigned_abs(),
        _ => series.samples.len() as u64,
    });
    samples.sum()
}

#[cfg(test)]
mod tests {
    use candela_model::Labels;
    use candela_model::ProfileSeries;
    use candela_model::ProfileType;
    use candela_model::Sample;
    use candela_model::StackId;

    use super::*;

    #[test]
    fn values_without_a_period_are_not_counted_as_samples() {
        let series = |name: &str, unit: &str, period: i64, values: &[i64]| {
            let profile_type = ProfileType::new(name, name, unit, name, unit);
            let samples = values
                .iter()
                .map(|&value| Sample::new(StackId::default(), value));
            ProfileSeries {
                period,
                samples: samples.collect(),
                ..ProfileSeries::new(Labels::default(), profile_type)
            }
        };
        let mut profile = Profile::default();
        profile.series = vec![
            series("cpu", "nanoseconds", 10_000_000, &[30_000_000, 10_000_000]),
            series("delay", "nanoseconds", 1, &[70_000_000, 5]),
            series("inuse", "bytes", 0, &[4096]),
        ];
        assert_eq!(sample_count(&profile), 4 + 2 + 1);
    }

    #[test]
    fn only_a_profile_that_others_overtake_is_given_up() {
        let mut stuck = StuckProfile::default();
        let away = (0..100).any(|_| stuck.failed());
        assert!(!away, "the receiver is away, the profile can wait");
        let strikes = (1..).find(|_| {
            stuck.other_passed();
            stuck.failed()
        });
        assert_eq!(strikes, Some(MOST_STRIKES));
    }
}
