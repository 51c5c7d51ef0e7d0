//! Confirmation without a model: had clusters been on the other side, how often would a function have
//! changed as much?
//!
//! Student's t trusts that clusters differ as errors do, and that neighbours tell by how much. Here nothing
//! is trusted but that, without a change, it is the same which side a cluster is on. So the clusters are
//! dealt anew to both sides, or, where they are the same ones, sides are exchanged within some; and the
//! statistic is worked out each time.

use crate::arrangements::Arrangements;
use crate::counts::Pair;
use crate::design::Design;
use crate::distributions::ALPHA;
use crate::normalization::Scale;

/// Where there are more arrangements, so many are drawn. Then a p of 5 % is sure to a seventh of it.
const MOST_ARRANGEMENTS: usize = 1000;
/// So many at least, of whatever many functions: then it is sure to half of it.
const FEWEST_ARRANGEMENTS: usize = 100;
/// Clusters that are looked at, in all functions and arrangements: some tenths of a second. Where two
/// services are compared every function is new or gone, and fewer arrangements have to do.
const MOST_STEPS: usize = 50_000_000;
/// Statistics so near to each other are the same but for rounding.
const ROUNDING: f64 = 1e-9;

/// What exchanging clusters says of a significant change.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Confirmation {
    /// It makes so large a change in at most one of twenty arrangements.
    Confirmed,
    /// It makes so large a change more often: what was found may be chance all the same.
    Doubtful,
    /// There are so few clusters that no change, however large, could be confirmed.
    TooFew,
}

/// What all functions of a comparison are confirmed by.
#[derive(Debug)]
pub(crate) struct Permutations {
    /// What each cluster would have of a function that is the same on both sides: those before, then
    /// those after. Clusters of which nothing is known are left out.
    sizes: Vec<f64>,
    /// The positions of these clusters on their side.
    used: [Vec<usize>; 2],
    is_paired: bool,
    /// `None` where there are too few clusters.
    arrangements: Option<Arrangements>,
}

/// What clusters have of a function.
struct Values {
    /// In the order of the sizes.
    by_cluster: Vec<f64>,
    /// Of one sample.
    weight: f64,
}

/// One side of an arrangement.
#[derive(Clone, Copy, Debug, Default)]
struct Sums {
    value: f64,
    size: f64,
}

/// By how much a cluster differs from its part of its side, in parts of the side.
#[derive(Clone, Copy, Debug)]
struct Residual {
    value: f64,
    part: f64,
}

// === impl Confirmation ===

impl Confirmation {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Confirmed, Self::Doubtful, Self::TooFew];

    /// `confirmed`, `doubtful` or `too_few`.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Confirmed => "confirmed",
            Self::Doubtful => "doubtful",
            Self::TooFew => "too_few",
        }
    }

    /// The one of this name.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|known| known.name() == name)
    }

    /// Not by the rate of false discoveries, which chose the functions: it is no probability of any one.
    pub(crate) fn of(permutation_p: Option<f64>) -> Self {
        match permutation_p {
            None => Self::TooFew,
            Some(p) if p <= ALPHA => Self::Confirmed,
            Some(_) => Self::Doubtful,
        }
    }
}

// === impl Permutations ===

impl Permutations {
    /// For so many functions, one at least.
    pub(crate) fn of(design: &Design, scale: Scale, functions: usize, seed: u64) -> Self {
        let is_paired = design.is_paired();
        let used = used_clusters(design);
        // A cluster takes its size along, with the size factor of its side in it: so an arrangement
        // compares what is comparable, in each normalization and however unlike clusters are.
        let before = used[0].iter().map(|&it| design.parts(0)[it]);
        let after = used[1].iter().map(|&it| design.parts(1)[it] * scale.factor);
        let sizes: Vec<f64> = before.chain(after).collect();
        let most = MOST_STEPS / functions.max(1) / sizes.len().max(1);
        let most = most.clamp(FEWEST_ARRANGEMENTS, MOST_ARRANGEMENTS);
        let arrangements = if is_paired {
            Arrangements::of_pairs(used[0].len(), most, seed)
        } else {
            Arrangements::of_clusters(used[0].len(), used[1].len(), most, seed)
        };
        Self {
            sizes,
            used,
            is_paired,
            arrangements,
        }
    }

    /// How many arrangements are looked at, that of the data included; 0 where they can tell nothing.
    pub(crate) fn looked_at(&self) -> usize {
        self.arrangements.as_ref().map_or(0, Arrangements::count)
    }

