//! The functions of two trees, and what became of each.

use std::collections::HashMap;

use candela_insight::Change;
use candela_insight::ChangeFilter;
use candela_insight::Comparison;
use candela_insight::Counts;
use candela_insight::FunctionChange;
use candela_insight::Normalization;
use candela_insight::Pair;
use candela_insight::Side;
use candela_insight::compare;
use candela_insight::compare_nodes;
use candela_model::FlameTree;
use candela_model::FrameId;
use candela_model::FrameTable;
use candela_model::FunctionDiff;
use candela_model::NodeValue;
use candela_model::diff_functions;

use crate::diff_samples::DiffSamples;
use crate::diff_samples::SampledNodes;

/// What chance is drawn from. Always the same: whoever asks again gets the same answer.
const SEED: u64 = 1;

/// How a comparison is made.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct DiffOptions {
    /// What "unchanged" means.
    pub normalization: Normalization,
    /// Of what is called significant at most this part is expected to be chance.
    pub fdr: f64,
    /// Which functions are listed.
    pub changes: ChangeFilter,
}

/// What was done to tell changes from chance.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct DiffStatistics {
    /// What "unchanged" means.
    pub normalization: Normalization,
    /// Of what is called significant at most this part is expected to be chance.
    pub fdr: f64,
    /// What samples are told apart by.
    pub clusters: String,
    /// How many of them there are before; 0 where nothing is known of samples.
    pub clusters_before: usize,
    /// And after.
    pub clusters_after: usize,
    /// Whether they are the same ones.
    pub is_paired: bool,
    /// What values before are multiplied by to compare.
    pub size_factor: f64,
    /// How many functions were tested.
    pub tested: usize,
    /// How many nodes of the tree were.
    pub tested_nodes: usize,
    /// By how many arrangements of clusters what is significant was confirmed or not; 0 where nothing is, or
    /// clusters are too few for that.
    pub arrangements: usize,
    /// Why there is no confidence, or what is to be known about it.
    pub reason: Option<String>,
}

/// A function, and what became of it.
#[derive(Clone, Copy, Debug)]
pub struct DiffRow {
    /// Its values.
    pub function: FunctionDiff,
    /// What they say.
    pub change: FunctionChange,
}

/// The functions of two trees.
#[derive(Clone, Debug, Default)]
pub struct DiffTable {
    /// Their frames.
    pub frames: FrameTable,
    /// The functions by the change of their own value, the largest first. Before they are compared
    /// values before are multiplied by the size factor.
    pub rows: Vec<DiffRow>,
    /// What was done to tell changes from chance.
    pub statistics: DiffStatistics,
    /// What became of the totals of nodes of the union of both trees. A node that is missing was not tested: its function's
    /// change stands.
    pub nodes: HashMap<u32, Change>,
    /// By frame what became of the total; of all functions, whichever are listed.
    totals: Vec<Option<Change>>,
}

impl Default for DiffOptions {
    fn default() -> Self {
        Self {
            normalization: Normalization::default(),
            fdr: 0.05,
            changes: ChangeFilter::default(),
        }
    }
}

impl DiffTable {
    /// The functions of two trees, judged by their samples.
    #[must_use]
    pub fn new(
        before: &FlameTree,
        after: &FlameTree,
        samples: &DiffSamples,
        options: &DiffOptions,
    ) -> Self {
        let (frames, functions) = diff_functions(before, after);
        let is_sampled = samples.unsampled.is_none();
        let pairs = if is_sampled {
            Pairs::of_samples(&frames, &functions, samples)
        } else {
            Pairs::of_values(&functions)
        };
        let side = |tree: &FlameTree, side: &Side| {
            if is_sampled {
                return side.clone();
            }
            Side {
                all: counts_of(tree.root_total()),
                exposure: vec![side.exposure.iter().sum()],
            }
        };
        let comparison = Comparison {
            normalization: options.normalization,
            fdr: options.fdr,
            before: side(before, &samples.before),
            after: side(after, &samples.after),
            is_paired: samples.is_paired,
            is_sampled,
            seed: SEED,
        };
        let compared = compare(&comparison, &pairs.own, &pairs.total);
        let nodes = if is_sampled {
            node_changes(&comparison, &pairs.own, &samples.nodes)
        } else {
            HashMap::new()
        };
        let factor = compared.size_factor;
        let changes = compared.functions.into_iter().zip(&pairs.is_known);
        let changes = changes
            .zip(&functions)
            .map(|((change, is_known), function)| {
                if *is_known {
                    change
                } else {
                    change_of_values(function, factor)
                }
            });
        let reason = Reason {
            samples,
            normalization: options.normalization,
            is_unscaled: compared.is_unscaled,
        };
        let count = |side: &Side| {
            if is_sampled {
                side.all.by_cluster.len()
            } else {
                0
            }
        };
        let statistics = DiffStatistics {
            normalization: options.normalization,
            fdr: options.fdr,
            clusters: samples.clusters.name().to_owned(),
            clusters_before: count(&samples.before),
            clusters_after: count(&samples.after),
            is_paired: is_sampled && samples.is_paired,
            size_factor: factor,
            tested: compared.tested,
            tested_nodes: nodes.len(),
            arrangements: compared.arrangements,
            reason: reason.text(),
        };
        let changes = changes.collect();
        let filter = options.changes;
        Self {
            nodes,
            ..Self::of_changes(frames, &functions, changes, statistics, filter)
        }
    }

