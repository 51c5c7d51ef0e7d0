//! How fast a tenant may send: a bucket of bytes that fills by itself.
//!
//! A request may come whenever the bucket is not overdrawn, whatever its size, and then takes what
//! it takes. So one that is larger than the burst is possible, as long as it is no habit: those
//! behind it wait until the bucket has made up for it. Over time nobody gets more than the rate,
//! and large requests do not starve beside small ones, as they would if they had to wait for a
//! bucket that is full enough.

use std::time::Duration;

use crate::tenant_limits::Bound;

const NANOSECONDS_PER_SECOND: i128 = 1_000_000_000;

/// The rate of a tenant, and what may come at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Pace {
    /// Bytes a second; 0 is no limit.
    pub(crate) rate: Bound,
    /// Bytes.
    pub(crate) burst: Bound,
}

/// What a tenant may send now.
#[derive(Clone, Copy, Debug)]
pub(crate) struct TokenBucket {
    /// In billionths of a byte, so that nothing is lost to rounding however often it is filled.
    /// Negative as long as it is overdrawn.
    level: i128,
    filled_ns: i64,
}

impl TokenBucket {
    /// A full one.
    pub(crate) fn new(pace: Pace, now_ns: i64) -> Self {
        Self {
            level: full(pace),
            filled_ns: now_ns,
        }
    }

    /// `None` when a request may come, else how long until one may.
    pub(crate) fn wait(&mut self, pace: Pace, now_ns: i64) -> Option<Duration> {
        self.fill(pace, now_ns);
        let rate = u128::from(pace.rate.get());
        if rate == 0 || self.level >= 0 {
            return None;
        }
        let nanoseconds = self.level.unsigned_abs().div_ceil(rate);
        let nanoseconds = u64::try_from(nanoseconds).unwrap_or(u64::MAX);
        Some(Duration::from_nanos(nanoseconds))
    }

    /// Takes the bytes of a request that was let in.
    pub(crate) fn take(&mut self, bytes: u64, pace: Pace, now_ns: i64) {
        self.fill(pace, now_ns);
        self.level -= i128::from(bytes) * NANOSECONDS_PER_SECOND;
    }

    fn fill(&mut self, pace: Pace, now_ns: i64) {
        let elapsed_ns = now_ns.saturating_sub(self.filled_ns).max(0);
        self.filled_ns = now_ns;
        let poured = i128::from(pace.rate.get()) * i128::from(elapsed_ns);
        self.level = (self.level + poured).min(full(pace));
    }
}

fn full(pace: Pace) -> i128 {
    i128::from(pace.burst.get()) * NANOSECONDS_PER_SECOND
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: i64 = 1_000_000_000;

    fn pace(rate: u64, burst: u64) -> Pace {
        Pace {
            rate: Bound::new(rate),
            burst: Bound::new(burst),
        }
    }

    #[test]
    fn the_burst_may_come_at_once_and_then_the_rate_counts() {
        let pace = pace(100, 50);
        let mut bucket = TokenBucket::new(pace, 0);
        bucket.take(50, pace, 0);
        assert_eq!(bucket.wait(pace, 0), None);
        bucket.take(10, pace, 0);
        assert_eq!(bucket.wait(pace, 0), Some(Duration::from_millis(100)));
        assert_eq!(
            bucket.wait(pace, SECOND / 20),
            Some(Duration::from_millis(50))
        );
        assert_eq!(bucket.wait(pace, SECOND / 10), None);
    }

    #[test]
    fn a_request_larger_than_the_burst_is_let_in_and_paid_for() {
        let pace = pace(100, 50);
        let mut bucket = TokenBucket::new(pace, 0);
        assert_eq!(bucket.wait(pace, 0), None);
        bucket.take(1050, pace, 0);
        assert_eq!(bucket.wait(pace, 0), Some(Duration::from_secs(10)));
        assert_eq!(bucket.wait(pace, 10 * SECOND), None);
    }

    #[test]
    fn a_pause_saves_no_more_than_the_burst() {
        let pace = pace(100, 50);
        let mut bucket = TokenBucket::new(pace, 0);
        bucket.take(51, pace, 3600 * SECOND);
        assert!(bucket.wait(pace, 3600 * SECOND).is_some());
    }

    #[test]
    fn over_time_a_busy_sender_gets_the_rate() {
        let pace = pace(1000, 200);
        let mut bucket = TokenBucket::new(pace, 0);
        let mut taken = 0;
        for tick in 0..100_000 {
            let now_ns = tick * SECOND / 1000;
            if bucket.wait(pace, now_ns).is_none() {
                bucket.take(7, pace, now_ns);
                taken += 7;
            }
        }
        assert!((100_000..100_300).contains(&taken), "{taken}");
    }

    #[test]
    fn without_a_rate_nobody_waits() {
        let pace = pace(0, 0);
        let mut bucket = TokenBucket::new(pace, 0);
        bucket.take(u64::MAX, pace, 0);
        assert_eq!(bucket.wait(pace, 0), None);
    }

    #[test]
    fn a_clock_that_goes_back_gives_nothing() {
        let pace = pace(100, 0);
        let mut bucket = TokenBucket::new(pace, SECOND);
        bucket.take(100, pace, SECOND);
        assert_eq!(bucket.wait(pace, 0), Some(Duration::from_secs(1)));
    }
}
