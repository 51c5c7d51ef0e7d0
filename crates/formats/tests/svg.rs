//! Flame graphs as SVG: the difference of two profiles, and what a browser makes of the file.

use std::collections::BTreeMap;

use crate::common::browser::drive;
use crate::common::browser::written;
use crate::common::found_files;
use candela_formats::BeforeScale;
use candela_formats::Orientation;
use candela_formats::SvgDiffOptions;
use candela_formats::SvgOptions;
use candela_formats::write_svg;
use candela_formats::write_svg_diff;
use candela_model::FlameTree;
use candela_model::FlameTreeBuilder;
use candela_model::FrameKind;
use candela_model::ProfileType;
use proptest::prelude::*;

fn counts() -> ProfileType {
    "samples:samples:count:cpu:nanoseconds".parse().unwrap()
}

fn tree<'a>(stacks: impl IntoIterator<Item = (&'a str, i64)>) -> FlameTree {
    let mut builder = FlameTreeBuilder::new();
    for (names, value) in stacks {
        let frames: Vec<_> = names
            .split(';')
            .map(|name| builder.frames.intern(name, "", "", FrameKind::Unknown, 0))
            .collect();
        builder.add_stack(frames, value);
    }
    builder.finish()
}

fn all_boxes() -> SvgDiffOptions {
    SvgDiffOptions {
        svg: SvgOptions {
            min_width: 0.0,
            ..SvgOptions::default()
        },
        ..SvgDiffOptions::default()
    }
}

fn diff(before: &FlameTree, after: &FlameTree, options: &SvgDiffOptions) -> String {
    let mut bytes = Vec::new();
    write_svg_diff(before, after, &counts(), &mut bytes, options).unwrap();
    String::from_utf8(bytes).unwrap()
}

/// Width, color and tip of each box by name.
fn boxes(svg: &str) -> BTreeMap<String, (f64, String, String)> {
    let document = roxmltree::Document::parse(svg).unwrap();
    let frames = document
        .descendants()
        .filter(|node| node.attribute("class") == Some("frame"));
    let boxes = frames.map(|frame| {
        let child = |name| frame.children().find(|child| child.has_tag_name(name));
        let rect = child("rect").unwrap();
        let tip = child("title").unwrap().text().unwrap().to_owned();
        let width = rect.attribute("width").unwrap().parse::<f64>().unwrap();
        let fill = rect.attribute("fill").unwrap().to_owned();
        let name = frame.attribute("data-name").unwrap().to_owned();
        (name, (width, fill, tip))
    });
    boxes.collect()
}

#[test]
fn red_grew_blue_shrank_and_widths_are_those_after() {
    let before = tree([("main;grew", 10), ("main;shrank", 40), ("main;gone", 50)]);
    let after = tree([("main;grew", 50), ("main;shrank", 20), ("main;new", 30)]);
    let svg = diff(&before, &after, &all_boxes());
    let found = boxes(&svg);
    assert_eq!(found["grew"].0, 592.0, "half of 1184 pixels");
    assert_eq!(found["grew"].1, "#ff4242");
    assert_eq!(found["main"].1, "#f0f0f0", "its own value is as before");
    assert!(found["shrank"].1.ends_with("ff"), "{}", found["shrank"].1);
    assert!(found["new"].1.starts_with("#ff"), "{}", found["new"].1);
    assert!(!found.contains_key("gone"));
    assert_eq!(
        found["grew"].2,
        "grew\nbefore 10 (10.00%), self 10\nafter 50 (50.00%), self 50\nchange +40 (+40.00%), self +40"
    );
    assert!(svg.contains("1 frames are only in the profile before"));
    assert!(svg.contains("grew (up to +50)") && svg.contains("shrank (up to -50)"));
    assert!(svg.contains("samples: 100 before, 100 after, change 0"));
}

#[test]
fn negated_has_the_widths_before_and_the_same_colors() {
    let before = tree([("main;both", 25), ("main;gone", 75)]);
    let after = tree([("main;both", 50), ("main;new", 10)]);
    let options = SvgDiffOptions {
        negate: true,
        ..all_boxes()
    };
    let svg = diff(&before, &after, &options);
    let found = boxes(&svg);
    assert_eq!(found["gone"].0, 888.0);
    assert_eq!(found["gone"].1, "#5a5aff");
    assert!(found["both"].1.starts_with("#ff"));
    assert!(!found.contains_key("new"));
    assert!(svg.contains("1 frames are only in the profile after"));
}

#[test]
fn normalized_compares_shares() {
    let before = tree([("main;same", 10), ("main;grew", 10)]);
    let after = tree([("main;same", 50), ("main;grew", 150)]);
    let options = SvgDiffOptions {
        scale: BeforeScale::SameTotal,
        ..all_boxes()
    };
    let found = boxes(&diff(&before, &after, &options));
    assert!(found["same"].1.ends_with("ff"), "half became a quarter");
    assert!(
        found["grew"].2.contains("before 100 (50.00%)"),
        "{}",
        found["grew"].2
    );
}

fn stacks(text: &str) -> impl Iterator<Item = (&str, i64)> {
    text.lines().filter_map(|line| {
        let (stack, value) = line.rsplit_once(' ')?;
        Some((stack, value.parse().ok()?))
    })
}

