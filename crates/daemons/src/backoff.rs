//! How long to wait after failures.

use std::time::Duration;

/// Waits that double with each failure in a row, up to a longest.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Backoff {
    first: Duration,
    longest: Duration,
    failures: u32,
}

impl Backoff {
    /// No failure so far.
    #[must_use]
    pub const fn new(first: Duration, longest: Duration) -> Self {
        Self {
            first,
            longest,
            failures: 0,
        }
    }

    /// It failed again: how long to wait.
    ///
    /// `spread` is a number of this node, by which waits differ up to a fourth: a bucket that is back is not asked by
    /// all nodes at once.
    pub fn failed(&mut self, spread: u64) -> Duration {
        let doubled = self.first.saturating_mul(1 << self.failures.min(20));
        self.failures = self.failures.saturating_add(1);
        let wait = doubled.min(self.longest);
        let spread = u32::try_from(spread % 256).unwrap_or_default();
        wait - wait / 4 / 256 * spread
    }

    /// It works again.
    pub fn succeeded(&mut self) {
        self.failures = 0;
    }

    /// Failures in a row.
    #[must_use]
    pub fn failures(&self) -> u32 {
        self.failures
    }
}

/// A number that nodes differ by.
pub(crate) fn spread_of(node: &str) -> u64 {
    let bytes = node.bytes().map(u64::from);
    bytes.fold(7, |number, byte| number.wrapping_mul(31).wrapping_add(byte))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_double_and_differ_by_node() {
        let mut backoff = Backoff::new(Duration::from_secs(1), Duration::from_secs(60));
        let waits: Vec<u64> = (0..8).map(|_| backoff.failed(0).as_secs()).collect();
        assert_eq!(waits, [1, 2, 4, 8, 16, 32, 60, 60]);
        for spread in [1, 255, u64::MAX] {
            let wait = backoff.failed(spread);
            assert!(wait < Duration::from_secs(60) && wait > Duration::from_secs(45));
        }
        backoff.succeeded();
        assert_eq!(backoff.failed(0).as_secs(), 1);
    }
}
