//! The exact test for few samples.
//!
//! Of the samples of both sides together each is one of after with some probability; without a change
//! it is the part of after in what both sides could have had. So those of after are binomial, and nothing
//! is approximated. Mid-P, half the probability of the very outcome, because an exact test of whole
//! numbers is otherwise too careful.

use std::collections::HashMap;

use crate::distributions::ALPHA;

/// Halvings of an interval in which a bound is.
const STEPS: usize = 40;

/// The test, which keeps the bounds that it has found: few samples make few different outcomes.
#[derive(Debug, Default)]
pub(crate) struct ExactTest {
    /// By samples of after, and of both sides.
    bounds: HashMap<(u32, u32), (f64, f64)>,
    ln_factorials: Vec<f64>,
}

/// What it says.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct ExactResult {
    pub(crate) p: f64,
    /// Of the ratio.
    pub(crate) low: f64,
    /// Of the ratio; may be infinite.
    pub(crate) high: f64,
}

impl ExactTest {
    /// `odds` are the samples of after for each one of before, where nothing changed.
    pub(crate) fn of(&mut self, before: u32, after: u32, odds: f64) -> ExactResult {
        let all = before + after;
        let expected = odds / (1.0 + odds);
        let lower = self.lower_tail(after, all, expected);
        let (low, high) = self.bounds_of(after, all);
        let ratio = |part: f64| part / (1.0 - part) / odds;
        ExactResult {
            p: (2.0 * lower.min(1.0 - lower)).clamp(0.0, 1.0),
            low: ratio(low),
            high: ratio(high),
        }
    }

    /// The probabilities that the data leave, 95 %.
    fn bounds_of(&mut self, after: u32, all: u32) -> (f64, f64) {
        if let Some(&known) = self.bounds.get(&(after, all)) {
            return known;
        }
        let low = if after == 0 {
            0.0
        } else {
            self.part_with_lower_tail(after, all, 1.0 - ALPHA / 2.0)
        };
        let high = if after == all {
            1.0
        } else {
            self.part_with_lower_tail(after, all, ALPHA / 2.0)
        };
        self.bounds.insert((after, all), (low, high));
        (low, high)
    }

    /// The probability under which so much is at or below `after`; the more probable, the less.
    fn part_with_lower_tail(&mut self, after: u32, all: u32, tail: f64) -> f64 {
        let (mut low, mut high) = (0.0, 1.0);
        for _ in 0..STEPS {
            let middle = f64::midpoint(low, high);
            if self.lower_tail(after, all, middle) > tail {
                low = middle;
            } else {
                high = middle;
            }
        }
        f64::midpoint(low, high)
    }

    /// P(X < after) + P(X = after) / 2.
    fn lower_tail(&mut self, after: u32, all: u32, part: f64) -> f64 {
        // What is on one side only may be a lot, and needs no sum.
        if after == 0 {
            return 0.5 * (1.0 - part).powf(f64::from(all));
        }
        if after == all {
            return 1.0 - 0.5 * part.powf(f64::from(all));
        }
        let below: f64 = (0..after)
            .map(|count| self.probability(count, all, part))
            .sum();
        below + 0.5 * self.probability(after, all, part)
    }

    fn probability(&mut self, count: u32, all: u32, part: f64) -> f64 {
        if part <= 0.0 || part >= 1.0 {
            let certain = if part <= 0.0 { 0 } else { all };
            return if count == certain { 1.0 } else { 0.0 };
        }
        let ways =
            self.ln_factorial(all) - self.ln_factorial(count) - self.ln_factorial(all - count);
        let of_after = f64::from(count) * part.ln();
        let of_before = f64::from(all - count) * (-part).ln_1p();
        (ways + of_after + of_before).exp()
    }

    fn ln_factorial(&mut self, number: u32) -> f64 {
        let known = &mut self.ln_factorials;
        if known.is_empty() {
            known.push(0.0);
        }
        while known.len() <= number as usize {
            let next = known[known.len() - 1] + (known.len() as f64).ln();
            known.push(next);
        }
        known[number as usize]
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn test(before: u32, after: u32, odds: f64) -> ExactResult {
        ExactTest::default().of(before, after, odds)
    }

    #[test]
    fn mid_p_is_what_one_counts_by_hand() {
        // Of three samples all are of after: 1/8, half of it counts, on both ends.
        assert!((test(0, 3, 1.0).p - 0.125).abs() < 1e-12);
        // 2 of 10: (1 + 10 + 45/2) / 1024, twice.
        assert!((test(8, 2, 1.0).p - 2.0 * 33.5 / 1024.0).abs() < 1e-12);
        assert!((test(5, 5, 1.0).p - 1.0).abs() < 1e-12);
    }

    #[test]
    fn what_is_new_has_a_least_ratio() {
        let new = test(0, 20, 1.0);
        assert!(new.low > 4.0 && new.low < 8.0, "{new:?}");
        assert_eq!(new.high, f64::INFINITY);
        let gone = test(20, 0, 1.0);
        assert_eq!(gone.low, 0.0);
        assert!((gone.high * new.low - 1.0).abs() < 1e-6, "{gone:?}");
        let many = test(0, 60_000, 1.0);
        assert_eq!(many.p, 0.0);
        assert!(many.low > 10_000.0 && many.low.is_finite(), "{many:?}");
    }

    #[test]
    fn twice_the_exposure_expects_twice_the_samples() {
        let even = test(10, 20, 2.0);
        assert!(even.p > 0.9, "{even:?}");
        assert!(even.low < 1.0 && even.high > 1.0, "{even:?}");
    }

    proptest! {
        #[test]
        fn sides_may_be_exchanged(before in 0_u32..40, after in 0_u32..40, odds in 0.1_f64..10.0) {
            prop_assume!(before + after > 0);
            let (one, other) = (test(before, after, odds), test(after, before, 1.0 / odds));
            prop_assert!((one.p - other.p).abs() < 1e-9, "{one:?} {other:?}");
            prop_assert!((0.0..=1.0).contains(&one.p));
            prop_assert!(one.low <= one.high);
            if one.high.is_finite() {
                prop_assert!((one.high * other.low - 1.0).abs() < 1e-4, "{one:?} {other:?}");
            }
        }

        #[test]
        fn the_interval_leaves_out_one_just_where_p_is_small(
            before in 0_u32..40,
            after in 0_u32..40,
            odds in 0.1_f64..10.0,
        ) {
            prop_assume!(before + after > 0);
            let result = test(before, after, odds);
            let holds_one = result.low <= 1.0 && 1.0 <= result.high;
            prop_assert!(holds_one == (result.p >= ALPHA) || (result.p - ALPHA).abs() < 1e-6);
        }
    }
}
