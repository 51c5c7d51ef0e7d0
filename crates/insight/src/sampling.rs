//! What chance does to a sum of samples.

use crate::counts::Counts;
use crate::normalization::Normalization;

/// Variances of one function on one side, of sampling alone.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Variances {
    /// Of the logarithm of what is compared.
    pub(crate) of_logarithm: f64,
    /// Of what the function differs by from its part of the whole.
    pub(crate) of_residual: f64,
}

impl Variances {
    /// `function` is a part of `all`.
    ///
    /// Each sample comes by itself, so a sum varies by Σw². A share varies less, because the function's
    /// samples are in the whole as well: a function that is everything does not vary at all. Of equal
    /// samples that is 1/x − 1/n for the logarithm.
    pub(crate) fn of(function: &Counts, all: &Counts, normalization: Normalization) -> Self {
        let (sum, whole) = (function.sum(), all.sum());
        if sum <= 0.0 || whole <= 0.0 {
            return Self::default();
        }
        let share = (sum / whole).min(1.0);
        let others = (all.squares - function.squares).max(0.0);
        let of_share = (1.0 - share).powi(2) * function.squares + share * share * others;
        let of_sum = function.squares;
        let squared = sum * sum;
        match normalization {
            Normalization::Share => Self {
                of_logarithm: of_share / squared,
                of_residual: of_share,
            },
            Normalization::Absolute => Self {
                of_logarithm: of_sum / squared,
                of_residual: of_sum,
            },
            // Clusters are compared by their shares, which takes out how busy each was; the two
            // sides are not.
            Normalization::Robust => Self {
                of_logarithm: of_sum / squared,
                of_residual: of_share,
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_equal_samples_it_is_what_textbooks_say() {
        let (function, all) = (
            Counts::of_samples(vec![60.0, 40.0]),
            Counts::of_samples(vec![500.0, 500.0]),
        );
        let share = Variances::of(&function, &all, Normalization::Share);
        assert!((share.of_logarithm - (1.0 / 100.0 - 1.0 / 1000.0)).abs() < 1e-12);
        assert!((share.of_residual - 100.0 * 0.9).abs() < 1e-9);
        let absolute = Variances::of(&function, &all, Normalization::Absolute);
        assert!((absolute.of_logarithm - 1.0 / 100.0).abs() < 1e-12);
        let everything = Variances::of(&all, &all, Normalization::Share);
        assert_eq!(everything.of_logarithm, 0.0);
    }

    #[test]
    fn weights_of_one_size_change_nothing() {
        let heavy = |counts: &[f64]| Counts {
            by_cluster: counts.iter().map(|it| it * 10.0).collect(),
            squares: counts.iter().sum::<f64>() * 100.0,
        };
        let light = Variances::of(
            &Counts::of_samples(vec![30.0]),
            &Counts::of_samples(vec![90.0]),
            Normalization::Share,
        );
        let heavy = Variances::of(&heavy(&[30.0]), &heavy(&[90.0]), Normalization::Share);
        assert!((light.of_logarithm - heavy.of_logarithm).abs() < 1e-12);
    }
}
