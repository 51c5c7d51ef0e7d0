//! The whole comparison: functions in, changes out.

use crate::change::Change;
use crate::change::ChangeClass;
use crate::change::FunctionChange;
use crate::counts::Pair;
use crate::counts::Side;
use crate::design::Design;
use crate::dispersion::OwnDispersion;
use crate::dispersion::own_dispersion;
use crate::dispersion::shrunk;
use crate::exact::ExactTest;
use crate::fdr::adjusted;
use crate::log_ratio::LogRatioTest;
use crate::normalization::Normalization;
use crate::normalization::Scale;
use crate::permutation::Confirmation;
use crate::permutation::Permutations;
use crate::sampling::Variances;

/// With fewer samples on both sides together no outcome is a finding, so none is tested.
const FEWEST_SAMPLES: f64 = 5.0;
/// With fewer samples a logarithm is not normal, and the exact test is taken.
const SPARSE_SAMPLES: f64 = 50.0;

/// So many changes are confirmed at most; with 64 instances that takes less than a second.
const MOST_CONFIRMED: usize = 8000;

/// Two sides, and how they are to be compared.
#[derive(Clone, Debug)]
pub struct Comparison {
    /// What "unchanged" means.
    pub normalization: Normalization,
    /// Of what is called significant at most this part is expected to be chance.
    pub fdr: f64,
    /// What is compared with.
    pub before: Side,
    /// What is judged.
    pub after: Side,
    /// Whether the clusters of both sides are the same ones, in the same order.
    pub is_paired: bool,
    /// Whether values are of samples. Where they are not, ratios are all that can be said.
    pub is_sampled: bool,
    /// What arrangements of clusters are drawn from, where there are too many to look at all: with the same
    /// seed the answer is the same.
    pub seed: u64,
}

/// What became of the functions.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Compared {
    /// What values before were multiplied by.
    pub size_factor: f64,
    /// Whether the normalization had nothing to go by: robust is then by share, and the others compare
    /// values as they are.
    pub is_unscaled: bool,
    /// How many functions have a p, of their own value or of their total.
    pub tested: usize,
    /// By how many arrangements of clusters what is significant was confirmed or not; 0 where nothing is, or
    /// clusters are too few for that.
    pub arrangements: usize,
    /// In the order in which they were given.
    pub functions: Vec<FunctionChange>,
}

/// What all functions are judged with.
pub(crate) struct Judge<'a> {
    comparison: &'a Comparison,
    design: Design,
    scale: Scale,
    by_log_ratio: LogRatioTest,
    exact: ExactTest,
}

/// Compares functions: `own` has their own values and `total` their totals, in one order. Each of the
/// two is a family of its own for the false discovery rate.
#[must_use]
pub fn compare(comparison: &Comparison, own: &[Pair], total: &[Pair]) -> Compared {
    let mut judge = Judge::of(comparison, own);
    let scale = judge.scale;
    let mut families = [own, total].map(|pairs| judge.family(pairs));
    let arrangements = judge.confirm(&mut families, [own, total]);
    let [own, total] = families;
    let functions: Vec<FunctionChange> = own
        .into_iter()
        .zip(total)
        .map(|(own, total)| FunctionChange { own, total })
        .collect();
    let is_tested = |it: &&FunctionChange| it.own.p.is_some() || it.total.p.is_some();
    Compared {
        size_factor: scale.factor,
        is_unscaled: scale.is_unscaled,
        tested: functions.iter().filter(is_tested).count(),
        arrangements,
        functions,
    }
}

impl<'a> Judge<'a> {
    /// `own` are the functions by their own values, which tell what is usual.
    pub(crate) fn of(comparison: &'a Comparison, own: &[Pair]) -> Self {
        let (before, after) = (&comparison.before, &comparison.after);
        let design = Design::of(comparison);
        Self {
            comparison,
            scale: comparison.normalization.scale(before, after, own),
            by_log_ratio: LogRatioTest::with_freedom(design.freedom),
            exact: ExactTest::default(),
            design,
        }
    }

    fn family(&mut self, pairs: &[Pair]) -> Vec<Change> {
        let dispersions = self.dispersions(pairs);
        self.judged(pairs.iter().zip(dispersions))
    }

    /// What became of the members of a family, by their φ.
    pub(crate) fn judged<'b>(
        &mut self,
        family: impl Iterator<Item = (&'b Pair, f64)> + Clone,
    ) -> Vec<Change> {
        let mut changes: Vec<Change> = family
            .clone()
            .map(|(pair, dispersion)| self.change(pair, dispersion))
            .collect();
        let p: Vec<Option<f64>> = changes.iter().map(|change| change.p).collect();
        for ((change, q), (pair, _)) in changes.iter_mut().zip(adjusted(&p)).zip(family) {
            change.q = q;
            change.is_significant = q.is_some_and(|q| q <= self.comparison.fdr);
            if self.comparison.is_sampled {
                let (before, after) = (pair.before.sum(), pair.after.sum());
                change.class = ChangeClass::of(before, after, change.is_significant);
            }
        }
        changes
    }

