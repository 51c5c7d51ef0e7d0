//! Time, injected.

use std::fmt::Debug;
use std::sync::Mutex;
use std::sync::PoisonError;
use std::time::Duration;
use std::time::Instant;
use std::time::SystemTime;
use std::time::UNIX_EPOCH;

/// Where daemons take the time from.
pub trait Clock: Debug + Send + Sync {
    /// Since the Unix epoch. Somebody may set it, back too.
    fn unix(&self) -> Duration;

    /// Since some moment: it never goes back.
    fn monotonic(&self) -> Duration;

    /// The same to the second, for names of files.
    fn unix_seconds(&self) -> i64 {
        i64::try_from(self.unix().as_secs()).unwrap_or(i64::MAX)
    }

    /// The same to the millisecond, for reports.
    fn unix_ms(&self) -> u64 {
        u64::try_from(self.unix().as_millis()).unwrap_or(u64::MAX)
    }
}

/// The system's clocks.
#[derive(Clone, Copy, Debug)]
pub struct SystemClock {
    start: Instant,
}

/// Clocks that stand until they are moved.
#[derive(Debug, Default)]
pub struct ManualClock {
    times: Mutex<Times>,
}

#[derive(Clone, Copy, Debug, Default)]
struct Times {
    unix: Duration,
    monotonic: Duration,
}

// === impl SystemClock ===

impl Default for SystemClock {
    fn default() -> Self {
        Self {
            start: Instant::now(),
        }
    }
}

impl Clock for SystemClock {
    fn unix(&self) -> Duration {
        // A clock before 1970 is not set: the epoch is as good as any other wrong time.
        let since_epoch = SystemTime::now().duration_since(UNIX_EPOCH);
        since_epoch.unwrap_or_default()
    }

    fn monotonic(&self) -> Duration {
        self.start.elapsed()
    }
}

// === impl ManualClock ===

impl ManualClock {
    /// A clock at so many seconds since the epoch.
    #[must_use]
    pub fn at(unix_seconds: u64) -> Self {
        let clock = Self::default();
        clock.set_unix(unix_seconds);
        clock
    }

    /// Time passes.
    pub fn advance(&self, by: Duration) {
        let mut times = self.times();
        times.unix += by;
        times.monotonic += by;
    }

    /// Somebody sets the clock on the wall.
    pub fn set_unix(&self, unix_seconds: u64) {
        self.times().unix = Duration::from_secs(unix_seconds);
    }

    fn times(&self) -> std::sync::MutexGuard<'_, Times> {
        self.times.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Clock for ManualClock {
    fn unix(&self) -> Duration {
        self.times().unix
    }

    fn monotonic(&self) -> Duration {
        self.times().monotonic
    }
}
