//! Time, injected.

use std::fmt::Debug;
use std::sync::LazyLock;
use std::sync::atomic::AtomicI64;
use std::sync::atomic::Ordering;
use std::time::Instant;
use std::time::SystemTime;
use std::time::UNIX_EPOCH;

/// Where the store takes the time from.
pub trait Clock: Debug + Send + Sync {
    /// Nanoseconds since the Unix epoch. It may be set back and forth.
    fn now_ns(&self) -> i64;

    /// Nanoseconds since some moment, for durations: it never goes back.
    fn monotonic_ns(&self) -> i64;
}

/// The system's clock.
#[derive(Clone, Copy, Debug, Default)]
pub struct SystemClock;

/// A clock that moves when it is told to.
#[derive(Debug, Default)]
pub struct ManualClock {
    now_ns: AtomicI64,
}

impl Clock for SystemClock {
    fn now_ns(&self) -> i64 {
        let since_epoch = SystemTime::now().duration_since(UNIX_EPOCH);
        // A clock before 1970 is not set: the epoch is as good as any other wrong time.
        since_epoch.map_or(0, |elapsed| {
            i64::try_from(elapsed.as_nanos()).unwrap_or(i64::MAX)
        })
    }

    fn monotonic_ns(&self) -> i64 {
        static START: LazyLock<Instant> = LazyLock::new(Instant::now);
        i64::try_from(START.elapsed().as_nanos()).unwrap_or(i64::MAX)
    }
}

impl ManualClock {
    /// A clock that stands at `now_ns` nanoseconds since the Unix epoch.
    #[must_use]
    pub fn at(now_ns: i64) -> Self {
        Self {
            now_ns: AtomicI64::new(now_ns),
        }
    }

    /// Moves the clock by `delta_ns` nanoseconds.
    pub fn advance(&self, delta_ns: i64) {
        self.now_ns.fetch_add(delta_ns, Ordering::SeqCst);
    }
}

impl Clock for ManualClock {
    fn now_ns(&self) -> i64 {
        self.now_ns.load(Ordering::SeqCst)
    }

    fn monotonic_ns(&self) -> i64 {
        self.now_ns()
    }
}
