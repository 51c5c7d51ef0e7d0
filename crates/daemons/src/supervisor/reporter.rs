//! Tells the server how the node is, on a thread of its own: a server that hangs holds up no daemon.

use std::sync::Arc;
use std::sync::Condvar;
use std::sync::Mutex;
use std::sync::MutexGuard;
use std::sync::PoisonError;
use std::time::Duration;

use crate::backoff::Backoff;
use crate::stop::Stop;
use crate::supervisor::own_labels::OwnLabels;
use crate::supervisor::source::ReportSink;
use crate::supervisor::state::NodeReport;
use crate::supervisor::state::PodIdentity;
use crate::supervisor::state::SnapshotReport;

/// Nothing has changed, and counts go on.
const USUAL: Duration = Duration::from_secs(15);
/// Between two reports, however much happens.
const SHORTEST: Duration = Duration::from_millis(200);
const LONGEST: Duration = Duration::from_secs(30);

/// Results of snapshots that wait for a server that is away; the oldest are given up.
const MOST_SNAPSHOTS: usize = 256;

/// The state of a node, as it is told and as it is asked for.
#[derive(Debug, Default)]
pub(crate) struct Board {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct State {
    report: NodeReport,
    has_news: bool,
}

impl Board {
    pub(crate) fn new(node: &str, pod: Option<PodIdentity>, only: Option<String>) -> Arc<Self> {
        let board = Self::default();
        board.state().report = NodeReport {
            node: node.to_owned(),
            daemon: only,
            pod,
            ..NodeReport::default()
        };
        Arc::new(board)
    }

    /// The node as it is.
    pub(crate) fn report(&self) -> NodeReport {
        self.state().report.clone()
    }

    /// Takes what is true now. A change of counts alone is told at the usual time.
    pub(crate) fn update(&self, update: impl FnOnce(&mut NodeReport)) {
        let mut state = self.state();
        let before = shape(&state.report);
        update(&mut state.report);
        let surplus = state.report.snapshots.len().saturating_sub(MOST_SNAPSHOTS);
        if surplus > 0 {
            tracing::warn!(
                surplus,
                "results of snapshots were told to nobody: the server is away"
            );
            state.report.snapshots.drain(..surplus);
        }
        if shape(&state.report) != before {
            state.has_news = true;
            self.changed.notify_all();
        }
    }

    /// Reports until the end, and once more then. What somebody has labelled meanwhile is in the next report.
    pub(crate) fn run(
        &self,
        sink: &mut dyn ReportSink,
        mut own_labels: Option<&mut OwnLabels>,
        spread: u64,
        stop: &Stop,
    ) {
        let mut backoff = Backoff::new(Duration::from_secs(1), LONGEST);
        loop {
            let is_last = stop.is_set();
            let labels = own_labels.as_mut().and_then(|labels| labels.read());
            if let Some(labels) = labels {
                self.state().report.pod.get_or_insert_default().labels = labels;
            }
            let report = {
                let mut state = self.state();
                state.has_news = false;
                state.report.clone()
            };
            let wait = match sink.report(&report) {
                Ok(()) => {
                    backoff.succeeded();
                    self.told(&report.snapshots);
                    SHORTEST
                }
                Err(error) => {
                    if backoff.failures() == 0 {
                        tracing::warn!(%error, "the server does not know how this node is");
                    }
                    // What it was not told is still news.
                    self.state().has_news = true;
                    backoff.failed(spread)
                }
            };
            if is_last {
                return;
            }
            if stop.wait_timeout(wait) {
                continue;
            }
            self.wait_for_news(stop);
        }
    }

    /// Ends the waiting of [`Board::run`] after `stop` was set.
    pub(crate) fn wake(&self) {
        self.state().has_news = true;
        self.changed.notify_all();
    }

    fn wait_for_news(&self, stop: &Stop) {
        let state = self.state();
        let is_quiet = |state: &mut State| !state.has_news && !stop.is_set();
        let waited = self.changed.wait_timeout_while(state, USUAL, is_quiet);
        drop(waited);
    }

    fn told(&self, snapshots: &[SnapshotReport]) {
        let mut state = self.state();
        state.report.snapshots.retain(|it| !snapshots.contains(it));
    }

    fn state(&self) -> MutexGuard<'_, State> {
        // Each change is whole.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// What is told at once: all but the counts.
fn shape(report: &NodeReport) -> NodeReport {
    let mut shape = report.clone();
    for daemon in &mut shape.daemons {
        (daemon.uploaded, daemon.retained, daemon.dropped) = (0, 0, 0);
        (daemon.stored, daemon.not_stored) = (0, 0);
    }
    shape
}