    /// The functions of two trees with what somebody else found out of them: `judged` gives it for a
    /// frame of the table.
    #[must_use]
    pub fn of_judged(
        before: &FlameTree,
        after: &FlameTree,
        statistics: DiffStatistics,
        judged: impl Fn(&FrameTable, FrameId) -> Option<FunctionChange>,
    ) -> Self {
        let (frames, functions) = diff_functions(before, after);
        let factor = statistics.size_factor;
        let changes = functions.iter().map(|function| {
            judged(&frames, function.frame).unwrap_or_else(|| change_of_values(function, factor))
        });
        let changes = changes.collect();
        Self::of_changes(frames, &functions, changes, statistics, ChangeFilter::All)
    }

    /// What became of the total of a function.
    #[must_use]
    pub fn total_change(&self, frame: FrameId) -> Option<&Change> {
        self.totals.get(frame.index())?.as_ref()
    }

    fn of_changes(
        frames: FrameTable,
        functions: &[FunctionDiff],
        changes: Vec<FunctionChange>,
        statistics: DiffStatistics,
        filter: ChangeFilter,
    ) -> Self {
        let mut totals = vec![None; frames.frames().len()];
        let rows = functions.iter().zip(changes);
        let mut rows: Vec<DiffRow> = rows
            .map(|(&function, change)| DiffRow { function, change })
            .collect();
        for row in &rows {
            totals[row.function.frame.index()] = Some(row.change.total);
        }
        rows.retain(|row| filter.keeps(&row.change));
        let moved =
            |before: i64, after: i64| (after as f64 - before as f64 * statistics.size_factor).abs();
        rows.sort_by(|one, other| {
            let own = |row: &DiffRow| {
                let (before, after) = (row.function.before, row.function.after);
                moved(before.self_value, after.self_value)
            };
            let total = |row: &DiffRow| moved(row.function.before.total, row.function.after.total);
            let by_own = own(other).total_cmp(&own(one));
            let by_total = || total(other).total_cmp(&total(one));
            let by_frame = || one.function.frame.cmp(&other.function.frame);
            by_own.then_with(by_total).then_with(by_frame)
        });
        Self {
            frames,
            rows,
            statistics,
            nodes: HashMap::new(),
            totals,
        }
    }
}

/// The functions of a table as they are compared.
struct Pairs {
    own: Vec<Pair>,
    total: Vec<Pair>,
    /// Whether there is something to compare.
    is_known: Vec<bool>,
}

impl Pairs {
    fn of_values(functions: &[FunctionDiff]) -> Self {
        let pairs = |value: fn(NodeValue) -> i64| {
            let pairs = functions.iter().map(|function| Pair {
                before: counts_of(value(function.before)),
                after: counts_of(value(function.after)),
            });
            pairs.collect()
        };
        Self {
            own: pairs(|value| value.self_value),
            total: pairs(|value| value.total),
            is_known: vec![true; functions.len()],
        }
    }

    fn of_samples(frames: &FrameTable, functions: &[FunctionDiff], samples: &DiffSamples) -> Self {
        let mut all = frames.clone();
        let mut row_of_frame = vec![None; frames.frames().len()];
        for (row, function) in functions.iter().enumerate() {
            row_of_frame[function.frame.index()] = Some(row);
        }
        let mut pairs = Self {
            own: vec![Pair::default(); functions.len()],
            total: vec![Pair::default(); functions.len()],
            is_known: vec![false; functions.len()],
        };
        for function in &samples.functions {
            let frame = all.intern_from(&samples.frames, function.frame);
            // Frames that the trees do not have are new in the copy of their table.
            let row = row_of_frame.get(frame.index()).copied().flatten();
            let Some(row) = row else { continue };
            pairs.own[row].clone_from(&function.own);
            pairs.total[row].clone_from(&function.total);
            pairs.is_known[row] = true;
        }
        pairs
    }
}

/// By node of the whole tree, of which only the heaviest are tested.
fn node_changes(
    comparison: &Comparison,
    own: &[Pair],
    sampled: &SampledNodes,
) -> HashMap<u32, Change> {
    let changes = compare_nodes(comparison, own, &sampled.depths, &sampled.totals);
    let changes = sampled.nodes.iter().zip(changes);
    changes
        .filter_map(|(&node, change)| Some((node, change?)))
        .collect()
}

fn counts_of(value: i64) -> Counts {
    Counts::of_samples(vec![value as f64])
}

fn change_of_values(function: &FunctionDiff, factor: f64) -> FunctionChange {
    let (before, after) = (function.before, function.after);
    let change = |before: i64, after: i64| Change::of_values(before as f64, after as f64, factor);
    FunctionChange {
        own: change(before.self_value, after.self_value),
        total: change(before.total, after.total),
    }
}

/// What is to be known about the confidence of a comparison.
struct Reason<'a> {
    samples: &'a DiffSamples,
    normalization: Normalization,
    is_unscaled: bool,
}

impl Reason<'_> {
    fn text(&self) -> Option<String> {
        let is_sampled = self.samples.unsampled.is_none();
        let is_empty = |side: &Side| side.all.sum() <= 0.0;
        let has_nothing =
            is_sampled && (is_empty(&self.samples.before) || is_empty(&self.samples.after));
        if has_nothing {
            return Some("one side has no samples: there is nothing to compare with".to_owned());
        }
        let by_clusters = is_sampled
            .then(|| self.samples.clusters.reason())
            .flatten()
            .map(str::to_owned);
        let unscaled = self.is_unscaled.then_some(match self.normalization {
            Normalization::Share => "one side has nothing: values are compared as they are",
            Normalization::Absolute => {
                "nothing tells for how long a side was looked at: values are compared as they are"
            }
            Normalization::Robust => {
                "no function has the 50 samples that a ratio takes: shares are compared"
            }
        });
        let reasons = self
            .samples
            .unsampled
            .clone()
            .into_iter()
            .chain(by_clusters);
        let reasons: Vec<String> = reasons.chain(unscaled.map(str::to_owned)).collect();
        (!reasons.is_empty()).then(|| reasons.join("; "))
    }
}