    /// In how large a part of the arrangements a function changes as much as it did. `None` where there
    /// are too few of them.
    pub(crate) fn p(&self, pair: &Pair) -> Option<f64> {
        let arrangements = self.arrangements.as_ref()?;
        let values = self.values(pair);
        let before = self.used[0].len();
        let as_it_is: Vec<bool> = (0..self.sizes.len()).map(|it| it >= before).collect();
        let found = self.statistic(&values, &as_it_is) * (1.0 - ROUNDING);
        Some(arrangements.part(|is_after| self.statistic(&values, is_after) >= found))
    }

    fn values(&self, pair: &Pair) -> Values {
        let sides = self.used.iter().zip([&pair.before, &pair.after]);
        // A function that is on one side only may have no clusters on the other.
        let by_cluster = sides.flat_map(|(used, counts)| {
            let value =
                move |&cluster: &usize| counts.by_cluster.get(cluster).copied().unwrap_or(0.0);
            used.iter().map(value)
        });
        let sum = pair.before.sum() + pair.after.sum();
        Values {
            by_cluster: by_cluster.collect(),
            weight: (pair.before.squares + pair.after.squares) / sum,
        }
    }

    /// The logarithm of the ratio by its standard error, without its sign. Clusters of unlike size make
    /// some arrangements surer than others, and sides may be unlike in how their clusters differ: without
    /// the error of each arrangement p would be wrong even for many clusters (Chung and Romano).
    fn statistic(&self, values: &Values, is_after: &[bool]) -> f64 {
        let mut sides = [Sums::default(); 2];
        let clusters = values.by_cluster.iter().zip(&self.sizes);
        for ((value, size), &is_there) in clusters.zip(is_after) {
            let side = &mut sides[usize::from(is_there)];
            side.value += value;
            side.size += size;
        }
        // Half a sample each, so that what is new has a ratio as well.
        let shown = sides.map(|side| side.value + values.weight / 2.0);
        // In a difference of profiles a cluster may have less than nothing, and so a side of other clusters.
        // Then nothing is confirmed by it.
        if shown.iter().any(|&shown| shown <= 0.0) {
            return f64::INFINITY;
        }
        let logarithm = (shown[1] * sides[0].size / (shown[0] * sides[1].size)).ln();
        let residual = |cluster: usize| {
            let side = usize::from(is_after[cluster]);
            let part = self.sizes[cluster] / sides[side].size;
            let beyond = values.by_cluster[cluster] - part * sides[side].value;
            Residual {
                value: beyond / shown[side],
                part,
            }
        };
        let of_clusters: f64 = if self.is_paired {
            let pairs = self.sizes.len() / 2;
            let differences = (0..pairs).map(|pair| residual(pair).less(residual(pair + pairs)));
            differences.map(Residual::variance).sum()
        } else {
            let residuals = (0..self.sizes.len()).map(residual);
            residuals.map(Residual::variance).sum()
        };
        // As in the test of the ratio never less than sampling makes it. Of a side with nothing that is as if it had one
        // sample: with the half one above, what is new would be less sure than an arrangement that has one over there.
        let of_sampling = sides.map(|side| values.weight / (side.value + values.weight));
        let of_sampling: f64 = of_sampling.iter().sum();
        logarithm.abs() / of_clusters.max(of_sampling).sqrt()
    }
}

/// The positions of the clusters of each side of which something is known; of pairs on both.
fn used_clusters(design: &Design) -> [Vec<usize>; 2] {
    [0, 1].map(|side: usize| {
        let is_used = |cluster: &usize| {
            let has_part = |of_side: usize| design.parts(of_side)[*cluster] > 0.0;
            has_part(side) && (!design.is_paired() || has_part(1 - side))
        };
        (0..design.parts(side).len()).filter(is_used).collect()
    })
}

// === impl Residual ===

impl Residual {
    /// What two sides of a pair differ by.
    fn less(self, other: Self) -> Self {
        Self {
            value: self.value - other.value,
            part: f64::midpoint(self.part, other.part),
        }
    }

