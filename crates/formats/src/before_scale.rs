//! What values before are multiplied by in the picture of a comparison.

use std::fmt;

use candela_model::NodeValue;

/// How values before are made comparable with those after.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub enum BeforeScale {
    /// Not at all: values are compared.
    #[default]
    AsMeasured,
    /// So that both totals are the same: shares are compared.
    SameTotal,
    /// By a factor that somebody has found out: `size_factor` of [`crate::DiffStatistics`].
    By(f64),
}

impl BeforeScale {
    /// Multiplies values before, of a whole of `before`, where that after is `after`. What comes out is
    /// rounded to the nearest.
    pub(crate) fn apply(self, values: &mut [NodeValue], before: i64, after: i64) {
        match self {
            Self::AsMeasured => {}
            Self::SameTotal if before == 0 => {}
            Self::SameTotal => multiply(values, |value| times_ratio(value, after, before)),
            Self::By(factor) => multiply(values, |value| (value as f64 * factor).round() as i64),
        }
    }
}

/// What is said behind values that are scaled.
impl fmt::Display for BeforeScale {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::AsMeasured => Ok(()),
            Self::SameTotal => formatter.write_str(" (before scaled to the same total)"),
            Self::By(factor) => write!(formatter, " (before × {factor:.4})"),
        }
    }
}

fn multiply(values: &mut [NodeValue], scaled: impl Fn(i64) -> i64) {
    for value in values {
        value.total = scaled(value.total);
        value.self_value = scaled(value.self_value);
    }
}

/// `value * to / from`, rounded to the nearest: a floating-point number would lose units of large values.
fn times_ratio(value: i64, to: i64, from: i64) -> i64 {
    let exact = i128::from(value) * i128::from(to);
    let (quotient, remainder) = (exact / i128::from(from), exact % i128::from(from));
    let is_half = 2 * remainder.unsigned_abs() >= u128::from(from.unsigned_abs());
    let away_from_zero = if (exact < 0) == (from < 0) { 1 } else { -1 };
    let rounded = quotient + if is_half { away_from_zero } else { 0 };
    rounded.clamp(i64::MIN.into(), i64::MAX.into()) as i64
}

#[cfg(test)]
mod tests {
    use super::*;

    fn scaled(scale: BeforeScale, totals: [i64; 5], [before, after]: [i64; 2]) -> [i64; 5] {
        let mut values = totals.map(|total| NodeValue {
            total,
            self_value: 0,
        });
        scale.apply(&mut values, before, after);
        values.map(|value| value.total)
    }

    #[test]
    fn values_are_rounded_to_the_nearest() {
        let values = [1, 2, 5, -5, i64::MAX];
        let same_total = |sides| scaled(BeforeScale::SameTotal, values, sides);
        assert_eq!(same_total([10, 25]), [3, 5, 13, -13, i64::MAX]);
        // What has no total cannot be made like another.
        assert_eq!(same_total([0, 25]), values);
        assert_eq!(scaled(BeforeScale::AsMeasured, values, [10, 25]), values);
        let halved = scaled(BeforeScale::By(0.5), values, [10, 25]);
        assert_eq!(halved[..4], [1, 1, 3, -3]);
    }
}
