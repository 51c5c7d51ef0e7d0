//! The test of the logarithm of a ratio, for all functions that have enough samples.

use crate::distributions::ErrorDistribution;

/// The test of one comparison: its distribution is that of all its functions.
#[derive(Debug)]
pub(crate) struct LogRatioTest {
    errors: ErrorDistribution,
    critical: f64,
}

/// What it says.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct LogRatioResult {
    pub(crate) p: f64,
    /// Of the ratio.
    pub(crate) low: f64,
    /// Of the ratio.
    pub(crate) high: f64,
}

impl LogRatioTest {
    pub(crate) fn with_freedom(freedom: f64) -> Self {
        let errors = ErrorDistribution::with_freedom(freedom);
        Self {
            critical: errors.critical(),
            errors,
        }
    }

    /// `ratio` is positive.
    pub(crate) fn of(&self, ratio: f64, variance: f64) -> LogRatioResult {
        let logarithm = ratio.ln();
        let error = variance.max(0.0).sqrt();
        let reach = self.critical * error;
        LogRatioResult {
            p: self.p(logarithm, error),
            low: (logarithm - reach).exp(),
            high: (logarithm + reach).exp(),
        }
    }

    /// What does not vary is what it is: everything is 100 % of everything, before and after.
    fn p(&self, logarithm: f64, error: f64) -> f64 {
        if error > 0.0 {
            return self.errors.two_sided(logarithm / error);
        }
        // Not compared with zero: a quotient of sums is off by rounding.
        if logarithm.abs() < 1e-9 { 1.0 } else { 0.0 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_interval_ends_where_p_is_five_percent() {
        for freedom in [0.0, 3.0, 18.0] {
            let test = LogRatioTest::with_freedom(freedom);
            let result = test.of(1.3, 0.01);
            for bound in [result.low, result.high] {
                let p = test.of(1.3 / bound, 0.01).p;
                assert!((p - 0.05).abs() < 1e-5, "{freedom}: {p}");
            }
            assert!((result.low * result.high - 1.69).abs() < 1e-9);
        }
    }

    #[test]
    fn everything_is_everything() {
        let test = LogRatioTest::with_freedom(18.0);
        let result = test.of(1.0, 0.0);
        assert_eq!((result.p, result.low, result.high), (1.0, 1.0, 1.0));
        assert_eq!(test.of(1.1, 0.0).p, 0.0);
    }
}