    /// What it adds to the variance: as in the dispersion, a cluster has a say in the sum that it is
    /// compared with.
    fn variance(self) -> f64 {
        if self.part < 1.0 {
            self.value * self.value / (1.0 - self.part)
        } else {
            0.0
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::compare::Comparison;
    use crate::counts::Counts;
    use crate::counts::Side;
    use crate::normalization::Normalization;

    fn side(sizes: &[f64]) -> Side {
        Side {
            all: Counts::of_samples(sizes.to_vec()),
            exposure: Vec::new(),
        }
    }

    fn permutations(before: Side, after: Side, is_paired: bool, functions: usize) -> Permutations {
        let comparison = Comparison {
            normalization: Normalization::Share,
            fdr: 0.05,
            before,
            after,
            is_paired,
            is_sampled: true,
            seed: 1,
        };
        let (before, after) = (&comparison.before, &comparison.after);
        let scale = comparison.normalization.scale(before, after, &[]);
        Permutations::of(&Design::of(&comparison), scale, functions, 1)
    }

    /// Of clusters of 1000 samples each.
    fn p(before: &[f64], after: &[f64], is_paired: bool) -> Option<f64> {
        let whole = |counts: &[f64]| side(&vec![1000.0; counts.len()]);
        let pair = Pair {
            before: Counts::of_samples(before.to_vec()),
            after: Counts::of_samples(after.to_vec()),
        };
        permutations(whole(before), whole(after), is_paired, 1).p(&pair)
    }

    #[test]
    fn what_is_new_is_confirmed_by_few_samples() {
        let nothing = [0.0; 4];
        for few in [[1.0, 5.0, 5.0, 4.0], [1.0, 6.0, 5.0, 8.0]] {
            assert_eq!(p(&nothing, &few, false), Some(2.0 / 70.0));
            assert_eq!(p(&few, &nothing, false), Some(2.0 / 70.0));
        }
    }

    #[test]
    fn the_most_extreme_arrangement_has_the_least_p() {
        let (low, high) = ([50.0, 55.0, 52.0, 48.0], [80.0, 90.0, 85.0, 79.0]);
        assert_eq!(p(&low, &high, false), Some(2.0 / 70.0));
        assert_eq!(p(&high, &low, false), Some(2.0 / 70.0));
        assert_eq!(p(&low[..3], &high[..3], false), None);
        let (new, nothing) = ([20.0, 25.0, 22.0, 18.0], [0.0; 4]);
        assert_eq!(p(&nothing, &new, false), Some(2.0 / 70.0));
        assert_eq!(p(&new, &nothing, false), Some(2.0 / 70.0));
    }

    #[test]
    fn a_pair_is_compared_with_itself() {
        // Instances differ far more than each one changed.
        let before = [100.0, 900.0, 300.0, 500.0, 40.0, 650.0, 220.0];
        let after = before.map(|it| it * 1.2);
        assert_eq!(p(&before, &after, true), Some(2.0 / 128.0));
        assert!(p(&before, &after, false) > Some(0.4));
    }

    #[test]
    fn a_burst_of_one_cluster_is_no_change() {
        let mut burst = [0.0; 10];
        burst[3] = 60.0;
        for is_paired in [false, true] {
            let p = p(&[0.0; 10], &burst, is_paired).expect("enough clusters");
            assert!(p > 0.9, "paired {is_paired}: {p}");
        }
    }

    #[test]
    fn what_is_less_than_nothing_in_a_cluster_confirms_nothing() {
        let before = [-500.0, 200.0, 200.0, 200.0];
        let p = p(&before, &[100.0, 110.0, 105.0, 90.0], false).expect("enough clusters");
        assert!(p > 0.05, "{p}");
    }

    #[test]
    fn clusters_without_samples_are_not_dealt() {
        let five = side(&[1000.0, 0.0, 1000.0, 1000.0, 1000.0]);
        let unpaired = permutations(five, side(&[1000.0; 4]), false, 1);
        assert_eq!(unpaired.looked_at(), 70);
        let seven = side(&[1000.0, 0.0, 1000.0, 1000.0, 1000.0, 1000.0, 1000.0]);
        let paired = permutations(seven, side(&[1000.0; 7]), true, 1);
        assert_eq!(paired.looked_at(), 64);
    }

    #[test]
    fn many_functions_have_fewer_arrangements() {
        let looked_at = |functions| {
            let whole = side(&[1000.0; 32]);
            permutations(whole.clone(), whole, false, functions).looked_at()
        };
        assert_eq!(looked_at(700), MOST_ARRANGEMENTS);
        assert_eq!(looked_at(40_000), FEWEST_ARRANGEMENTS);
    }

    #[test]
    fn names_are_read_back() {
        for confirmation in Confirmation::ALL {
            let name = confirmation.name();
            assert_eq!(Confirmation::from_name(name), Some(confirmation));
        }
        assert_eq!(Confirmation::from_name("maybe"), None);
    }
}
