//! What Pyroscope's clients push as text, trees and tries.

use std::collections::BTreeMap;

use crate::common::assert_golden;
use crate::common::folded_lines;
use crate::common::tree;
use candela_formats::Limits;
use candela_formats::ReadError;
use candela_formats::ReadOptions;
use candela_formats::Report;
use candela_formats::read_groups;
use candela_formats::read_lines;
use candela_formats::read_tree;
use candela_formats::read_trie;
use candela_formats::tree_bytes;
use candela_model::FlameTreeBuilder;
use candela_model::FrameKind;
use candela_model::Profile;
use proptest::prelude::*;

type Read = Result<(Profile, Report), ReadError>;

/// Stacks and values, however they were written.
fn sums(profile: &Profile) -> BTreeMap<String, i64> {
    let mut sums = BTreeMap::new();
    for line in folded_lines(profile) {
        let (_, stack) = line.split_once("[] ").unwrap();
        let (stack, value) = stack.rsplit_once(' ').unwrap();
        *sums.entry(stack.to_owned()).or_default() += value.parse::<i64>().unwrap();
    }
    sums
}

fn expected(stacks: &[(&str, i64)]) -> BTreeMap<String, i64> {
    let stacks = stacks
        .iter()
        .map(|&(stack, value)| (stack.to_owned(), value));
    stacks.collect()
}

fn note_codes(report: &Report) -> Vec<&'static str> {
    report.notes.iter().map(|note| note.code).collect()
}

/// An independent writer of nodes: name, value, number of children.
fn node(name: &[u8], value: u64, children: u64) -> Vec<u8> {
    let mut bytes = Vec::new();
    prost::encoding::encode_varint(name.len() as u64, &mut bytes);
    bytes.extend(name);
    prost::encoding::encode_varint(value, &mut bytes);
    prost::encoding::encode_varint(children, &mut bytes);
    bytes
}

/// A trie that shares each byte it can: independent of the reader, and the worst it may meet.
fn bytewise_trie(stacks: &[(String, i64)]) -> Vec<u8> {
    fn write(stacks: &[(&[u8], i64)], piece: &[u8], bytes: &mut Vec<u8>) {
        let own = stacks.iter().filter(|(text, _)| text.is_empty());
        let value: i64 = own.map(|(_, value)| value).sum();
        let mut below: BTreeMap<u8, Vec<(&[u8], i64)>> = BTreeMap::new();
        for (text, value) in stacks {
            if let Some((first, rest)) = text.split_first() {
                below.entry(*first).or_default().push((rest, *value));
            }
        }
        bytes.extend(node(piece, value as u64, below.len() as u64));
        for (first, stacks) in below {
            write(&stacks, &[first], bytes);
        }
    }
    let stacks: Vec<(&[u8], i64)> = stacks
        .iter()
        .map(|(text, value)| (text.as_bytes(), *value))
        .collect();
    let mut bytes = Vec::new();
    write(&stacks, b"", &mut bytes);
    bytes
}

#[test]
fn groups_take_the_last_space() {
    let input = b"main;work 3 5\nmain;b c 2\nmain;b c 1\nnothing\n";
    let (profile, report) = read_groups(&input[..], &ReadOptions::default()).unwrap();
    assert_eq!(
        sums(&profile),
        expected(&[("main;work 3", 5), ("main;b c", 3)])
    );
    assert_eq!(note_codes(&report), ["lines_without_count"]);
    let error = read_groups(&b"no count here\n"[..], &ReadOptions::default()).unwrap_err();
    assert!(error.to_string().starts_with("groups: no line"), "{error}");
}

#[test]
fn lines_count_one_each() {
    let input = b"main;work\nmain;work 7\r\n\nmain;work\n";
    let (profile, report) = read_lines(&input[..], &ReadOptions::default()).unwrap();
    assert_eq!(
        sums(&profile),
        expected(&[("main;work", 2), ("main;work 7", 1)])
    );
    assert_eq!(report.notes, []);
}

