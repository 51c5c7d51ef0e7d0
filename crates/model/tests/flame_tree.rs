//! Flame trees against a naive model: sums, pruning and the function table.

use std::collections::BTreeMap;
use std::collections::BTreeSet;

use candela_model::FlameTree;
use candela_model::FlameTreeBuilder;
use candela_model::FrameKind;
use proptest::prelude::*;

type Stacks = Vec<(Vec<u8>, i64)>;

fn tree_of(stacks: &Stacks) -> FlameTree {
    let mut builder = FlameTreeBuilder::new();
    for (stack, value) in stacks {
        let frames: Vec<_> = stack
            .iter()
            .map(|name| {
                builder
                    .frames
                    .intern(&format!("f{name}"), "", "", FrameKind::Native, 0)
            })
            .collect();
        builder.add_stack(frames, *value);
    }
    builder.finish()
}

fn stacks() -> impl Strategy<Value = Stacks> {
    let stack = prop::collection::vec(0_u8..6, 1..8);
    prop::collection::vec((stack, 1_i64..100), 1..60)
}

fn assert_is_consistent(tree: &FlameTree) {
    for node in 0..tree.len() {
        let children: i64 = tree.children(node).map(|child| tree.total[child]).sum();
        assert_eq!(
            tree.total[node],
            tree.self_value[node] + children,
            "node {node}"
        );
        let depths: BTreeSet<u16> = tree.children(node).map(|child| tree.depth[child]).collect();
        assert!(depths.iter().all(|&depth| depth == tree.depth[node] + 1));
    }
}

proptest! {
    #[test]
    fn totals_equal_the_sum_of_the_stacks(stacks in stacks()) {
        let tree = tree_of(&stacks);
        assert_is_consistent(&tree);
        let sum: i64 = stacks.iter().map(|(_, value)| value).sum();
        prop_assert_eq!(tree.root_total(), sum);
        let mut expected: BTreeMap<Vec<String>, i64> = BTreeMap::new();
        for (stack, value) in &stacks {
            let names = stack.iter().map(|name| format!("f{name}")).collect();
            *expected.entry(names).or_default() += value;
        }
        let mut seen = BTreeMap::new();
        tree.for_each_stack(|path, value| {
            let names: Vec<String> =
                path.iter().map(|&frame| tree.frames.name(frame).to_owned()).collect();
            seen.insert(names, value);
        });
        prop_assert_eq!(seen, expected);
    }

    #[test]
    fn pruning_moves_value_and_drops_none(stacks in stacks(), max_nodes in 1_usize..40) {
        let tree = tree_of(&stacks);
        let pruned = tree.pruned(max_nodes);
        prop_assert_eq!(pruned.root_total(), tree.root_total());
        let other_nodes = (0..pruned.len())
            .filter(|&node| pruned.frames.get(pruned.frame[node]).kind == FrameKind::Other)
            .count();
        prop_assert!(pruned.len() - other_nodes <= max_nodes.max(1));
        prop_assert_eq!(pruned.len() - other_nodes + pruned.pruned_nodes, tree.len());
        assert_is_consistent(&pruned);
    }

    #[test]
    fn recursion_counts_once_in_the_function_table(stacks in stacks()) {
        let tree = tree_of(&stacks);
        let mut expected: BTreeMap<String, (i64, i64)> = BTreeMap::new();
        for (stack, value) in &stacks {
            let distinct: BTreeSet<&u8> = stack.iter().collect();
            for name in distinct {
                expected.entry(format!("f{name}")).or_default().1 += value;
            }
            let leaf = stack.last().unwrap();
            expected.entry(format!("f{leaf}")).or_default().0 += value;
        }
        let rows: BTreeMap<String, (i64, i64)> = tree
            .function_table()
            .into_iter()
            .map(|row| (tree.frames.name(row.frame).to_owned(), (row.self_value, row.total)))
            .collect();
        prop_assert_eq!(rows, expected);
    }
}

#[test]
fn children_are_sorted_by_weight() {
    let tree = tree_of(&vec![(vec![1], 5), (vec![2], 9), (vec![3], 9)]);
    let names: Vec<&str> = tree
        .children(0)
        .map(|child| tree.frames.name(tree.frame[child]))
        .collect();
    assert_eq!(names, ["f2", "f3", "f1"]);
}

#[test]
fn samples_without_frames_are_a_stack_too() {
    let tree = tree_of(&vec![(vec![], 7), (vec![1], 5)]);
    let mut seen = Vec::new();
    tree.for_each_stack(|path, value| seen.push((path.len(), value)));
    assert_eq!(seen, [(0, 7), (1, 5)]);
}

#[test]
fn sums_stop_at_the_limits_of_64_bits() {
    let tree = tree_of(&vec![
        (vec![1], i64::MAX),
        (vec![2, 1], i64::MAX),
        (vec![3], i64::MAX),
    ]);
    let row = tree.function_table()[0];
    assert_eq!((row.self_value, row.total), (i64::MAX, i64::MAX));
    let pruned = tree.pruned(1);
    assert_eq!(pruned.total, [i64::MAX, i64::MAX]);
}

#[test]
fn a_default_builder_takes_values() {
    let mut builder = FlameTreeBuilder::default();
    builder.add_stack([], 3);
    assert_eq!(builder.finish().root_total(), 3);
}
