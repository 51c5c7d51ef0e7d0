//! Folded stacks, tables, trees and flame graphs.

use std::collections::BTreeMap;

use crate::common::found_files;
use crate::common::real_file;
use crate::common::real_files;
use crate::common::tree;
use candela_formats::FoldedOptions;
use candela_formats::Format;
use candela_formats::HtmlOptions;
use candela_formats::Orientation;
use candela_formats::Part;
use candela_formats::ReadOptions;
use candela_formats::SvgOptions;
use candela_formats::TableFormat;
use candela_formats::TreeOptions;
use candela_formats::WriteOptions;
use candela_formats::detect;
use candela_formats::read;
use candela_formats::read_folded;
use candela_formats::write;
use candela_formats::write_folded;
use candela_formats::write_svg;
use candela_formats::write_top;
use candela_formats::write_tree;
use candela_model::FlameTree;
use candela_model::FlameTreeBuilder;
use candela_model::FrameKind;
use candela_model::Profile;
use candela_model::ProfileType;
use proptest::prelude::*;

fn cpu() -> ProfileType {
    "process_cpu:cpu:nanoseconds:cpu:nanoseconds"
        .parse()
        .unwrap()
}

fn text(write: impl FnOnce(&mut Vec<u8>)) -> String {
    let mut bytes = Vec::new();
    write(&mut bytes);
    String::from_utf8(bytes).unwrap()
}

fn folded(profile: &Profile) -> String {
    text(|out| {
        write(Format::Folded, profile, out, &WriteOptions::default()).unwrap();
    })
}

/// An independent reading of plain folded text: stacks and sums of their counts.
fn plain_sums(text: &str) -> BTreeMap<String, f64> {
    let mut sums = BTreeMap::new();
    for line in text.lines() {
        let fields: Vec<&str> = line.split_whitespace().collect();
        let Some(count) = fields.last().and_then(|count| count.parse::<f64>().ok()) else {
            continue;
        };
        if fields.len() > 1 {
            let end = line.trim_end().rfind(char::is_whitespace).unwrap();
            *sums.entry(line[..end].trim().to_owned()).or_insert(0.0) += count;
        }
    }
    sums
}

#[test]
fn real_folded_files_keep_their_sums() {
    for file in real_files("folded") {
        let (name, bytes) = (file.name, file.bytes);
        assert_eq!(
            detect(&bytes[..bytes.len().min(4096)]),
            Some(Format::Folded),
            "{name}"
        );
        let (profile, report) = read_folded(&bytes[..], &ReadOptions::default()).unwrap();
        assert_eq!(profile.validate(), Ok(()), "{name}");
        println!("{name}: {:?}", report.notes);
        if file.expected == "lenient" {
            assert!(report.count("lines_without_count") > 0, "{name}");
            continue;
        }
        let is_utf8 = std::str::from_utf8(&bytes).is_ok();
        if !is_utf8 {
            assert!(folded(&profile).contains("a;b;c"), "{name}");
            continue;
        }
        let sums = plain_sums(std::str::from_utf8(&bytes).unwrap());
        let total: f64 = sums.values().sum();
        let difference = (profile.series[0].total() as f64 - total).abs();
        assert!(difference <= 0.5 * sums.len() as f64, "{name}: {total}");
        if report.count("fractions_rounded") == 0 {
            assert!(difference < 1e-6, "{name}: {total}");
        }
    }
}

#[test]
fn folded_round_trips() {
    let input = "a;b c;d 7\na;b c 2\nx::y<T, U>::z();q 1\n";
    let (profile, report) = read_folded(input.as_bytes(), &ReadOptions::default()).unwrap();
    assert_eq!(report.notes, []);
    assert_eq!(
        folded(&profile),
        "a;b c 2\na;b c;d 7\nx::y<T, U>::z();q 1\n"
    );
}

#[test]
fn samples_without_frames_have_a_line() {
    let mut builder = FlameTreeBuilder::new();
    builder.add_stack([], 7);
    let folded =
        text(|out| write_folded(&builder.finish(), out, &FoldedOptions::default()).unwrap());
    assert_eq!(folded, "[unknown] 7\n");
}

