//! What hardly counts is added to the function above it: most stacks of an hour are below a
//! ten-thousandth of it, far below the noise of sampling, and they are most of the bytes.

use std::collections::BTreeMap;

use candela_model::FrameKind;

use crate::head::HeadTables;
use crate::locations::LocationRow;

/// Stacks below one part in this many of their profile are cut.
const PARTS: u128 = 10_000;

/// The name of the frame that has what was cut below the one above it.
pub const CUT_FRAME: &str = "[small stacks]";

/// The value of a stack, or of all that were cut below it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct CutSample {
    node: u32,
    is_cut: bool,
    pub(super) value: i64,
}

impl CutSample {
    pub(super) fn kept((node, value): (u32, i64)) -> Self {
        Self {
            node,
            is_cut: false,
            value,
        }
    }

    /// Where it is in the trie, with a frame of its own for what was cut.
    pub(super) fn node(&self, tables: &mut HeadTables) -> u32 {
        if !self.is_cut {
            return self.node;
        }
        let location = tables.intern_synthetic(CUT_FRAME);
        tables.child(self.node, location)
    }
}

/// Moves small values to the nearest node above that is large enough with them. The sum stays, and
/// that of any node differs by less than what was cut below it. `parents` come before their
/// children; `samples` are sorted by node, each once.
pub(super) fn cut_tail(parents: &[u32], samples: &[(u32, i64)]) -> Vec<CutSample> {
    let total: u128 = samples
        .iter()
        .map(|(_, value)| u128::from(value.unsigned_abs()))
        .sum();
    let is_small = |value: u128| value * PARTS < total;
    // By node: its own value and what was cut below. The last one is below no other one.
    let mut pending: BTreeMap<u32, (i64, i64)> = samples
        .iter()
        .map(|&(node, value)| (node, (value, 0)))
        .collect();
    let mut kept = Vec::new();
    while let Some((node, (own, cut))) = pending.pop_last() {
        let size = u128::from(own.unsigned_abs()) + u128::from(cut.unsigned_abs());
        let parent = parents[node as usize];
        if is_small(size) && parent != node {
            let above = &mut pending.entry(parent).or_default().1;
            *above = above.saturating_add(own).saturating_add(cut);
            continue;
        }
        let values = [(own, false), (cut, true)];
        let nonzero = values.into_iter().filter(|(value, _)| *value != 0);
        kept.extend(nonzero.map(|(value, is_cut)| CutSample {
            node,
            is_cut,
            value,
        }));
    }
    kept
}

impl HeadTables {
    /// A location that is no code.
    fn intern_synthetic(&mut self, name: &str) -> u32 {
        let name = self.intern_text(name);
        self.intern_own_row(LocationRow {
            kind: FrameKind::default(),
            function_name: name,
            is_symbolized: true,
            ..LocationRow::default()
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn totals_stay_and_small_stacks_go_up() {
        // 0 ─ 1 ─ 2 ─ 3, 1 ─ 4
        let parents = [0, 0, 1, 2, 1];
        let samples = [(2, 1_000_000), (3, 7), (4, 90)];
        let cut = cut_tail(&parents, &samples);
        let values: Vec<(u32, bool, i64)> = cut
            .iter()
            .map(|sample| (sample.node, sample.is_cut, sample.value))
            .collect();
        // 90 at 4 go to 1 and on to the root, 7 at 3 go to 2, which is large.
        assert_eq!(values, [(2, false, 1_000_000), (2, true, 7), (0, true, 90)]);
    }

    #[test]
    fn many_small_stacks_stay_visible_where_they_meet() {
        let children = 5_000_u32;
        let mut parents = vec![0, 0];
        parents.extend(std::iter::repeat_n(1, children as usize));
        let samples: Vec<(u32, i64)> = (0..children).map(|child| (child + 2, 3)).collect();
        let mut with_large = vec![(0, 200_000)];
        with_large.extend(samples);
        let cut = cut_tail(&parents, &with_large);
        let at = |node| {
            cut.iter()
                .find(|sample| sample.node == node && sample.is_cut)
        };
        assert_eq!(at(1).map(|sample| sample.value), Some(15_000));
        assert_eq!(cut.iter().map(|sample| sample.value).sum::<i64>(), 215_000);
    }
}