#[test]
fn nothing_is_a_profile_without_samples() {
    let options = ReadOptions::default();
    let reads: [fn(&[u8], &ReadOptions) -> Read; 4] = [
        |bytes, options| read_groups(bytes, options),
        |bytes, options| read_lines(bytes, options),
        |bytes, options| read_tree(bytes, options),
        |bytes, options| read_trie(bytes, options),
    ];
    for read in reads {
        let (profile, _) = read(b"", &options).unwrap();
        assert_eq!((profile.series.len(), profile.sample_count()), (1, 0));
        assert_eq!(profile.validate(), Ok(()));
    }
}

#[test]
fn trees_are_read_with_and_without_a_root() {
    let below = [node(b"main", 1, 2), node(b"a", 2, 0), node(b"b", 3, 0)].concat();
    let rooted = [node(b"", 0, 1), below.clone()].concat();
    for bytes in [below, rooted] {
        let (profile, report) = read_tree(&bytes[..], &ReadOptions::default()).unwrap();
        let found = sums(&profile);
        assert_eq!(
            found,
            expected(&[("main", 1), ("main;a", 2), ("main;b", 3)])
        );
        assert_eq!(report.notes, []);
    }
}

#[test]
fn tries_cut_anywhere() {
    let bytes = [
        node(b"", 0, 1),
        node("main;caf\u{e9}".as_bytes().split_last().unwrap().1, 0, 2),
        node(b"\xa9", 2, 1),
        node(b";x", 3, 0),
        node(b"\xa8;y", 4, 0),
    ]
    .concat();
    let (profile, report) = read_trie(&bytes[..], &ReadOptions::default()).unwrap();
    let found = sums(&profile);
    let stacks = [
        ("main;caf\u{e9}", 2),
        ("main;caf\u{e9};x", 3),
        ("main;caf\u{e8};y", 4),
    ];
    assert_eq!(found, expected(&stacks));
    assert_eq!(report.notes, []);
}

#[test]
fn what_is_wrong_with_trees_is_said() {
    let options = ReadOptions::default();
    let cut = read_tree(&node(b"main", 1, 1)[..], &options).unwrap_err();
    assert_eq!(cut.to_string(), "tree: a number is cut off at byte 7");
    let longer = [node(b"main", 1, 0), vec![9; 5]].concat();
    let (_, report) = read_trie(&longer[..], &options).unwrap();
    assert_eq!(report.count("trailing_bytes"), 5);
    let (_, report) = read_tree(&node(b"\xff", 1, 0)[..], &options).unwrap();
    assert_eq!(note_codes(&report), ["strings_repaired"]);
}

/// A chain of nodes that each end a stack: without bounds its stacks would be millions of frames.
#[test]
fn deep_trees_are_bounded() {
    let count = 50_000;
    let mut tree = node(b"", 0, 1);
    let mut trie = node(b"", 0, 1);
    for depth in 0..count {
        let children = u64::from(depth + 1 < count);
        tree.extend(node(b"f", 1, children));
        trie.extend(node(b"f;", 1, children));
    }
    let options = ReadOptions {
        limits: Limits {
            max_stack_depth: 10,
            ..Limits::default()
        },
        ..ReadOptions::default()
    };
    for read in [
        read_tree(&tree[..], &options),
        read_trie(&trie[..], &options),
    ] {
        let (profile, report) = read.unwrap();
        assert_eq!(profile.series[0].samples.len(), 10);
        assert_eq!(profile.series[0].total(), count);
        assert_eq!(report.count("stacks_cut"), count as u64 - 10);
    }
    let options = ReadOptions {
        limits: Limits {
            max_inflated_bytes: 1 << 20,
            max_stack_depth: 4096,
            ..Limits::default()
        },
        ..ReadOptions::default()
    };
    let error = read_tree(&tree[..], &options).unwrap_err().to_string();
    assert!(error.contains("the number of frames"), "{error}");
    let mut long_names = node(b"", 0, 1);
    for depth in 0..count {
        long_names.extend(node(b"f", 1, u64::from(depth + 1 < count)));
    }
    let error = read_trie(&long_names[..], &options)
        .unwrap_err()
        .to_string();
    assert!(error.contains("bytes of all names"), "{error}");
}

