//! The two distributions that are asked for: Student's t, and the normal one where nothing is estimated.

use statrs::distribution::ContinuousCDF;
use statrs::distribution::Normal;
use statrs::distribution::StudentsT;

/// What intervals leave out on both ends together.
pub(crate) const ALPHA: f64 = 0.05;

/// The distribution of an error in units of its standard error.
#[derive(Clone, Debug)]
pub(crate) enum ErrorDistribution {
    Student(StudentsT),
    Normal(Normal),
}

impl ErrorDistribution {
    /// With so many degrees of freedom; without any the standard error is not estimated but known.
    pub(crate) fn with_freedom(freedom: f64) -> Self {
        if freedom > 0.0
            && let Ok(student) = StudentsT::new(0.0, 1.0, freedom)
        {
            return Self::Student(student);
        }
        Self::Normal(Normal::standard())
    }

    /// How likely chance makes an error as large as this, either way.
    pub(crate) fn two_sided(&self, error: f64) -> f64 {
        let tail = match self {
            Self::Student(student) => student.sf(error.abs()),
            Self::Normal(normal) => normal.sf(error.abs()),
        };
        (2.0 * tail).clamp(0.0, 1.0)
    }

    /// The error that chance exceeds in one of twenty cases, either way.
    pub(crate) fn critical(&self) -> f64 {
        let quantile = 1.0 - ALPHA / 2.0;
        match self {
            Self::Student(student) => student.inverse_cdf(quantile),
            Self::Normal(normal) => normal.inverse_cdf(quantile),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Of tables of Student's t.
    #[test]
    fn critical_values_are_those_of_tables() {
        let cases = [
            (1.0, 12.706_205),
            (2.0, 4.302_653),
            (6.0, 2.446_912),
            (18.0, 2.100_922),
            (98.0, 1.984_467),
            (0.0, 1.959_964),
        ];
        for (freedom, expected) in cases {
            let distribution = ErrorDistribution::with_freedom(freedom);
            let found = distribution.critical();
            assert!((found - expected).abs() < 1e-5, "{freedom}: {found}");
            let p = distribution.two_sided(expected);
            assert!((p - ALPHA).abs() < 1e-6, "{freedom}: {p}");
            let p = distribution.two_sided(-expected);
            assert!((p - ALPHA).abs() < 1e-6, "{freedom}: {p}");
        }
    }

    #[test]
    fn far_tails_are_small_and_not_nothing() {
        let p = ErrorDistribution::with_freedom(18.0).two_sided(20.0);
        assert!(p > 0.0 && p < 1e-12, "{p}");
        assert_eq!(ErrorDistribution::with_freedom(0.0).two_sided(0.0), 1.0);
    }
}
