//! Flame graphs in levels.

use std::collections::BTreeMap;

use crate::common::assert_golden;
use crate::common::folded_lines;
use crate::common::tree;
use candela_formats::FlameDocument;
use candela_formats::Flamebearer;
use candela_formats::FlamebearerDiff;
use candela_formats::Format;
use candela_formats::Graph;
use candela_formats::Limits;
use candela_formats::ReadOptions;
use candela_formats::Timeline;
use candela_formats::WriteOptions;
use candela_formats::detect;
use candela_formats::read_flamebearer;
use candela_formats::write;
use candela_model::FlameTree;
use candela_model::FlameTreeBuilder;
use candela_model::FrameKind;
use candela_model::ProfileType;
use proptest::prelude::*;
use serde_json::json;

fn cpu() -> ProfileType {
    "process_cpu:cpu:nanoseconds:cpu:nanoseconds"
        .parse()
        .unwrap()
}

fn levels(levels: &[&[i64]]) -> Vec<Vec<i64>> {
    levels.iter().map(|level| level.to_vec()).collect()
}

fn read(document: &serde_json::Value) -> Result<Vec<String>, String> {
    let bytes = document.to_string();
    let (profile, _) = read_flamebearer(bytes.as_bytes(), &ReadOptions::default())
        .map_err(|error| error.to_string())?;
    assert_eq!(profile.validate(), Ok(()));
    Ok(folded_lines(&profile))
}

#[test]
fn children_stand_by_name_behind_their_parents_self() {
    let graph = Flamebearer::new(&tree(&[("a", 1), ("a;b", 2), ("a;c", 3), ("d", 4)]), 0).unwrap();
    // From the last child to the first.
    assert_eq!(graph.names, ["total", "d", "a", "c", "b"]);
    let expected = levels(&[
        &[0, 10, 0, 0],
        &[0, 6, 1, 2, 0, 4, 4, 1],
        &[1, 2, 2, 4, 0, 3, 3, 3],
    ]);
    assert_eq!(graph.levels, expected);
    assert_eq!((graph.total, graph.max_self), (10, 4));
}

#[test]
fn functions_are_told_apart_by_name_alone() {
    let mut builder = FlameTreeBuilder::new();
    for (file, value) in [("a.c", 2), ("b.c", 3)] {
        let frame = builder.frames.intern("f", file, "", FrameKind::Native, 1);
        builder.add_stack([frame], value);
    }
    let graph = Flamebearer::new(&builder.finish(), 0).unwrap();
    assert_eq!(graph.levels, levels(&[&[0, 5, 0, 0], &[0, 5, 5, 1]]));
}

/// The third heaviest node weighs 30, so what is lighter goes, with all that stands on it.
#[test]
fn light_children_become_other() {
    let stacks = [
        ("a", 60),
        ("a;x", 10),
        ("a;y;z", 20),
        ("b", 30),
        ("c", 7),
        ("other;q", 50),
    ];
    let graph = Flamebearer::new(&tree(&stacks), 3).unwrap();
    assert_eq!(graph.names, ["total", "other", "a"]);
    // `a` and the node named `other`, of which two are the heaviest three; `other` is folded too.
    let expected = levels(&[
        &[0, 177, 0, 0],
        &[0, 90, 60, 2, 0, 87, 87, 1],
        &[60, 30, 30, 1],
    ]);
    assert_eq!(graph.levels, expected);
    assert_eq!(graph.max_self, 87);
}

#[test]
fn nothing_has_a_root() {
    for tree in [FlameTree::default(), FlameTreeBuilder::new().finish()] {
        let graph = Flamebearer::new(&tree, 10).unwrap();
        assert_eq!(graph.levels, levels(&[&[0, 0, 0, 0]]));
        assert_eq!(graph.names, ["total"]);
    }
    let error = Flamebearer::new(&tree(&[("a", -1)]), 0).unwrap_err();
    assert!(
        error
            .to_string()
            .starts_with("flamebearer cannot show negative values")
    );
}

#[test]
fn comparisons_hold_both_sides() {
    let left = tree(&[("a", 1), ("a;b", 2), ("gone", 5)]);
    let right = tree(&[("a;b", 4), ("new", 3)]);
    let graph = FlamebearerDiff::new(&left, &right, 0).unwrap();
    assert_eq!(graph.names, ["total", "new", "gone", "a", "b"]);
    let expected = levels(&[
        &[0, 8, 0, 0, 7, 0, 0],
        &[
            0, 3, 1, 0, 4, 0, 3, //
            0, 5, 5, 0, 0, 0, 2, //
            0, 0, 0, 0, 3, 3, 1,
        ],
        &[1, 2, 2, 0, 4, 4, 4],
    ]);
    assert_eq!(graph.levels, expected);
    assert_eq!(
        (graph.total, graph.left_ticks, graph.right_ticks),
        (15, 8, 7)
    );
    assert_eq!(graph.max_self, 5);
}