#[test]
fn a_real_pair_differs_as_its_lines_do() {
    let files = found_files("folded");
    let content = |name: &str| {
        let file = files.iter().find(|file| file.name == name)?;
        Some(String::from_utf8_lossy(&file.bytes).into_owned())
    };
    let (Some(before), Some(after)) = (content("diff/before.txt"), content("diff/after.txt"))
    else {
        return;
    };
    let trees = [&before, &after].map(|text| tree(stacks(text)));
    let svg = diff(&trees[0], &trees[1], &all_boxes());
    let mut own: BTreeMap<&str, (i64, i64)> = BTreeMap::new();
    for (stack, value) in stacks(&before) {
        own.entry(stack).or_default().0 += value;
    }
    for (stack, value) in stacks(&after) {
        own.entry(stack).or_default().1 += value;
    }
    let document = roxmltree::Document::parse(&svg).unwrap();
    let mut path: Vec<String> = Vec::new();
    let mut seen = 0;
    for frame in document
        .descendants()
        .filter(|node| node.attribute("class") == Some("frame"))
    {
        let depth: usize = frame.attribute("data-depth").unwrap().parse().unwrap();
        path.truncate(depth);
        path.push(frame.attribute("data-name").unwrap().to_owned());
        let stack = path[1..].join(";");
        let (was, is) = own.get(stack.as_str()).copied().unwrap_or_default();
        let rect = frame.children().find(|child| child.has_tag_name("rect"));
        let color = rect.unwrap().attribute("fill").unwrap();
        match is.cmp(&was) {
            std::cmp::Ordering::Greater => assert!(color.starts_with("#ff"), "{stack} {color}"),
            std::cmp::Ordering::Less => assert!(color.ends_with("ff"), "{stack} {color}"),
            std::cmp::Ordering::Equal => assert_eq!(color, "#f0f0f0", "{stack}"),
        }
        seen += 1;
    }
    assert!(seen > 20, "{seen} boxes");
}

#[test]
fn nothing_against_something() {
    let some = tree([("main", 3)]);
    for (before, after) in [
        (tree([]), tree([])),
        (FlameTree::default(), FlameTree::default()),
        (tree([]), some.clone()),
        (some, FlameTree::default()),
    ] {
        for negate in [false, true] {
            let options = SvgDiffOptions {
                negate,
                scale: BeforeScale::SameTotal,
                ..SvgDiffOptions::default()
            };
            let svg = diff(&before, &after, &options);
            assert!(roxmltree::Document::parse(&svg).is_ok());
        }
    }
}

/// What the script saw of a file: zoom and search by pointer and keys.
fn assert_alive(file: &str, seen: &serde_json::Value) {
    let width = |when: &str, name: &str| seen[when][name].as_f64().unwrap();
    assert_eq!(width("atFirst", "work"), 888.0, "{file}");
    for zoomed in ["zoomedByClick", "zoomedByKey"] {
        assert_eq!(width(zoomed, "work"), 1184.0, "{file} {zoomed}");
        assert_eq!(width(zoomed, "main"), 1184.0, "{file} {zoomed}");
        assert_eq!(width(zoomed, "inner"), 592.0, "{file} {zoomed}");
        assert_eq!(width(zoomed, "idle"), 0.0, "{file} {zoomed}");
    }
    for reset in ["resetByClick", "resetByKey"] {
        assert_eq!(seen[reset], seen["atFirst"], "{file} {reset}");
    }
    for matched in ["matchedByClick", "matchedByKey"] {
        assert_eq!(seen[matched], "matched 75.00%", "{file} {matched}");
    }
    assert_eq!(seen["afterEscape"], "", "{file}");
    let path = serde_json::json!(["total", "main", "work"]);
    assert_eq!(seen["path"], path, "{file}");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn any_pair_gives_sound_xml(
        before in proptest::collection::vec(("[a-c](;[a-c<&]){0,4}", any::<i64>()), 0..8),
        after in proptest::collection::vec(("[a-c](;[a-c<&]){0,4}", any::<i64>()), 0..8),
        negate: bool,
        is_scaled: bool,
    ) {
        let before = tree(before.iter().map(|(stack, value)| (stack.as_str(), *value)));
        let after = tree(after.iter().map(|(stack, value)| (stack.as_str(), *value)));
        let scale = if is_scaled { BeforeScale::SameTotal } else { BeforeScale::AsMeasured };
        let options = SvgDiffOptions { negate, scale, ..all_boxes() };
        let svg = diff(&before, &after, &options);
        prop_assert!(roxmltree::Document::parse(&svg).is_ok());
        prop_assert!(!svg.contains("NaN") && !svg.contains("width=\"inf"));
    }
}

mod host {
    use super::*;

    #[test]
    fn a_browser_zooms_and_searches() {
        let stacks = [
            ("main;work;inner", 375),
            ("main;work", 375),
            ("main;idle", 250),
        ];
        let after = tree(stacks);
        let before = tree([("main;work", 500), ("main;idle", 500)]);
        let mut files = Vec::new();
        for orientation in [Orientation::Icicle, Orientation::Flame] {
            let svg = SvgOptions {
                orientation,
                ..SvgOptions::default()
            };
            let mut single = Vec::new();
            write_svg(&after, &counts(), &mut single, &svg).unwrap();
            files.push(written(
                &format!("one_profile-{orientation:?}.svg"),
                &single,
            ));
            let options = SvgDiffOptions {
                svg,
                ..SvgDiffOptions::default()
            };
            let both = diff(&before, &after, &options);
            let name = format!("two_profiles-{orientation:?}.svg");
            files.push(written(&name, both.as_bytes()));
        }
        let paths: Vec<&str> = files.iter().map(|file| file.to_str().unwrap()).collect();
        let arguments = [&["work"], &paths[..]].concat();
        let Some(seen) = drive("a_browser_zooms_and_searches", "svg.mjs", &arguments) else {
            return;
        };
        assert_eq!(seen["problems"], serde_json::json!([]), "{seen:#}");
        for (path, seen) in paths.iter().zip(seen["files"].as_array().unwrap()) {
            assert_alive(path, seen);
        }
    }
}
