//! Who is compared with whom: what part of a side each cluster is, and how much is known of how clusters
//! differ.

use crate::compare::Comparison;
use crate::counts::Counts;
use crate::counts::Side;
use crate::normalization::Normalization;

/// However much larger than all others one of several clusters is, there are two of them.
const LEAST_FREEDOM: f64 = 1.0;

/// What all functions of a comparison have in common.
#[derive(Clone, Debug)]
pub(crate) struct Design {
    /// By cluster the part of its side, before and after. They sum to one.
    parts: [Vec<f64>; 2],
    /// Degrees of freedom of each side alone.
    freedom_of_side: [f64; 2],
    is_paired: bool,
    /// Degrees of freedom of what clusters differ by; 0 where one cluster a side tells nothing of it.
    pub(crate) freedom: f64,
}

/// What a function has in a cluster.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Residual {
    /// Beyond the cluster's part of it.
    pub(crate) value: f64,
    /// That part.
    pub(crate) part: f64,
}

impl Design {
    pub(crate) fn of(comparison: &Comparison) -> Self {
        let parts = [&comparison.before, &comparison.after]
            .map(|side| parts_of(side, comparison.normalization));
        let [before, after] = &parts;
        let is_paired = comparison.is_paired && before.len() == after.len() && before.len() > 1;
        let freedom_of_side = [before, after].map(|parts| freedom_of(parts.iter().copied()));
        let freedom = if is_paired {
            let both = before.iter().zip(after);
            freedom_of(both.map(|(before, after)| f64::midpoint(*before, *after)))
        } else {
            freedom_of_side.iter().sum()
        };
        Self {
            parts,
            freedom_of_side,
            is_paired,
            freedom,
        }
    }

    pub(crate) const fn is_paired(&self) -> bool {
        self.is_paired
    }

    /// What part of its side each cluster is, before or after.
    pub(crate) fn parts(&self, side: usize) -> &[f64] {
        &self.parts[side]
    }

    /// Degrees of freedom of the clusters of one side, before or after.
    pub(crate) const fn freedom_of_side(&self, side: usize) -> f64 {
        self.freedom_of_side[side]
    }

    /// What a function has in each cluster: before or after.
    pub(crate) fn residuals<'a>(
        &'a self,
        side: usize,
        counts: &'a Counts,
    ) -> impl Iterator<Item = Residual> + 'a {
        let sum = counts.sum();
        let parts = self.parts[side].iter();
        parts
            .zip(counts.by_cluster.iter())
            .map(move |(&part, &value)| Residual {
                value: value - part * sum,
                part,
            })
    }
}

fn parts_of(side: &Side, normalization: Normalization) -> Vec<f64> {
    let by_exposure = normalization == Normalization::Absolute
        && side.exposure.len() == side.all.by_cluster.len()
        && side.exposure.iter().sum::<f64>() > 0.0;
    let sizes = if by_exposure {
        &side.exposure
    } else {
        &side.all.by_cluster
    };
    let whole: f64 = sizes.iter().sum();
    if whole <= 0.0 {
        return vec![0.0; sizes.len()];
    }
    sizes.iter().map(|size| size / whole).collect()
}

/// Of clusters of one size their number less one. One that is far larger than the others decides the
/// sum alone, and what the others differ by tells little of it: they count as few. A cluster without any
/// sample says nothing, and one alone knows of no difference.
fn freedom_of(parts: impl Iterator<Item = f64>) -> f64 {
    let used = parts.filter(|&part| part > 0.0);
    let (count, squares) = used.fold((0, 0.0), |(count, squares), part| {
        (count + 1, squares + part * part)
    });
    if count < 2 {
        return 0.0;
    }
    (1.0 / squares - 1.0).max(LEAST_FREEDOM)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn comparison(before: &[f64], after: &[f64], is_paired: bool) -> Comparison {
        let side = |counts: &[f64]| Side {
            all: Counts::of_samples(counts.to_vec()),
            exposure: Vec::new(),
        };
        Comparison {
            normalization: Normalization::Share,
            fdr: 0.05,
            before: side(before),
            after: side(after),
            is_paired,
            is_sampled: true,
            seed: 1,
        }
    }

    #[test]
    fn freedom_is_what_clusters_leave() {
        let freedom = |before: &[f64], after: &[f64], is_paired| {
            Design::of(&comparison(before, after, is_paired)).freedom
        };
        let is_near = |one: f64, other: f64| (one - other).abs() < 1e-9;
        assert!(is_near(freedom(&[5.0; 4], &[5.0; 3], false), 5.0));
        assert!(is_near(freedom(&[5.0; 4], &[5.0], false), 3.0));
        assert_eq!(freedom(&[5.0], &[5.0], false), 0.0);
        assert_eq!(freedom(&[5.0, 0.0], &[5.0], false), 0.0);
        assert!(is_near(freedom(&[5.0; 4], &[5.0; 4], true), 3.0));
        // Not the same clusters on both sides.
        assert!(is_near(freedom(&[5.0; 4], &[5.0; 3], true), 5.0));
        // One that is nearly everything tells next to nothing, with or without a partner.
        let lopsided = [1000.0, 1.0, 1.0, 1.0];
        assert_eq!(freedom(&lopsided, &lopsided, true), LEAST_FREEDOM);
        assert_eq!(freedom(&lopsided, &lopsided, false), 2.0 * LEAST_FREEDOM);
        assert!(freedom(&[4.0, 2.0, 2.0], &[1.0; 3], false) < 4.0);
    }

    #[test]
    fn residuals_add_up_to_nothing() {
        let design = Design::of(&comparison(&[10.0, 30.0], &[1.0, 1.0], false));
        let counts = Counts::of_samples(vec![4.0, 4.0]);
        let residuals = design.residuals(0, &counts);
        let residuals: Vec<(f64, f64)> = residuals.map(|it| (it.value, it.part)).collect();
        assert_eq!(residuals, [(2.0, 0.25), (-2.0, 0.75)]);
    }
}