#[test]
fn folded_oddities_are_tolerated() {
    let options = ReadOptions::default();
    let cases: [(&[u8], &str, &str); 6] = [
        (b"a;b 1\r\na;b 2\r\n", "a;b 3\n", ""),
        (b"\xef\xbb\xbfa 1\n", "a 1\n", ""),
        (b"a;b 0.5\na;b 0.5\n", "a;b 1\n", ""),
        (b"a;b 0.7\n", "a;b 1\n", "fractions_rounded"),
        (b"a;b 3 5\n", "a;b 5\n", "first_count_ignored"),
        (
            b"read_[k];main_[j] 1\nnothing\n",
            "read;main 1\n",
            "lines_without_count",
        ),
    ];
    for (input, output, note) in cases {
        let (profile, report) = read_folded(input, &options).unwrap();
        assert_eq!(folded(&profile), output);
        assert_eq!(
            report
                .notes
                .iter()
                .map(|note| note.code)
                .collect::<String>(),
            note
        );
    }
    assert!(read_folded(&b"no counts here\n"[..], &options).is_err());
}

#[test]
fn the_kernel_is_marked_only_when_asked() {
    let tree = tree(&[("main;read@kernel", 3), ("main;a;b", 1)]);
    let plain = text(|out| write_folded(&tree, out, &FoldedOptions::default()).unwrap());
    assert_eq!(plain, "main;a;b 1\nmain;read 3\n");
    let marked = FoldedOptions { kind_suffix: true };
    let marked = text(|out| write_folded(&tree, out, &marked).unwrap());
    assert_eq!(marked, "main;a;b 1\nmain;read_[k] 3\n");
}

#[test]
fn the_top_table_is_laid_out_like_pprof() {
    let tree = tree(&[
        ("main;work", 7_500_000_000),
        ("main;work;hash", 2_000_000_000),
        ("main;a|b", 500_000_000),
    ]);
    let table = |format, limit| text(|out| write_top(&tree, &cpu(), format, limit, out).unwrap());
    let expected = "\
Total CPU time: 10.00s
Showing 3 of 4 functions
      Flat   Flat%    Sum%        Cum    Cum%  Name
     7.50s  75.00%  75.00%      9.50s  95.00%  work
     2.00s  20.00%  95.00%      2.00s  20.00%  hash
  500.00ms   5.00% 100.00%   500.00ms   5.00%  a|b
";
    assert_eq!(table(TableFormat::Text, 3), expected);
    let csv = table(TableFormat::Csv, 0);
    assert!(
        csv.starts_with(
            "name,file,mapping,kind,self,total,unit\nwork,,,,7500000000,9500000000,nanoseconds\n"
        ),
        "{csv}"
    );
    assert_eq!(csv.lines().count(), 5);
    let markdown = table(TableFormat::Markdown, 0);
    assert!(
        markdown.contains("| 500.00ms | 5.00% | 100.00% | 500.00ms | 5.00% | `a\\|b` |"),
        "{markdown}"
    );
    let json: serde_json::Value = serde_json::from_str(&table(TableFormat::Json, 1)).unwrap();
    assert_eq!(json["schema"], "candela/top/v1");
    assert_eq!(json["total"], 10_000_000_000_i64);
    assert_eq!(json["functions"][0]["self"], 7_500_000_000_i64);
    assert_eq!(json["truncated"]["total"], 4);
}

#[test]
fn csv_fields_are_quoted() {
    let tree = tree(&[("f(a, \"b\")", 1)]);
    let csv = text(|out| write_top(&tree, &cpu(), TableFormat::Csv, 0, out).unwrap());
    assert!(
        csv.contains("\"f(a, \"\"b\"\")\",,,,1,1,nanoseconds"),
        "{csv}"
    );
}

