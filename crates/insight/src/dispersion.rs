//! How much more clusters differ than sampling makes them.
//!
//! The dispersion φ of a function is 1 where its samples are spread over the clusters as chance does.
//! Few clusters tell it badly, so it is drawn towards what functions of like size have.

use crate::counts::Pair;
use crate::design::Design;
use crate::sampling::Variances;

/// Functions of like size, by rank.
const NEIGHBOURS: usize = 50;
/// Fewer say nothing of what is usual.
const FEWEST_NEIGHBOURS: usize = 10;
/// What the neighbours count, in degrees of freedom: as much as five clusters. More would take functions
/// that come in bursts for steady ones.
const FREEDOM_OF_NEIGHBOURS: f64 = 4.0;

/// What the clusters of a function tell of its φ.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct OwnDispersion {
    pub(crate) dispersion: f64,
    /// Of how many degrees of freedom that is.
    pub(crate) freedom: f64,
}

/// The φ of a function by its own clusters; `None` where they tell nothing of it.
pub(crate) fn own_dispersion(
    design: &Design,
    pair: &Pair,
    before: Variances,
    after: Variances,
) -> Option<OwnDispersion> {
    let is_on_both_sides = pair.before.sum() > 0.0 && pair.after.sum() > 0.0;
    if design.is_paired() && is_on_both_sides {
        return of_pairs(design, pair, before, after);
    }
    // What is new or gone has no partners to be compared with: the side that has it tells how it comes.
    of_clusters(design, pair, before, after)
}

/// Pearson's: squared residuals by what sampling makes of them. `1 − part` is what a cluster's own say
/// in the sum takes from its residual. So clusters of one size are divided by their number less one, and of
/// others the large ones count as they do in the ratio: instances differ by more than chance in proportion
/// to their size, and φ of the small ones would be too little for a sum that the large ones decide.
fn of_clusters(
    design: &Design,
    pair: &Pair,
    before: Variances,
    after: Variances,
) -> Option<OwnDispersion> {
    let sides = [(&pair.before, before), (&pair.after, after)];
    let (mut weighted, mut freedom) = (0.0, 0.0);
    for (side, (counts, variances)) in sides.into_iter().enumerate() {
        let of_side = design.freedom_of_side(side);
        if of_side <= 0.0 || variances.of_residual <= 0.0 {
            continue;
        }
        let squares = design
            .residuals(side, counts)
            .filter(|residual| residual.part < 1.0)
            .map(|residual| residual.value * residual.value / (1.0 - residual.part));
        weighted += of_side * squares.sum::<f64>() / variances.of_residual;
        freedom += of_side;
    }
    (freedom > 0.0).then(|| OwnDispersion {
        dispersion: weighted / freedom,
        freedom,
    })
}

/// Of clusters that are on both sides only counts what they differ by in how much they changed: d, the
/// logarithm of a cluster's own ratio. Its variance is taken by residuals, which large clusters decide
/// as they decide the ratio, and which a cluster without any sample has as well. For clusters of one
/// size it is the variance of d.
fn of_pairs(
    design: &Design,
    pair: &Pair,
    before: Variances,
    after: Variances,
) -> Option<OwnDispersion> {
    let (sum_before, sum_after) = (pair.before.sum(), pair.after.sum());
    let of_sampling = before.of_residual / (sum_before * sum_before)
        + after.of_residual / (sum_after * sum_after);
    if design.freedom <= 0.0 || of_sampling <= 0.0 {
        return None;
    }
    let residuals = design
        .residuals(0, &pair.before)
        .zip(design.residuals(1, &pair.after));
    let squares = residuals.map(|(before, after)| {
        let part = f64::midpoint(before.part, after.part);
        let change = after.value / sum_after - before.value / sum_before;
        if part < 1.0 {
            change * change / (1.0 - part)
        } else {
            0.0
        }
    });
    Some(OwnDispersion {
        dispersion: squares.sum::<f64>() / of_sampling,
        freedom: design.freedom,
    })
}

/// For each function its φ, drawn towards the middle one of those of like size; at least 1. `sizes`
/// are in samples.
pub(crate) fn shrunk(own: &[Option<OwnDispersion>], sizes: &[f64]) -> Vec<f64> {
    let mut by_size: Vec<usize> = (0..own.len()).filter(|&it| own[it].is_some()).collect();
    by_size.sort_by(|&one, &other| sizes[one].total_cmp(&sizes[other]).then(one.cmp(&other)));
    let mut shrunk = vec![1.0; own.len()];
    for group in groups(&by_size) {
        let usual = usual_dispersion(group.iter().filter_map(|&it| own[it]));
        for &function in group {
            let Some(own) = own[function] else { continue };
            shrunk[function] = own.drawn_towards(usual).max(1.0);
        }
    }
    shrunk
}

impl OwnDispersion {
    fn drawn_towards(self, usual: Option<f64>) -> f64 {
        let Some(usual) = usual else {
            return self.dispersion;
        };
        (FREEDOM_OF_NEIGHBOURS * usual + self.freedom * self.dispersion)
            / (FREEDOM_OF_NEIGHBOURS + self.freedom)
    }
}

/// Neighbours by size; a rest that is too small stays with the group before it.
fn groups(by_size: &[usize]) -> Vec<&[usize]> {
    let mut groups: Vec<&[usize]> = Vec::new();
    let mut rest = by_size;
    while rest.len() >= NEIGHBOURS + FEWEST_NEIGHBOURS {
        let (group, behind) = rest.split_at(NEIGHBOURS);
        groups.push(group);
        rest = behind;
    }
    groups.push(rest);
    groups
}

