//! How the scrapes of one endpoint go.

use std::sync::Arc;
use std::time::Duration;
use std::time::Instant;

use crate::scrape::delta::Cumulative;
use crate::scrape::endpoint::Endpoint;
use crate::scrape::failure::Failure;
use crate::scrape::silence::Silence;

/// Failures in a row after which an endpoint is asked less often, and after which rarely.
const SOME_FAILURES: u32 = 4;
const MANY_FAILURES: u32 = 8;

/// What is remembered of an endpoint.
#[derive(Debug)]
pub(crate) struct Progress {
    pub(crate) endpoint: Arc<Endpoint>,
    /// When it is asked next.
    pub(crate) due: Instant,
    pub(crate) is_running: bool,
    /// Why the last scrape gave nothing.
    pub(crate) failure: Option<Failure>,
    pub(crate) failures_in_a_row: u32,
    pub(crate) totals: Cumulative,
    /// When it was answered last, unix nanoseconds; 0 when that tells nothing of the next answer.
    pub(crate) answered_ns: i64,
    pub(crate) silence: Silence,
}

/// How a result compares with the one before: whether somebody should hear of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Turnaround {
    /// As before.
    None,
    /// It fails, or for another reason than before.
    Fails,
    /// It failed and does so no more.
    Works,
}

// === impl Progress ===

impl Progress {
    pub(crate) fn new(endpoint: Endpoint, due: Instant) -> Self {
        Self {
            endpoint: Arc::new(endpoint),
            due,
            is_running: false,
            failure: None,
            failures_in_a_row: 0,
            totals: Cumulative::default(),
            answered_ns: 0,
            silence: Silence::default(),
        }
    }

    /// Notes how a scrape ended.
    pub(crate) fn ended(&mut self, failure: Option<&Failure>) -> Turnaround {
        let reason_before = self.failure.as_ref().map(|failure| failure.reason);
        let turnaround = match (reason_before, failure) {
            (Some(before), Some(now)) if before == now.reason => Turnaround::None,
            (_, Some(_)) => Turnaround::Fails,
            (Some(_), None) => Turnaround::Works,
            (None, None) => Turnaround::None,
        };
        self.failures_in_a_row = match failure {
            Some(_) => self.failures_in_a_row.saturating_add(1),
            None => 0,
        };
        self.failure = failure.cloned();
        turnaround
    }

    /// Intervals that it is left alone beyond the usual one: what keeps failing gets a part of the
    /// requests, and is still found again within four intervals.
    pub(crate) fn rest(&self) -> u32 {
        match self.failures_in_a_row {
            ..SOME_FAILURES => 0,
            SOME_FAILURES..MANY_FAILURES => 1,
            MANY_FAILURES.. => 3,
        }
    }
}

/// Time from now to an endpoint's place in the interval. Right after one it is the next one: clocks
/// do not agree to the microsecond.
pub(crate) fn until_place(phase_ns: u64, interval: Duration, unix_ns: i64) -> Duration {
    let interval_ns = u64::try_from(interval.as_nanos())
        .unwrap_or(u64::MAX)
        .max(1);
    let past_ns = u64::try_from(unix_ns).unwrap_or(0) % interval_ns;
    let left_ns = (phase_ns % interval_ns + interval_ns - past_ns) % interval_ns;
    if left_ns < interval_ns / 4 {
        return Duration::from_nanos(left_ns + interval_ns);
    }
    Duration::from_nanos(left_ns)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scrape::failure::FailureReason;
    use crate::scrape::profiles::default_profiles;

    fn progress() -> Progress {
        let endpoint = Endpoint {
            job: 0,
            profile: default_profiles().remove(0),
            url: "http://a:1/".to_owned(),
            labels: candela_model::Labels::default(),
            window: None,
        };
        Progress::new(endpoint, Instant::now())
    }

    #[test]
    fn somebody_hears_of_changes_only() {
        let mut progress = progress();
        let refused = Failure::new(FailureReason::Unreachable, "refused");
        let late = Failure::new(FailureReason::Timeout, "late");
        assert_eq!(progress.ended(None), Turnaround::None);
        assert_eq!(progress.ended(Some(&refused)), Turnaround::Fails);
        assert_eq!(progress.ended(Some(&refused)), Turnaround::None);
        assert_eq!(progress.ended(Some(&late)), Turnaround::Fails);
        assert_eq!(progress.ended(None), Turnaround::Works);
        assert_eq!(progress.failures_in_a_row, 0);
    }

    #[test]
    fn what_keeps_failing_is_asked_less_often() {
        let mut progress = progress();
        let refused = Failure::new(FailureReason::Unreachable, "refused");
        let rests: Vec<u32> = (0..10)
            .map(|_| {
                progress.ended(Some(&refused));
                progress.rest()
            })
            .collect();
        assert_eq!(rests, [0, 0, 0, 1, 1, 1, 1, 3, 3, 3]);
        progress.ended(None);
        assert_eq!(progress.rest(), 0);
    }

    #[test]
    fn places_are_kept_and_never_taken_twice() {
        let second = Duration::from_secs(1);
        let until = |unix_ns| until_place(4_000_000_000, 15 * second, unix_ns);
        let minute_ns = 60_000_000_000;
        assert_eq!(until(minute_ns + 5_000_000_000), 14 * second);
        assert_eq!(until(minute_ns + 4_000_000_000), 15 * second);
        // A microsecond too early.
        let almost = until(minute_ns + 3_999_999_000);
        assert_eq!(almost, 15 * second + Duration::from_micros(1));
        assert_eq!(until(minute_ns), 4 * second);
    }
}