#[test]
fn comparisons_keep_what_is_heavy_on_either_side() {
    let left = tree(&[("a", 100), ("b", 1), ("c", 2), ("other", 3)]);
    let right = tree(&[("a", 1), ("b", 90), ("c", 4)]);
    let graph = FlamebearerDiff::new(&left, &right, 2).unwrap();
    assert_eq!(graph.names, ["total", "other", "b", "a"]);
    let expected = [
        0, 100, 100, 0, 1, 1, 3, //
        0, 1, 1, 0, 90, 90, 2, //
        0, 3, 3, 0, 0, 0, 1, // a node of that name always stays
        0, 2, 2, 0, 4, 4, 1, // what was folded
    ];
    assert_eq!(graph.levels[1], expected);
}

#[test]
fn documents_are_what_clients_expect() {
    let tree_before = tree(&[("main;work;hash", 5), ("main;work", 2), ("main;read", 3)]);
    let tree_after = tree(&[("main;work;hash", 9), ("main;write", 1)]);
    let single = Flamebearer::new(&tree_before, 0).unwrap();
    let timeline = Timeline {
        start_time: 1_700_000_000,
        samples: vec![4, 0, 6],
        duration_delta: 15,
        ..Timeline::default()
    };
    let memory: ProfileType = "memory:inuse_objects:count:space:bytes".parse().unwrap();
    let mut document = FlameDocument {
        profile_type: &memory,
        graph: Graph::Single(&single),
        timeline: Some(timeline.clone()),
        groups: Some(BTreeMap::from([("*".to_owned(), timeline)])),
    };
    let text = |document: &FlameDocument<'_>| serde_json::to_vec_pretty(document).unwrap();
    assert_golden("render.json", &text(&document));
    let diff = FlamebearerDiff::new(&tree_before, &tree_after, 0).unwrap();
    let cpu = cpu();
    document.profile_type = &cpu;
    document.graph = Graph::Double(&diff);
    document.timeline = None;
    document.groups = None;
    assert_golden("render-diff.json", &text(&document));
}

#[test]
fn documents_and_bare_graphs_are_read() {
    let graph = json!({
        "names": ["total", "a", "b"],
        "levels": [[0, 10, 1, 0], [1, 4, 4, 1, 2, 3, 1, 2], [8, 2, 2, 1]],
        "numTicks": 10,
        "maxSelf": 4,
    });
    assert_eq!(
        detect(graph.to_string().as_bytes()),
        Some(Format::Flamebearer)
    );
    assert_eq!(
        read(&graph).unwrap(),
        [
            "{} samples:samples:count:: []  1",
            "{} samples:samples:count:: [] a 4",
            "{} samples:samples:count:: [] b 1",
            "{} samples:samples:count:: [] b;a 2",
        ]
    );
    let document =
        |metadata: serde_json::Value| json!({"flamebearer": graph, "metadata": metadata});
    let types = [
        (
            json!({"units": "samples", "sampleRate": 100}),
            "process_cpu:cpu:nanoseconds:cpu:nanoseconds",
        ),
        (
            json!({"units": "samples", "name": "my app"}),
            "samples:samples:count::",
        ),
        (
            json!({"units": "objects", "name": "inuse_objects"}),
            "memory:inuse_objects:count:space:bytes",
        ),
        (
            json!({"units": "bytes", "name": "alloc_space"}),
            "memory:alloc_space:bytes:space:bytes",
        ),
        (
            json!({"units": "lock_nanoseconds"}),
            "mutex:delay:nanoseconds:contentions:count",
        ),
        (
            json!({"units": "nanoseconds", "name": "wall"}),
            "wall:wall:nanoseconds:wall:nanoseconds",
        ),
    ];
    for (metadata, id) in types {
        let document = document(metadata);
        assert_eq!(
            detect(document.to_string().as_bytes()),
            Some(Format::Flamebearer)
        );
        let lines = read(&document).unwrap();
        assert!(lines[0].starts_with(&format!("{{}} {id} ")), "{}", lines[0]);
    }
    let counted = read(&document(json!({"units": "samples", "sampleRate": 100}))).unwrap();
    assert!(counted[1].ends_with("[] a 40000000"), "{}", counted[1]);
}

#[test]
fn what_is_wrong_is_said() {
    let graph = |levels: serde_json::Value| json!({"names": ["total", "a"], "levels": levels});
    let cases = [
        (
            json!({"metadata": {"format": "double"}, "flamebearer": {}}),
            "compares two profiles",
        ),
        (json!({"version": 1}), "there are no names and levels"),
        (graph(json!([[0, 1, 0]])), "level 0 has 3 numbers"),
        (
            graph(json!([[0, 1, 0, 2]])),
            "level 0, bar 0: there is no such name",
        ),
        (
            graph(json!([[0, 1, 0, 0], [0, 2, 2, 1]])),
            "level 1, bar 0: no bar",
        ),
        (
            graph(json!([[0, 1, 0, 0], [-1, 1, 1, 1]])),
            "a number is negative",
        ),
        (
            graph(json!([[0, i64::MAX, 0, 0, 0, i64::MAX, 0, 0]])),
            "beyond 64 bits",
        ),
        (
            graph(json!([["x"]])),
            "no flame graph in JSON: invalid type: string \"x\"",
        ),
    ];
    for (document, problem) in cases {
        let error = read(&document).unwrap_err();
        assert!(
            error.starts_with("flamebearer: ") && error.contains(problem),
            "{error}"
        );
    }
}