#[test]
fn the_call_tree_is_indented() {
    let tree = tree(&[
        ("main;work;hash", 990),
        ("main;read@kernel", 9),
        ("main;rare", 1),
    ]);
    let options = TreeOptions::default();
    let printed = text(|out| write_tree(&tree, &cpu(), &options, out).unwrap());
    let expected = "\
Total CPU time: 1.00µs
       Cum    Cum%       Flat  Name
    1.00µs 100.00%        0ns  main
     990ns  99.00%        0ns    work
     990ns  99.00%      990ns      hash
       9ns   0.90%        9ns    read [kernel]
1 lighter or deeper nodes are not shown
";
    assert_eq!(printed, expected);
    let shallow = TreeOptions {
        max_depth: 1,
        min_share: 0.0,
    };
    let printed = text(|out| write_tree(&tree, &cpu(), &shallow, out).unwrap());
    assert!(
        printed.ends_with("main\n4 lighter or deeper nodes are not shown\n"),
        "{printed}"
    );
}

#[test]
fn the_flame_graph_is_sound_xml_with_exact_boxes() {
    let tree = tree(&[
        ("main;a<b>&\"c\"", 750),
        ("main;\u{1}x", 250),
        ("main;tiny", 0),
    ]);
    for orientation in [Orientation::Icicle, Orientation::Flame] {
        let options = SvgOptions {
            orientation,
            title: "<cpu>".to_owned(),
            ..SvgOptions::default()
        };
        let svg = text(|out| write_svg(&tree, &cpu(), out, &options).unwrap());
        let again = text(|out| write_svg(&tree, &cpu(), out, &options).unwrap());
        assert_eq!(svg, again, "equal trees give equal bytes");
        let document = roxmltree::Document::parse(&svg).unwrap();
        let frames: Vec<_> = document
            .descendants()
            .filter(|node| node.attribute("class") == Some("frame"))
            .collect();
        assert_eq!(frames.len(), 4);
        let boxes: Vec<(f64, f64, f64)> = frames
            .iter()
            .map(|frame| {
                let rect = frame
                    .children()
                    .find(|child| child.has_tag_name("rect"))
                    .unwrap();
                let number = |name| rect.attribute(name).unwrap().parse::<f64>().unwrap();
                (number("x"), number("y"), number("width"))
            })
            .collect();
        assert_eq!(boxes[2].2, 888.0, "three quarters of 1184 pixels");
        assert_eq!(boxes[3].0, 896.0);
        let is_below = boxes[1].1 > boxes[0].1;
        assert_eq!(is_below, orientation == Orientation::Icicle);
        assert_eq!(frames[2].attribute("data-name"), Some("a<b>&\"c\""));
        let tip = frames[2]
            .children()
            .find(|child| child.has_tag_name("title"))
            .unwrap();
        assert_eq!(tip.text(), Some("a<b>&\"c\"\n750ns (75.00%), self 750ns"));
    }
}

#[test]
fn narrow_boxes_are_left_out_and_counted() {
    let tree = tree(&[("main;wide", 1_000_000), ("main;narrow;below", 10)]);
    let svg = text(|out| write_svg(&tree, &cpu(), out, &SvgOptions::default()).unwrap());
    assert!(svg.contains("2 frames narrower than 0.3 pixels are not shown"));
    assert!(!svg.contains("data-name=\"below\""));
}

#[test]
fn an_empty_tree_is_drawn_too() {
    for tree in [tree(&[]), FlameTree::default()] {
        let svg = text(|out| write_svg(&tree, &cpu(), out, &SvgOptions::default()).unwrap());
        assert!(roxmltree::Document::parse(&svg).is_ok());
        let top = text(|out| write_top(&tree, &cpu(), TableFormat::Text, 0, out).unwrap());
        assert_eq!(top.lines().count(), 2);
    }
}

