//! What "unchanged" means: which multiple of its value before a function is expected to have after.

use crate::counts::Pair;
use crate::counts::Side;
use crate::dispersion::median;

/// Functions with fewer samples, both sides together, have no say in the size factor: their ratios are
/// noise.
const SAMPLES_OF_A_WITNESS: f64 = 50.0;
/// A standard deviation in medians of absolute deviations, where errors are normal.
const DEVIATIONS_PER_MAD: f64 = 1.4826;

/// How two sides are made comparable.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Normalization {
    /// Shares of the whole. They are compositional: make a 30 % function twice as fast, and each
    /// other one has 18 % more.
    #[default]
    Share,
    /// Values by exposure: for each second that an instance was looked at.
    Absolute,
    /// Values by what most functions did: the median of their ratios. What one function gains or
    /// loses does not move the others.
    Robust,
}

/// What a value before is multiplied by to compare.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Scale {
    pub(crate) factor: f64,
    /// How sure the logarithm of the factor is.
    pub(crate) log_variance: f64,
    /// Whether there was nothing to take it from.
    pub(crate) is_unscaled: bool,
}

impl Normalization {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Share, Self::Absolute, Self::Robust];

    /// The name as a parameter: `share`.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Share => "share",
            Self::Absolute => "absolute",
            Self::Robust => "robust",
        }
    }

    /// The normalization of this name.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|known| known.name() == name)
    }

    /// `own` are the functions by their own values: totals hold one another, and a function that
    /// calls many would vote with each.
    pub(crate) fn scale(self, before: &Side, after: &Side, own: &[Pair]) -> Scale {
        let of_shares = || Scale::exact(before.all.sum(), after.all.sum());
        match self {
            Self::Share => of_shares(),
            Self::Absolute => {
                Scale::exact(before.exposure.iter().sum(), after.exposure.iter().sum())
            }
            Self::Robust => median_of_ratios(own).unwrap_or_else(|| Scale {
                is_unscaled: true,
                ..of_shares()
            }),
        }
    }
}

impl Scale {
    /// Sides of which one has nothing are compared as they are.
    fn exact(before: f64, after: f64) -> Self {
        let is_unscaled = before <= 0.0 || after <= 0.0;
        Self {
            factor: if is_unscaled { 1.0 } else { after / before },
            log_variance: 0.0,
            is_unscaled,
        }
    }
}

/// `None` where no function has enough samples, or most are on one side only.
fn median_of_ratios(own: &[Pair]) -> Option<Scale> {
    let witnesses = own
        .iter()
        .filter(|pair| pair.samples() >= SAMPLES_OF_A_WITNESS);
    // The logarithm of what is new is infinite, and that of what is gone: the median does not mind.
    let logarithms = witnesses.map(|pair| (pair.after.sum() / pair.before.sum()).ln());
    let mut logarithms: Vec<f64> = logarithms.collect();
    let middle = median(&mut logarithms)?;
    if !middle.is_finite() {
        return None;
    }
    let mut deviations: Vec<f64> = logarithms.iter().map(|it| (it - middle).abs()).collect();
    let deviation = median(&mut deviations).filter(|it| it.is_finite())? * DEVIATIONS_PER_MAD;
    let count = logarithms.len() as f64;
    Some(Scale {
        factor: middle.exp(),
        // A median is surer than one ratio, and less sure than a mean: by π/2.
        log_variance: std::f64::consts::FRAC_PI_2 * deviation * deviation / count,
        is_unscaled: false,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::counts::Counts;

    fn pair(before: f64, after: f64) -> Pair {
        Pair {
            before: Counts::of_samples(vec![before]),
            after: Counts::of_samples(vec![after]),
        }
    }

    fn side(total: f64, seconds: f64) -> Side {
        Side {
            all: Counts::of_samples(vec![total]),
            exposure: vec![seconds],
        }
    }

    #[test]
    fn one_function_does_not_move_the_others() {
        // Of 1000 samples 300 were of one function, which is now twice as fast.
        let own: Vec<Pair> = std::iter::once(pair(300.0, 150.0))
            .chain((0..7).map(|_| pair(100.0, 100.0)))
            .collect();
        let (before, after) = (side(1000.0, 10.0), side(850.0, 20.0));
        let factor =
            |normalization: Normalization| normalization.scale(&before, &after, &own).factor;
        assert_eq!(factor(Normalization::Share), 0.85);
        assert_eq!(factor(Normalization::Absolute), 2.0);
        assert_eq!(factor(Normalization::Robust), 1.0);
        // By share each of the others seems to have grown by 17.6 %.
        assert!((1.0 / factor(Normalization::Share) - 1.176).abs() < 0.001);
    }

    #[test]
    fn what_is_new_or_rare_is_a_poor_witness() {
        let own = [
            pair(0.0, 500.0),
            pair(200.0, 400.0),
            pair(100.0, 200.0),
            pair(9.0, 1.0),
        ];
        let scale = Normalization::Robust.scale(&side(309.0, 1.0), &side(1101.0, 1.0), &own);
        assert!((scale.factor - 2.0).abs() < 1e-12, "{scale:?}");
        let nothing = Normalization::Robust.scale(&side(10.0, 1.0), &side(30.0, 1.0), &own[3..]);
        assert_eq!(nothing.factor, 3.0);
    }

    #[test]
    fn names_are_read_back() {
        for normalization in Normalization::ALL {
            let name = normalization.name();
            assert_eq!(Normalization::from_name(name), Some(normalization));
        }
        assert_eq!(Normalization::from_name("relative"), None);
    }

    #[test]
    fn nothing_on_a_side_scales_nothing() {
        let scale = Normalization::Share.scale(&side(0.0, 0.0), &side(5.0, 1.0), &[]);
        assert_eq!(scale.factor, 1.0);
        let scale = Normalization::Absolute.scale(&Side::default(), &side(5.0, 1.0), &[]);
        assert_eq!(scale.factor, 1.0);
    }
}
