//! What the samples behind a stored value weigh.

use candela_model::ProfileType;

use crate::run::Run;

/// What is known of the samples of a row.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum SampleWeight {
    /// Each weighs this much, so the value tells how many there were.
    Each(f64),
    /// The row is taken for one sample: it is more, but nobody knows how many. Errors seem larger
    /// than they are, never smaller.
    Row,
}

impl SampleWeight {
    /// That of a run whose values become those of this type.
    pub(crate) fn of(run: &Run, profile_type: &ProfileType) -> Self {
        if let Some(value) = run.event_value {
            return Self::Each(value.get() as f64 / run.divisor as f64);
        }
        let value = profile_type.value_of_sample(run.row.period);
        value.map_or(Self::Row, |value| Self::Each(value as f64))
    }

    /// What a value adds to the sum of the squares of weights.
    #[inline]
    pub(crate) fn squares(self, value: f64) -> f64 {
        match self {
            Self::Each(weight) => value.abs() * weight,
            Self::Row => value * value,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn squares_of_equal_samples() {
        assert_eq!(SampleWeight::Each(10.0).squares(70.0), 700.0);
        assert_eq!(SampleWeight::Row.squares(70.0), 4900.0);
    }
}