#[test]
fn every_writable_format_takes_a_real_profile_and_readable_ones_read_it_again() {
    let bytes = real_file("pprof/parca.many.1644509275338070000.pb.gz");
    assert_eq!(detect(&bytes[..4096]), Some(Format::Pprof));
    let (profile, _) = read(Format::Pprof, &bytes[..], &ReadOptions::default()).unwrap();
    let options = WriteOptions {
        sample_type: Some("alloc_space".to_owned()),
        html: HtmlOptions {
            template: Some("<!--candela-profiles-->"),
            ..HtmlOptions::default()
        },
        ..WriteOptions::default()
    };
    for format in Format::all().filter(|format| format.is_writable()) {
        // Not every type is an event; it has tests of its own.
        if format == Format::ProfileEvent {
            continue;
        }
        let mut written = Vec::new();
        let report = write(format, &profile, &mut written, &options).unwrap();
        assert!(!written.is_empty(), "{format}");
        let holds_all = format.keeps().contains(&Part::AllTypes);
        assert_eq!(
            report.count("types_left_out"),
            if holds_all { 0 } else { 3 },
            "{format}"
        );
        if !format.is_readable() {
            continue;
        }
        assert_eq!(detect(&written[..written.len().min(4096)]), Some(format));
        let (again, _) = read(format, &written[..], &ReadOptions::default()).unwrap();
        let total = |profile: &Profile, position: usize| profile.series[position].total();
        let position = usize::from(holds_all);
        assert_eq!(total(&again, position), total(&profile, 1), "{format}");
    }
    let wrong = WriteOptions {
        sample_type: Some("cycles".to_owned()),
        ..WriteOptions::default()
    };
    let error = write(Format::Folded, &profile, Vec::new(), &wrong)
        .unwrap_err()
        .to_string();
    assert!(
        error.contains("has no sample type \"cycles\"; it has memory:alloc_objects"),
        "{error}"
    );
}

#[test]
fn every_real_pprof_file_is_detected() {
    for file in real_files("pprof") {
        if file.expected == "ok" {
            assert_eq!(
                detect(&file.bytes[..file.bytes.len().min(2048)]),
                Some(Format::Pprof),
                "{}",
                file.name
            );
        }
    }
}

#[test]
fn every_sound_file_is_detected_and_text_protos_are_not() {
    let folders = [
        "callgrind",
        "chrome-trace",
        "folded",
        "gecko",
        "jfr",
        "nettrace",
        "other",
        "perf-data",
        "perf-script",
        "perfetto",
        "pprof",
        "pprof-legacy",
        "speedscope",
        "v8",
    ];
    for file in folders.map(found_files).iter().flatten() {
        let found = detect(&file.bytes[..file.bytes.len().min(64 << 10)]);
        if file.expected == "ok" {
            assert!(found.is_some(), "{}", file.name);
        }
        if file.name.ends_with(".textproto") {
            assert_eq!(found, None, "{}", file.name);
        }
    }
}

proptest! {
    #[test]
    fn any_text_is_survived(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
        let _ = read_folded(&bytes[..], &ReadOptions::default());
        let _ = detect(&bytes);
    }

    #[test]
    fn folded_keeps_sums(stacks in prop::collection::vec(("[a-z;: ]{1,12}", 1_i64..1000), 1..20)) {
        let input: String = stacks.iter().map(|(stack, value)| format!("f{stack}g {value}\n")).collect();
        let (profile, _) = read_folded(input.as_bytes(), &ReadOptions::default()).unwrap();
        let sum: i64 = stacks.iter().map(|(_, value)| value).sum();
        prop_assert_eq!(profile.series[0].total(), sum);
        let (again, _) = read_folded(folded(&profile).as_bytes(), &ReadOptions::default()).unwrap();
        prop_assert_eq!(folded(&again), folded(&profile));
    }

    #[test]
    fn any_name_gives_sound_xml(names in prop::collection::vec(".{0,12}", 1..6)) {
        let mut builder = FlameTreeBuilder::new();
        let frames: Vec<_> = names
            .iter()
            .map(|name| builder.frames.intern(name, name, name, FrameKind::Jvm, 0))
            .collect();
        builder.add_stack(frames, 10);
        let tree = builder.finish();
        let svg = text(|out| write_svg(&tree, &cpu(), out, &SvgOptions::default()).unwrap());
        prop_assert!(roxmltree::Document::parse(&svg).is_ok());
    }
}
