//! The graph of functions for Graphviz.

use crate::common::assert_golden;
use crate::common::tree;
use candela_formats::DotOptions;
use candela_formats::write_dot;
use candela_model::FlameTree;
use candela_model::FlameTreeBuilder;
use candela_model::FrameKind;
use candela_model::ProfileType;
use proptest::prelude::*;

fn dot(tree: &FlameTree, options: &DotOptions) -> String {
    let cpu: ProfileType = "process_cpu:cpu:nanoseconds:cpu:nanoseconds"
        .parse()
        .unwrap();
    let mut bytes = Vec::new();
    write_dot(tree, &cpu, options, &mut bytes).unwrap();
    String::from_utf8(bytes).unwrap()
}

/// Whether quotes are balanced and nothing stands outside of them that ends a statement early.
fn is_sound(line: &str) -> bool {
    let mut is_quoted = false;
    let mut is_escaped = false;
    for character in line.chars() {
        match character {
            _ if is_escaped => is_escaped = false,
            '\\' if is_quoted => is_escaped = true,
            '"' => is_quoted = !is_quoted,
            _ => {}
        }
    }
    !is_quoted && !is_escaped
}

#[test]
fn the_graph_is_laid_out_like_pprof() {
    let tree = tree(&[
        ("main;work;hash", 6_000_000_000),
        ("main;work", 1_000_000_000),
        ("main;thin;read \"x\"", 2_000_000_000),
        ("idle", 1_000_000_000),
        ("main;rare", 1),
    ]);
    let options = DotOptions {
        max_nodes: 5,
        ..DotOptions::default()
    };
    assert_golden("graph.dot", dot(&tree, &options).as_bytes());
}

#[test]
fn nothing_has_a_legend() {
    for tree in [FlameTree::default(), FlameTreeBuilder::new().finish()] {
        let text = dot(&tree, &DotOptions::default());
        assert!(
            text.contains("Showing nodes accounting for 0ns, 0% of 0ns total"),
            "{text}"
        );
        assert_eq!(text.lines().count(), 4);
    }
}

#[test]
fn all_is_drawn_when_nothing_is_too_light() {
    let names: Vec<String> = (0..300).map(|number| format!("f{number}")).collect();
    let stacks: Vec<(&str, i64)> = names.iter().map(|name| (name.as_str(), 1)).collect();
    let everything = DotOptions {
        max_nodes: 0,
        min_node_share: 0.0,
        min_edge_share: 0.0,
    };
    let text = dot(&tree(&stacks), &everything);
    assert_eq!(
        text.lines().filter(|line| line.starts_with('N')).count(),
        300
    );
    let usual = DotOptions {
        min_node_share: 0.0,
        ..DotOptions::default()
    };
    let text = dot(&tree(&stacks), &usual);
    assert_eq!(
        text.lines().filter(|line| line.starts_with('N')).count(),
        100
    );
    assert!(text.contains("Dropped 200 nodes"), "{text}");
}

proptest! {
    #[test]
    fn any_name_gives_sound_lines(names in prop::collection::vec(".{0,12}", 1..6), value in any::<i64>()) {
        let mut builder = FlameTreeBuilder::new();
        let frames: Vec<_> = names
            .iter()
            .map(|name| builder.frames.intern(name, "", "", FrameKind::Jvm, 0))
            .collect();
        builder.add_stack(frames, value);
        for line in dot(&builder.finish(), &DotOptions::default()).lines() {
            prop_assert!(is_sound(line), "{}", line);
        }
    }
}
