//! Folded stacks: long files, both line ends, both orders of UTF-16, and files of two columns.
#![expect(clippy::print_stderr, reason = "a test says what it skips")]

use std::collections::BTreeMap;
use std::io::BufReader;
use std::io::Read;
use std::path::Path;

use crate::common::found_files;
use candela_formats::FoldedDiffOptions;
use candela_formats::FoldedOptions;
use candela_formats::Format;
use candela_formats::Limits;
use candela_formats::ReadOptions;
use candela_formats::detect;
use candela_formats::read_folded;
use candela_formats::read_folded_diff;
use candela_formats::write_folded;
use candela_formats::write_folded_diff;
use candela_model::FlameTree;
use candela_model::FlameTreeBuilder;
use candela_model::FrameKind;
use candela_model::Profile;
use proptest::prelude::*;

fn tree_of(profile: &Profile, series: usize) -> FlameTree {
    let mut builder = FlameTreeBuilder::new();
    builder.add_series(profile, series);
    builder.finish()
}

fn tree(text: &[u8]) -> FlameTree {
    let (profile, _) = read_folded(text, &ReadOptions::default()).unwrap();
    tree_of(&profile, 0)
}

fn folded(tree: &FlameTree, options: &FoldedOptions) -> String {
    let mut bytes = Vec::new();
    write_folded(tree, &mut bytes, options).unwrap();
    String::from_utf8(bytes).unwrap()
}

fn folded_diff(before: &FlameTree, after: &FlameTree, options: &FoldedDiffOptions) -> String {
    let mut bytes = Vec::new();
    write_folded_diff(before, after, &mut bytes, options).unwrap();
    String::from_utf8(bytes).unwrap()
}

const MARKED: FoldedOptions = FoldedOptions { kind_suffix: true };

/// What the script of the flame graph project makes of two files.
fn expected_diff(name: &str) -> Option<Vec<String>> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/corpus");
    let path = root.join("folded/diff").join(format!("results.{name}.txt"));
    let Ok(text) = std::fs::read_to_string(&path) else {
        eprintln!("skipped: no corpus at {}", path.display());
        return None;
    };
    let mut lines: Vec<String> = text.lines().map(ToOwned::to_owned).collect();
    lines.sort();
    Some(lines)
}

#[test]
fn two_columns_are_those_of_other_programs() {
    let files = found_files("folded");
    let file = |name: &str| {
        let file = files.iter().find(|file| file.name == name);
        file.map(|file| tree(&file.bytes))
    };
    let frames = MARKED;
    let plain = FoldedDiffOptions {
        frames,
        ..FoldedDiffOptions::default()
    };
    let normalized = FoldedDiffOptions {
        normalize: true,
        ..plain
    };
    let stripped = FoldedDiffOptions {
        strip_hex: true,
        ..plain
    };
    for (expected, before, options) in [
        ("default", "diff/before.txt", plain),
        ("normalize", "diff/before.txt", normalized),
        ("strip_hex", "diff/before.txt", stripped),
        ("fractionals", "diff/before_fractionals.txt", plain),
    ] {
        let Some(mut expected_lines) = expected_diff(expected) else {
            return;
        };
        if expected == "fractionals" {
            // They cut fractions off. We round: 11.98 is 12, and 7.56 is 8.
            for line in &mut expected_lines {
                *line = line.replace(" 11 15", " 12 15").replace(" 7 6", " 8 6");
            }
        }
        let (before, after) = (file(before).unwrap(), file("diff/after.txt").unwrap());
        let found = folded_diff(&before, &after, &options);
        let mut lines: Vec<&str> = found.lines().collect();
        lines.sort_unstable();
        assert_eq!(lines, expected_lines, "{expected}");
        assert_eq!(detect(found.as_bytes()), Some(Format::Folded));

        let (profile, report) =
            read_folded_diff(found.as_bytes(), &ReadOptions::default()).unwrap();
        assert_eq!(report.notes, []);
        assert_eq!(profile.series[0].total(), after.root_total());
        let again = folded_diff(&tree_of(&profile, 1), &tree_of(&profile, 0), &plain);
        assert_eq!(again, found);
    }
}

