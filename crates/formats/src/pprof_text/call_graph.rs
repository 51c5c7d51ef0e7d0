//! Functions and the calls between them.

use candela_model::Sample;
use hashbrown::HashMap;
use hashbrown::HashSet;

use crate::pprof_text::names::FunctionId;
use crate::pprof_text::names::Names;

/// The values of functions and of the calls between them.
#[derive(Default)]
pub(super) struct CallGraph {
    /// Value of the stacks whose leaf a function is.
    pub(super) flat: Vec<i64>,
    /// Value of the stacks that a function is in; recursion counts once.
    pub(super) cum: Vec<i64>,
    /// By caller and callee.
    pub(super) calls: HashMap<(FunctionId, FunctionId), Call>,
}

/// Calls of one function by another.
#[derive(Clone, Copy, Debug)]
pub(super) struct Call {
    /// Value of the stacks that it is in; more than once in a stack counts once.
    pub(super) value: i64,
    /// Each of them is of code inside of the caller's.
    pub(super) is_inline: bool,
}

/// What is left out of a graph.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Cut {
    /// Functions with less are left out; a magnitude.
    pub(super) smallest_cum: i64,
    /// Calls with less are left out; a magnitude.
    pub(super) smallest_call: i64,
    /// Functions to keep, those with the largest own value; 0 keeps all.
    pub(super) max_functions: usize,
}

/// A graph after the cut.
pub(super) struct CutGraph {
    pub(super) graph: CallGraph,
    /// What is there, the largest own value first.
    pub(super) order: Vec<FunctionId>,
    /// How many were too small.
    pub(super) dropped: usize,
    /// How many there were before only the first were taken.
    pub(super) candidates: usize,
}

impl CallGraph {
    /// Of the samples, as if functions that are not kept did not exist: who called them seems to call
    /// what they called. Their own value is nobody's.
    fn of<'s>(
        names: &Names<'_>,
        samples: impl Iterator<Item = &'s Sample>,
        is_kept: impl Fn(FunctionId) -> bool,
    ) -> Self {
        let mut graph = Self {
            flat: vec![0; names.len()],
            cum: vec![0; names.len()],
            calls: HashMap::new(),
        };
        let mut seen: HashSet<FunctionId> = HashSet::new();
        let mut seen_calls: HashSet<(FunctionId, FunctionId)> = HashSet::new();
        for sample in samples.filter(|sample| sample.value != 0) {
            seen.clear();
            seen_calls.clear();
            let mut caller = None;
            let mut is_leaf_left_out = false;
            for place in names.stack(sample.stack).rev() {
                let function = place.function;
                is_leaf_left_out = !is_kept(function);
                if is_leaf_left_out {
                    continue;
                }
                if seen.insert(function) {
                    add(&mut graph.cum[function], sample.value);
                }
                if let Some(caller) = caller
                    && caller != function
                    && seen_calls.insert((caller, function))
                {
                    let call = graph.calls.entry((caller, function)).or_insert(Call {
                        value: 0,
                        is_inline: true,
                    });
                    add(&mut call.value, sample.value);
                    call.is_inline &= place.is_inline;
                }
                caller = Some(function);
            }
            if let Some(leaf) = caller
                && !is_leaf_left_out
            {
                add(&mut graph.flat[leaf], sample.value);
            }
        }
        graph
    }

    /// The sum of all own values.
    pub(super) fn total_flat(&self) -> i64 {
        self.flat.iter().copied().fold(0, i64::saturating_add)
    }

    fn functions(&self) -> impl Iterator<Item = FunctionId> {
        (0..self.flat.len()).filter(|&id| self.flat[id] != 0 || self.cum[id] != 0)
    }

    fn in_order(&self, names: &Names<'_>) -> Vec<FunctionId> {
        let mut order: Vec<FunctionId> = self.functions().collect();
        order.sort_by(|&left, &right| {
            let by_value = self.flat[right]
                .unsigned_abs()
                .cmp(&self.flat[left].unsigned_abs());
            let by_name = || names.get(left).cmp(names.get(right));
            by_value.then_with(by_name).then(left.cmp(&right))
        });
        order
    }
}

impl CutGraph {
    /// The graph of samples without what a report leaves out; `cut` is told the sum of all own values.
    pub(super) fn of<'s>(
        names: &Names<'_>,
        samples: impl Iterator<Item = &'s Sample> + Clone,
        cut: impl Fn(i64) -> Cut,
    ) -> Self {
        let mut graph = CallGraph::of(names, samples.clone(), |_| true);
        let cut = cut(graph.total_flat());
        let smallest = cut.smallest_cum.unsigned_abs();
        let all = graph.functions().count();
        let mut kept: Vec<bool> = (0..names.len())
            .map(|id| graph.cum[id].unsigned_abs() >= smallest)
            .collect();
        let dropped = all - graph.functions().filter(|&id| kept[id]).count();
        if dropped > 0 {
            graph = CallGraph::of(names, samples.clone(), |id| kept[id]);
        }
        let mut order = graph.in_order(names);
        let candidates = order.len();
        if cut.max_functions > 0 && candidates > cut.max_functions {
            kept.fill(false);
            for &id in &order[..cut.max_functions] {
                kept[id] = true;
            }
            graph = CallGraph::of(names, samples, |id| kept[id]);
            order = graph.in_order(names);
        }
        let smallest_call = cut.smallest_call.unsigned_abs();
        graph
            .calls
            .retain(|_, call| call.value.unsigned_abs() >= smallest_call);
        Self {
            graph,
            order,
            dropped,
            candidates,
        }
    }
}

fn add(sum: &mut i64, value: i64) {
    *sum = sum.saturating_add(value);
}
