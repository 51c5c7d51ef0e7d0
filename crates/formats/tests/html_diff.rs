//! The page of a difference: what stands in it, and what a browser makes of it without any network.

use crate::common::assert_golden;
use crate::common::browser::drive;
use crate::common::browser::written;
use crate::common::offline_page::TEMPLATE;
use crate::common::offline_page::built_template;
use crate::common::offline_page::document;
use crate::common::offline_page::header;
use crate::common::offline_page::numbers;
use crate::common::offline_page::unpacked;
use candela_formats::BeforeScale;
use candela_formats::DiffSides;
use candela_formats::HtmlDiffOptions;
use candela_formats::HtmlOptions;
use candela_formats::write_html_diff;
use candela_model::FlameTree;
use candela_model::FlameTreeBuilder;
use candela_model::FrameKind;
use serde_json::Value;
use serde_json::json;

const BEFORE: [(&str, i64); 5] = [
    ("main;serve;parse", 40),
    ("main;serve;render", 30),
    ("main;serve;write", 20),
    ("main;legacy", 10),
    ("main;serve", 20),
];

const AFTER: [(&str, i64); 5] = [
    ("main;serve;parse", 90),
    ("main;serve;render", 10),
    ("main;serve;write", 20),
    ("main;serve;compress", 20),
    ("main;serve", 20),
];

fn tree(stacks: &[(&str, i64)]) -> FlameTree {
    let mut builder = FlameTreeBuilder::new();
    for (names, value) in stacks {
        let intern = |name| {
            let file = "demo.c";
            builder
                .frames
                .intern(name, file, "/usr/bin/demo", FrameKind::Native, 0)
        };
        let frames: Vec<_> = names.split(';').map(intern).collect();
        builder.add_stack(frames, *value * 1_000_000_000);
    }
    builder.finish()
}

fn page(template: Option<&'static str>, options: &HtmlDiffOptions) -> Result<String, String> {
    let profile_type = "process_cpu:cpu:nanoseconds:cpu:nanoseconds"
        .parse()
        .unwrap();
    let sides = DiffSides {
        before: &tree(&BEFORE),
        after: &tree(&AFTER),
        profile_type: &profile_type,
    };
    let mut options = options.clone();
    options.html.template = template;
    let mut bytes = Vec::new();
    let written = write_html_diff(sides, &mut bytes, &options);
    written.map_err(|error| error.to_string())?;
    Ok(String::from_utf8(bytes).unwrap())
}

#[test]
fn a_page_has_each_node_and_function_with_both_values() {
    let page = page(Some(TEMPLATE), &HtmlDiffOptions::default()).unwrap();
    let mut document = document(&page);
    let columns = unpacked(&document["profiles"][0]["columns"]);
    let mut header = header(&columns);
    // Where a column starts, and which kinds there are, is no part of what a comparison says.
    header["kinds"].take();
    header["columns"] = ["total", "self", "before_total", "before_self"]
        .map(|name| json!({"name": name, "values": numbers(&columns, name)}))
        .into();
    let functions: Value =
        serde_json::from_slice(&unpacked(&document["profiles"][0]["top"])).unwrap();
    document["profiles"][0]["columns"] = header;
    document["profiles"][0]["top"] = functions;
    let mut text = serde_json::to_string_pretty(&document).unwrap();
    text.push('\n');
    assert_golden("html-diff.json", text.as_bytes());
}

#[test]
fn the_page_is_told_how_to_begin() {
    let options = HtmlDiffOptions {
        html: HtmlOptions {
            title: "one → two".to_owned(),
            max_nodes: 3,
            ..HtmlOptions::default()
        },
        negate: true,
        scale: BeforeScale::SameTotal,
    };
    let document = document(&page(Some(TEMPLATE), &options).unwrap());
    let columns = unpacked(&document["profiles"][0]["columns"]);
    let header = header(&columns);
    let first_look = json!({"widths": "before", "is_scaled": true});
    assert_eq!(document["title"], "one → two");
    assert_eq!(header["comparison"], first_look);
    assert!(header["pruned"].as_u64().unwrap() > 0, "{header}");
    let before = numbers(&columns, "before_total");
    assert_eq!(before[0], 120e9, "the page scales what was measured");
}

#[test]
fn without_a_page_there_is_a_clear_error() {
    let error = page(None, &HtmlDiffOptions::default()).unwrap_err();
    assert!(error.contains("cargo xtask ui"), "{error}");
}

