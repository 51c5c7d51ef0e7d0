//! How long things took.

use std::sync::Mutex;
use std::time::Duration;

/// Durations from several threads.
#[derive(Debug, Default)]
pub(crate) struct Latencies(Mutex<Vec<Duration>>);

/// Of some durations.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Quantiles {
    pub(crate) count: usize,
    pub(crate) p50: Duration,
    pub(crate) p99: Duration,
}

impl Latencies {
    pub(crate) fn add(&self, duration: Duration) {
        self.0.lock().expect("no panic while locked").push(duration);
    }

    /// Of all since the last call.
    pub(crate) fn take(&self) -> Vec<Duration> {
        std::mem::take(&mut *self.0.lock().expect("no panic while locked"))
    }
}

impl Quantiles {
    pub(crate) fn of(mut durations: Vec<Duration>) -> Self {
        durations.sort_unstable();
        let at = |share: f64| {
            let position = (durations.len() as f64 * share).ceil() as usize;
            durations
                .get(position.saturating_sub(1))
                .copied()
                .unwrap_or_default()
        };
        Self {
            count: durations.len(),
            p50: at(0.5),
            p99: at(0.99),
        }
    }
}

/// As milliseconds.
pub(crate) fn milliseconds(duration: Duration) -> f64 {
    duration.as_secs_f64() * 1e3
}
