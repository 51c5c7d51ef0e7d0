//! When to try again.

use std::time::Duration;
use std::time::Instant;

const FIRST: Duration = Duration::from_secs(1);
const LONGEST: Duration = Duration::from_secs(60);

/// Waits that double with each failure in a row.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Backoff {
    wait: Duration,
    not_before: Option<Instant>,
}

impl Backoff {
    pub(crate) fn may_try(&self, now: Instant) -> bool {
        self.not_before.is_none_or(|moment| now >= moment)
    }

    /// Whether the last attempt failed.
    pub(crate) fn is_waiting(&self) -> bool {
        self.not_before.is_some()
    }

    pub(crate) fn failed(&mut self, now: Instant) {
        self.wait = (self.wait * 2).clamp(FIRST, LONGEST);
        self.not_before = Some(now + self.wait);
    }

    pub(crate) fn succeeded(&mut self) {
        *self = Self::default();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_double_up_to_a_minute() {
        let mut backoff = Backoff::default();
        let mut now = Instant::now();
        assert!(backoff.may_try(now) && !backoff.is_waiting());
        for expected in [1, 2, 4, 8, 16, 32, 60, 60] {
            backoff.failed(now);
            let wait = Duration::from_secs(expected);
            assert!(!backoff.may_try(now + wait - Duration::from_millis(1)));
            now += wait;
            assert!(backoff.may_try(now));
        }
        assert!(backoff.is_waiting(), "until one succeeds");
        backoff.succeeded();
        assert!(backoff.may_try(now) && !backoff.is_waiting());
    }
}