/// What a browser sees of a page.
fn seen(test: &str, options: &HtmlDiffOptions) -> Option<Value> {
    let page = page(Some(built_template(test)?), options).unwrap();
    let path = written(&format!("{test}.html"), page.as_bytes());
    let screenshots = path.with_extension("");
    let arguments = [
        path.to_str().unwrap(),
        "parse",
        screenshots.to_str().unwrap(),
    ];
    let seen = drive(test, "html-diff.mjs", &arguments)?;
    assert_eq!(seen["problems"], json!([]), "{seen:#}");
    Some(seen)
}

mod host {
    use super::*;

    #[test]
    fn a_browser_shows_what_changed() {
        let options = HtmlDiffOptions {
            html: HtmlOptions {
                title: "a heading that is much too long for its place: baseline → candidate"
                    .repeat(3),
                ..HtmlOptions::default()
            },
            ..HtmlDiffOptions::default()
        };
        let Some(seen) = seen("a_browser_shows_what_changed", &options) else {
            return;
        };
        assert_eq!(
            seen["whole"], "2 min → 2 min 40 s, +40.0 s (+33 %)",
            "{seen:#}"
        );
        assert_eq!(
            seen["rows"][0],
            json!(["40.0 s", "1 min 30 s", "+50.0 s", "+125 %", "parse"]),
            "what grew most comes first: {seen:#}"
        );
        assert_eq!(seen["shrankMost"][4], "render", "{seen:#}");
        let tooltip = seen["tooltip"].as_str().unwrap();
        for figure in [
            "40.0 s",
            "→ 1 min 30 s",
            "+50.0 s",
            "+125 %",
            "+41.7 %",
            "+31.3 %",
        ] {
            assert!(tooltip.contains(figure), "{figure}: {tooltip}");
        }
        let legend = seen["legend"].as_str().unwrap();
        for text in [
            "shrank −50.0 s",
            "+50.0 s grew",
            "only after",
            "not normalised",
            "frames only before, without width: 1",
        ] {
            assert!(legend.contains(text), "{text}: {legend}");
        }
        assert_eq!(seen["overlaps"], json!([]), "{seen:#}");
        assert!(
            seen["share"].as_str().unwrap().starts_with("56.3 %"),
            "{seen:#}"
        );
        assert_eq!(seen["foundRows"].as_array().unwrap().len(), 1, "{seen:#}");
        let status = seen["status"].as_str().unwrap();
        let figures = "self 40.0 s → 1 min 30 s (+50.0 s, +125 %)";
        assert!(status.contains(figures), "{status}");
    }

    #[test]
    fn a_browser_colors_the_change_in_both_schemes() {
        let Some(seen) = seen(
            "a_browser_colors_the_change_in_both_schemes",
            &HtmlDiffOptions::default(),
        ) else {
            return;
        };
        for scheme in ["light", "dark"] {
            let channels = |name: &str, part: &str| -> [i64; 3] {
                let color = &seen["colors"][scheme][name][part];
                [0, 1, 2].map(|channel| color[channel].as_i64().unwrap())
            };
            let warmth = |[red, _, blue]: [i64; 3]| red - blue;
            let parse = warmth(channels("parse", "fill"));
            let compress = warmth(channels("compress", "fill"));
            assert!(parse > compress && compress > 15, "{scheme} {seen:#}");
            assert!(
                warmth(channels("render", "fill")) < -15,
                "{scheme} {seen:#}"
            );
            assert!(
                warmth(channels("write", "fill")).abs() < 10,
                "{scheme} {seen:#}"
            );
            assert_eq!(channels("parse", "fill"), channels("parse", "edge"));
            assert_ne!(channels("compress", "fill"), channels("compress", "edge"));
        }
    }

    #[test]
    fn a_browser_scales_and_exchanges_widths() {
        let options = HtmlDiffOptions {
            negate: true,
            scale: BeforeScale::SameTotal,
            ..HtmlDiffOptions::default()
        };
        let Some(seen) = seen("a_browser_scales_and_exchanges_widths", &options) else {
            return;
        };
        let names = |when: &str| -> Vec<&str> {
            let boxes = seen[when].as_array().unwrap().iter();
            boxes.map(|name| name.as_str().unwrap()).collect()
        };
        assert!(names("atFirst").contains(&"legacy"), "{seen:#}");
        assert!(!names("atFirst").contains(&"compress"), "{seen:#}");
        assert!(names("exchanged").contains(&"compress"), "{seen:#}");
        assert!(!names("exchanged").contains(&"legacy"), "{seen:#}");
        let legend = seen["legend"].as_str().unwrap();
        assert!(legend.contains("normalised: before × 1.33"), "{legend}");
        // 40 of 120 seconds are 53.3 of 160.
        assert_eq!(seen["rows"][0][0], "53.3 s", "{seen:#}");
        assert_eq!(seen["whole"], "2 min → 2 min 40 s, +40.0 s (+33 %)");
    }
}