#[test]
fn a_number_before_the_count_is_a_count_only_if_all_lines_have_one() {
    let options = ReadOptions::default();
    let both = b"a;b 3 5\nc 0 7\n";
    let (profile, report) = read_folded(&both[..], &options).unwrap();
    assert_eq!(report.count("first_count_ignored"), 2);
    assert_eq!(folded(&tree_of(&profile, 0), &MARKED), "a;b 5\nc 7\n");
    let (profile, _) = read_folded_diff(&both[..], &options).unwrap();
    assert_eq!(folded(&tree_of(&profile, 1), &MARKED), "a;b 3\n");

    let names = b"main;Thread 1 5\nmain;Thread 2 7\nmain;run 9\n";
    let (profile, report) = read_folded(&names[..], &options).unwrap();
    assert_eq!(report.notes, []);
    let expected = "main;Thread 1 5\nmain;Thread 2 7\nmain;run 9\n";
    assert_eq!(folded(&tree_of(&profile, 0), &MARKED), expected);
    let error = read_folded_diff(&names[..], &options).unwrap_err();
    assert!(error.to_string().contains("count-before"), "{error}");
}

#[test]
fn annotations_tell_the_kernel_and_are_no_part_of_names() {
    let text = b"f_[k];g_[i];h_[j];i_[0];j_[1];_[k] 1\n";
    let tree = tree(text);
    assert_eq!(
        folded(&tree, &FoldedOptions::default()),
        "f;g;h;i;j;_[k] 1\n"
    );
    let kernel = tree
        .frames
        .frames()
        .iter()
        .filter(|frame| frame.kind == FrameKind::Kernel);
    assert_eq!(kernel.count(), 1);
}

#[test]
fn a_frame_may_look_like_a_comment() {
    let text = b"# unit: 7\n#\n # unit: 5\n #;a 2\n # 3\n#<Class:Shop>;sell 4\n";
    let written = folded(&tree(text), &FoldedOptions::default());
    let expected = " # 3\n # unit: 5\n#;a 2\n#<Class:Shop>;sell 4\n";
    assert_eq!(written, expected);
    assert_eq!(
        folded(&tree(written.as_bytes()), &FoldedOptions::default()),
        written
    );
}

#[test]
fn both_orders_of_utf16_are_read() {
    let text = "\u{feff}a;b \u{1f525};c 1\r\na;d 4.5\r\n";
    let little: Vec<u8> = text.encode_utf16().flat_map(u16::to_le_bytes).collect();
    let big: Vec<u8> = text.encode_utf16().flat_map(u16::to_be_bytes).collect();
    for bytes in [little, big, text.as_bytes().to_vec()] {
        assert_eq!(detect(&bytes), Some(Format::Folded));
        let found = folded(&tree(&bytes), &MARKED);
        assert_eq!(found, "a;b \u{1f525};c 1\na;d 5\n");
    }
}

/// Lines without end.
struct Lines {
    left: usize,
}

impl Read for Lines {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        if self.left == 0 {
            return Ok(0);
        }
        self.left -= 1;
        let number = self.left % 100;
        let line = format!("main;some_long_name_of_a_function;and_another_{number} 3\n");
        buffer[..line.len()].copy_from_slice(line.as_bytes());
        Ok(line.len())
    }
}

#[test]
fn memory_is_bounded_by_the_stacks_and_not_by_the_text() {
    let lines = || BufReader::with_capacity(1 << 12, Lines { left: 300_000 });
    let options = |max_inflated_bytes| ReadOptions {
        limits: Limits {
            max_inflated_bytes,
            ..Limits::default()
        },
        ..ReadOptions::default()
    };
    // The text has 17 MB.
    let (profile, _) = read_folded(lines(), &options(1 << 16)).unwrap();
    assert_eq!(profile.series[0].total(), 900_000);
    assert_eq!(profile.series[0].samples.len(), 100);
    assert!(read_folded(lines(), &options(1 << 10)).is_err());
}

proptest! {
    #[test]
    fn two_columns_read_back(
        stacks in prop::collection::vec(("[a-z]{1,2}(;[a-z]{1,2}){0,3}", 1_i64..1000, 1_i64..1000), 1..20)
    ) {
        let text: String = stacks
            .iter()
            .map(|(stack, before, after)| format!("{stack} {before} {after}\n"))
            .collect();
        let (profile, _) = read_folded_diff(text.as_bytes(), &ReadOptions::default()).unwrap();
        let (before, after) = (tree_of(&profile, 1), tree_of(&profile, 0));
        let written = folded_diff(&before, &after, &FoldedDiffOptions::default());
        let mut sums: BTreeMap<&str, (i64, i64)> = BTreeMap::new();
        for (stack, before, after) in &stacks {
            let sum = sums.entry(stack).or_default();
            sum.0 += before;
            sum.1 += after;
        }
        let expected: String = sums
            .iter()
            .map(|(stack, (before, after))| format!("{stack} {before} {after}\n"))
            .collect();
        prop_assert_eq!(written, expected);
    }

    #[test]
    fn any_bytes_are_survived(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
        let _ = read_folded_diff(&bytes[..], &ReadOptions::default());
    }
}