#[test]
fn trees_are_written_from_the_last_child_to_the_first() {
    let tree = tree(&[
        ("main;work;hash", 5),
        ("main;work", 2),
        ("main;read", 3),
        ("idle", 4),
    ]);
    let bytes = tree_bytes(&tree, 0).unwrap();
    let expected = [
        node(b"", 0, 2),
        node(b"main", 0, 2),
        node(b"work", 2, 1),
        node(b"hash", 5, 0),
        node(b"read", 3, 0),
        node(b"idle", 4, 0),
    ];
    assert_eq!(bytes, expected.concat());
    let dump: String = bytes
        .chunks(16)
        .map(|row| format!("{row:02x?}\n"))
        .collect();
    assert_golden("tree.hex", dump.as_bytes());
}

#[test]
fn light_nodes_are_folded_and_frameless_stacks_kept() {
    let mut builder = FlameTreeBuilder::new();
    for (name, value) in [("a", 10), ("b", 1), ("c", 2), ("other", 5)] {
        let frame = builder.frames.intern(name, "", "", FrameKind::Unknown, 0);
        builder.add_stack([frame], value);
    }
    builder.add_stack([], 7);
    let bytes = tree_bytes(&builder.finish(), 2).unwrap();
    let (profile, _) = read_tree(&bytes[..], &ReadOptions::default()).unwrap();
    let found = sums(&profile);
    assert_eq!(
        found,
        expected(&[("a", 10), ("other", 8), ("[unknown]", 7)])
    );
}

#[test]
fn negative_values_are_refused() {
    let error = tree_bytes(&tree(&[("main;a", 3), ("main;b", -1)]), 0).unwrap_err();
    assert!(
        error.to_string().contains("negative values, as \"b\" has"),
        "{error}"
    );
}

fn stacks() -> impl Strategy<Value = Vec<(String, i64)>> {
    let frame = "[a-dé]{1,3}";
    let stack = prop::collection::vec(frame, 1..6).prop_map(|frames| frames.join(";"));
    prop::collection::vec((stack, 1_i64..1000), 1..30)
}

fn summed(stacks: &[(String, i64)]) -> BTreeMap<String, i64> {
    let mut sums = BTreeMap::new();
    for (stack, value) in stacks {
        *sums.entry(stack.clone()).or_default() += value;
    }
    sums
}

proptest! {
    #[test]
    fn trees_round_trip(stacks in stacks()) {
        let borrowed: Vec<(&str, i64)> = stacks.iter().map(|(s, v)| (s.as_str(), *v)).collect();
        let bytes = tree_bytes(&tree(&borrowed), 0).unwrap();
        let (profile, report) = read_tree(&bytes[..], &ReadOptions::default()).unwrap();
        prop_assert_eq!(sums(&profile), summed(&stacks));
        prop_assert_eq!(report.notes, []);
    }

    #[test]
    fn tries_hold_what_folded_text_does(stacks in stacks()) {
        let (profile, report) = read_trie(&bytewise_trie(&stacks)[..], &ReadOptions::default()).unwrap();
        prop_assert_eq!(sums(&profile), summed(&stacks));
        prop_assert_eq!(report.notes, []);
    }

    #[test]
    fn pruned_trees_keep_their_sum(stacks in stacks(), max_nodes in 1_usize..12) {
        let borrowed: Vec<(&str, i64)> = stacks.iter().map(|(s, v)| (s.as_str(), *v)).collect();
        let bytes = tree_bytes(&tree(&borrowed), max_nodes).unwrap();
        let (profile, _) = read_tree(&bytes[..], &ReadOptions::default()).unwrap();
        prop_assert_eq!(profile.series[0].total(), stacks.iter().map(|(_, v)| v).sum::<i64>());
    }

    #[test]
    fn any_bytes_are_survived(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
        let reads = [
            read_groups(&bytes[..], &ReadOptions::default()),
            read_lines(&bytes[..], &ReadOptions::default()),
            read_tree(&bytes[..], &ReadOptions::default()),
            read_trie(&bytes[..], &ReadOptions::default()),
        ];
        for (profile, _) in reads.into_iter().flatten() {
            prop_assert_eq!(profile.validate(), Ok(()));
        }
    }
}
