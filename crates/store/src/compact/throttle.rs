//! How background work leaves room for what somebody waits for.

use std::sync::Condvar;
use std::sync::Mutex;
use std::sync::PoisonError;
use std::sync::atomic::AtomicUsize;
use std::sync::atomic::Ordering;
use std::time::Duration;
use std::time::Instant;

use crate::sync::lock;

/// Samples between two looks at the time.
const SAMPLES: usize = 64 << 10;

/// Pauses work so that it takes a share of a core at most, and ends it when the store is closed.
#[derive(Debug)]
pub(crate) struct Throttle<'a> {
    is_stopping: &'a Mutex<bool>,
    stop_requested: &'a Condvar,
    /// Of a core, percent; 100 never pauses.
    percent: u32,
    since_look: AtomicUsize,
    worked_since: Mutex<Instant>,
}

impl<'a> Throttle<'a> {
    pub(crate) fn new(
        is_stopping: &'a Mutex<bool>,
        stop_requested: &'a Condvar,
        percent: u32,
    ) -> Self {
        Self {
            is_stopping,
            stop_requested,
            percent: percent.clamp(1, 100),
            since_look: AtomicUsize::new(0),
            worked_since: Mutex::new(Instant::now()),
        }
    }

    /// Called where work can pause or end, with the samples that are next.
    ///
    /// # Errors
    /// When the store is being closed.
    pub(super) fn pass(&self, samples: usize) -> Result<(), String> {
        if self.since_look.fetch_add(samples + 1, Ordering::Relaxed) < SAMPLES {
            return Ok(());
        }
        self.since_look.store(0, Ordering::Relaxed);
        let mut worked_since = lock(&self.worked_since);
        let pause = self.pause_after(worked_since.elapsed());
        let is_stopping = lock(self.is_stopping);
        let is_stopping = if pause.is_zero() {
            *is_stopping
        } else {
            let waited =
                self.stop_requested
                    .wait_timeout_while(is_stopping, pause, |is_stopping| !*is_stopping);
            *waited.unwrap_or_else(PoisonError::into_inner).0
        };
        *worked_since = Instant::now();
        if is_stopping {
            return Err("the store is being closed".to_owned());
        }
        Ok(())
    }

    fn pause_after(&self, worked: Duration) -> Duration {
        worked * (100 - self.percent) / self.percent
    }
}