/// What is usual among neighbours; `None` for too few.
fn usual_dispersion(neighbours: impl Iterator<Item = OwnDispersion>) -> Option<f64> {
    // The median of such a quotient is less than its mean, the more so the fewer clusters there are
    // (Wilson and Hilferty).
    let mut values: Vec<f64> = neighbours
        .map(|own| own.dispersion / (1.0 - 2.0 / (9.0 * own.freedom)).powi(3))
        .collect();
    if values.len() < FEWEST_NEIGHBOURS {
        return None;
    }
    Some(median(&mut values)?.max(1.0))
}

/// Orders the values. Of two middle ones it is the mean, where that is a number.
pub(crate) fn median(values: &mut [f64]) -> Option<f64> {
    values.sort_by(f64::total_cmp);
    let middle = values.len() / 2;
    let upper = *values.get(middle)?;
    if values.len() % 2 == 1 {
        return Some(upper);
    }
    let mean = f64::midpoint(values[middle - 1], upper);
    Some(if mean.is_nan() { upper } else { mean })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::compare::Comparison;
    use crate::counts::Counts;
    use crate::counts::Side;
    use crate::normalization::Normalization;

    fn own(before: &[f64], after: &[f64], is_paired: bool) -> OwnDispersion {
        let side = |clusters: usize| Side {
            all: Counts::of_samples(vec![100_000.0; clusters]),
            exposure: Vec::new(),
        };
        let comparison = Comparison {
            normalization: Normalization::Share,
            fdr: 0.05,
            before: side(before.len()),
            after: side(after.len()),
            is_paired,
            is_sampled: true,
            seed: 1,
        };
        let pair = Pair {
            before: Counts::of_samples(before.to_vec()),
            after: Counts::of_samples(after.to_vec()),
        };
        let variances = |counts: &Counts, side: &Side| {
            Variances::of(counts, &side.all, comparison.normalization)
        };
        let design = Design::of(&comparison);
        let own = own_dispersion(
            &design,
            &pair,
            variances(&pair.before, &comparison.before),
            variances(&pair.after, &comparison.after),
        );
        own.expect("several clusters")
    }

    fn of_freedom(freedom: f64, dispersion: f64) -> OwnDispersion {
        OwnDispersion {
            dispersion,
            freedom,
        }
    }

    #[test]
    fn clusters_that_differ_are_dispersed() {
        let even = own(&[110.0, 90.0, 100.0], &[95.0, 105.0, 100.0], false).dispersion;
        assert!((0.5..0.9).contains(&even), "{even}");
        let uneven = own(&[200.0, 10.0, 90.0], &[100.0, 180.0, 20.0], false).dispersion;
        assert!(uneven > 20.0, "{uneven}");
    }

    /// Σ (x − μ)² / μ / (clusters − 2), of what is rare.
    #[test]
    fn clusters_of_one_size_are_pearsons() {
        let (before, after) = ([14.0, 8.0, 8.0], [5.0, 15.0, 10.0]);
        let by_hand = (16.0 + 4.0 + 4.0 + 25.0 + 25.0) / 10.0 / 4.0;
        let found = own(&before, &after, false);
        assert!((found.dispersion - by_hand).abs() < 1e-3, "{found:?}");
        assert!((found.freedom - 4.0).abs() < 1e-9, "{found:?}");
    }

    #[test]
    fn pairs_forgive_what_instances_differ_by() {
        let (before, after) = ([100.0, 400.0, 900.0], [121.0, 480.0, 1090.0]);
        assert!(own(&before, &after, false).dispersion > 100.0);
        assert!(own(&before, &after, true).dispersion < 1.0);
    }

    /// Three bursts of twenty are not sixty samples that came one by one.
    #[test]
    fn what_is_on_one_side_only_is_told_by_that_side() {
        let (before, mut after) = ([0.0; 10], [0.0; 10]);
        after[..3].fill(20.0);
        let by_hand = (3.0 * 14.0 * 14.0 + 7.0 * 6.0 * 6.0) / 6.0 / 9.0;
        for is_paired in [false, true] {
            let found = own(&before, &after, is_paired);
            assert!((found.dispersion - by_hand).abs() < 0.01, "{found:?}");
            assert!((found.freedom - 9.0).abs() < 1e-9, "{found:?}");
        }
    }

    #[test]
    fn neighbours_draw_towards_what_is_usual() {
        let mut own: Vec<Option<OwnDispersion>> = vec![Some(of_freedom(18.0, 3.0)); 60];
        own[7] = Some(of_freedom(18.0, 0.2));
        own[8] = Some(of_freedom(18.0, 30.0));
        own[9] = None;
        let sizes = vec![100.0; own.len()];
        let drawn = shrunk(&own, &sizes);
        assert!(drawn[7] > 0.2 && drawn[7] < 3.0, "{}", drawn[7]);
        assert!(drawn[8] > 20.0 && drawn[8] < 30.0, "{}", drawn[8]);
        assert_eq!(drawn[9], 1.0);
        // Alone it is taken as it is, and never less than chance.
        let alone = [2.5, 0.1].map(|dispersion| Some(of_freedom(6.0, dispersion)));
        assert_eq!(shrunk(&alone, &[9.0, 9.0]), [2.5, 1.0]);
    }

    #[test]
    fn medians() {
        assert_eq!(median(&mut []), None);
        assert_eq!(median(&mut [3.0, 1.0, 2.0]), Some(2.0));
        assert_eq!(median(&mut [4.0, 1.0]), Some(2.5));
        let (low, high) = (f64::NEG_INFINITY, f64::INFINITY);
        assert_eq!(median(&mut [high, low]), Some(high));
    }
}