    /// Of what is not significant nobody claims anything, and to confirm costs more than all the rest. By
    /// how many arrangements.
    fn confirm(&self, families: &mut [Vec<Change>; 2], pairs: [&[Pair]; 2]) -> usize {
        let changes = families.iter_mut().zip(pairs);
        let changes = changes.flat_map(|(changes, pairs)| changes.iter_mut().zip(pairs));
        let mut significant: Vec<(&mut Change, &Pair)> = changes
            .filter(|(change, _)| change.is_significant)
            .collect();
        if significant.is_empty() {
            return 0;
        }
        // Two programs that have nothing in common differ in everything: the surest are looked at, and of the others
        // nothing is said.
        significant.sort_by(|(one, _), (other, _)| {
            one.p.unwrap_or(1.0).total_cmp(&other.p.unwrap_or(1.0))
        });
        significant.truncate(MOST_CONFIRMED);
        let (asked, seed) = (significant.len(), self.comparison.seed);
        let permutations = Permutations::of(&self.design, self.scale, asked, seed);
        for (change, pair) in &mut significant {
            change.permutation_p = permutations.p(pair);
            change.confirmation = Some(Confirmation::of(change.permutation_p));
        }
        permutations.looked_at()
    }

    pub(crate) fn dispersions(&self, pairs: &[Pair]) -> Vec<f64> {
        let sizes: Vec<f64> = pairs.iter().map(Pair::samples).collect();
        let own: Vec<Option<OwnDispersion>> = pairs
            .iter()
            .zip(&sizes)
            .map(|(pair, &size)| {
                let is_tested = self.comparison.is_sampled && size >= FEWEST_SAMPLES;
                let (before, after) = self.variances(pair);
                is_tested
                    .then(|| own_dispersion(&self.design, pair, before, after))
                    .flatten()
            })
            .collect();
        shrunk(&own, &sizes)
    }

    fn variances(&self, pair: &Pair) -> (Variances, Variances) {
        let of =
            |counts, side: &Side| Variances::of(counts, &side.all, self.comparison.normalization);
        (
            of(&pair.before, &self.comparison.before),
            of(&pair.after, &self.comparison.after),
        )
    }

    fn change(&mut self, pair: &Pair, dispersion: f64) -> Change {
        let (before, after) = (pair.before.sum(), pair.after.sum());
        let plain = Change::of_values(before, after, self.scale.factor);
        let samples = pair.samples();
        let has_both_sides =
            self.comparison.before.all.sum() > 0.0 && self.comparison.after.all.sum() > 0.0;
        // Less than nothing is a difference of others, and as such no number of samples.
        let is_difference = before < 0.0 || after < 0.0;
        let is_tested = self.comparison.is_sampled
            && samples >= FEWEST_SAMPLES
            && has_both_sides
            && !is_difference;
        if !is_tested {
            return plain;
        }
        // What is on one side only has no logarithm, however many samples it has.
        let is_sparse = samples < SPARSE_SAMPLES || before <= 0.0 || after <= 0.0;
        if is_sparse {
            return self.sparse_change(pair, dispersion, plain);
        }
        let Some(ratio) = plain.ratio else {
            return plain;
        };
        let (of_before, of_after) = self.variances(pair);
        let sampling = of_before.of_logarithm + of_after.of_logarithm;
        let variance = dispersion * sampling + self.scale.log_variance;
        let result = self.by_log_ratio.of(ratio, variance);
        Change {
            low: Some(result.low),
            high: Some(result.high).filter(|it| it.is_finite()),
            p: Some(result.p),
            ..plain
        }
    }

    /// Samples that come in bursts tell as little as fewer ones that come by themselves, so there are
    /// taken to be so many fewer.
    fn sparse_change(&mut self, pair: &Pair, dispersion: f64, plain: Change) -> Change {
        let whole =
            |samples: f64| (samples / dispersion).round().min(f64::from(u32::MAX / 2)) as u32;
        let (before, after) = (whole(pair.before.samples()), whole(pair.after.samples()));
        if before + after == 0 {
            return plain;
        }
        // A side without a sample would have had some like those of the other.
        let (of_before, of_after) = (pair.before.weight(), pair.after.weight());
        let weights = of_before.or(of_after).zip(of_after.or(of_before));
        let Some((of_before, of_after)) = weights else {
            return plain;
        };
        let result = self
            .exact
            .of(before, after, self.scale.factor * of_before / of_after);
        let low = plain
            .ratio
            .map_or(result.low, |ratio| ratio.min(result.low));
        let high = plain
            .ratio
            .map_or(result.high, |ratio| ratio.max(result.high));
        Change {
            low: Some(low).filter(|it| it.is_finite()),
            high: Some(high).filter(|it| it.is_finite()),
            p: Some(result.p),
            ..plain
        }
    }
}