/// As many levels as there are bars: without a bound each path would be as long as all levels.
#[test]
fn towers_are_bounded() {
    let count = 50_000;
    let mut levels = vec![vec![0, count, 0, 0]];
    for depth in 0..count {
        levels.push(vec![0, count - depth, 1, 1]);
    }
    let document = json!({"names": ["total", "a"], "levels": levels}).to_string();
    let options = ReadOptions {
        limits: Limits {
            max_stack_depth: 100,
            ..Limits::default()
        },
        ..ReadOptions::default()
    };
    let (profile, report) = read_flamebearer(document.as_bytes(), &options).unwrap();
    assert_eq!(profile.series[0].samples.len(), 100);
    assert_eq!(profile.series[0].total(), count);
    assert_eq!(report.count("stacks_cut"), count as u64 - 100);
}

fn stacks() -> impl Strategy<Value = Vec<(String, i64)>> {
    prop::collection::vec(("[a-d](;[a-d]){0,5}", 1_i64..1000), 1..40)
}

/// Levels as bars with their real starts: `[start, total, self, name]` from each four numbers.
fn bars(level: &[i64], width: usize, first: usize) -> Vec<[i64; 3]> {
    let mut end = 0;
    let bars = level.chunks(width).map(|bar| {
        let start = end + bar[first];
        end = start + bar[first + 1];
        [start, bar[first + 1], bar[first + 2]]
    });
    bars.collect()
}

proptest! {
    #[test]
    fn graphs_round_trip(stacks in stacks()) {
        let borrowed: Vec<(&str, i64)> = stacks.iter().map(|(s, v)| (s.as_str(), *v)).collect();
        let before = tree(&borrowed);
        let profile = before.to_profile(cpu());
        let mut bytes = Vec::new();
        write(Format::Flamebearer, &profile, &mut bytes, &WriteOptions::default()).unwrap();
        prop_assert_eq!(detect(&bytes), Some(Format::Flamebearer));
        let (again, report) = read_flamebearer(&bytes[..], &ReadOptions::default()).unwrap();
        prop_assert_eq!(report.notes, []);
        prop_assert_eq!(folded_lines(&again), folded_lines(&profile));
    }

    #[test]
    fn bars_stand_on_each_other_and_keep_the_total(stacks in stacks(), max_nodes in 1_usize..20) {
        let borrowed: Vec<(&str, i64)> = stacks.iter().map(|(s, v)| (s.as_str(), *v)).collect();
        let whole = tree(&borrowed);
        let graph = Flamebearer::new(&whole, max_nodes).unwrap();
        let document = json!({"names": graph.names, "levels": graph.levels});
        // The reader checks that each bar stands on one.
        let sum: i64 = read(&document).unwrap().iter()
            .map(|line| line.rsplit_once(' ').unwrap().1.parse::<i64>().unwrap())
            .sum();
        prop_assert_eq!(sum, whole.root_total());
    }

    #[test]
    fn comparisons_are_the_graphs_of_both_sides(left in stacks(), right in stacks(), max_nodes in 0_usize..20) {
        let borrowed = |stacks: &[(String, i64)]| {
            let stacks: Vec<(&str, i64)> = stacks.iter().map(|(s, v)| (s.as_str(), *v)).collect();
            tree(&stacks)
        };
        let (left, right) = (borrowed(&left), borrowed(&right));
        let diff = FlamebearerDiff::new(&left, &right, max_nodes).unwrap();
        prop_assert_eq!(diff.total, left.root_total() + right.root_total());
        for (first, tree) in [(0, &left), (3, &right)] {
            let own: i64 = diff.levels.iter()
                .flat_map(|level| bars(level, 7, first))
                .map(|[_, _, own]| own)
                .sum();
            prop_assert_eq!(own, tree.root_total());
            for pair in diff.levels.windows(2) {
                let below = bars(&pair[0], 7, first);
                for [start, total, _] in bars(&pair[1], 7, first) {
                    let stands = below.iter().any(|bar| bar[0] <= start && start + total <= bar[0] + bar[1]);
                    prop_assert!(stands);
                }
            }
        }
    }

    #[test]
    fn any_levels_are_survived(levels in prop::collection::vec(prop::collection::vec(-2_i64..9, 0..13), 0..5)) {
        let _ = read(&json!({"names": ["total", "a", "b"], "levels": levels}));
    }
}
