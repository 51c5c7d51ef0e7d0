//! The page of one file: what stands in it, and what a browser makes of it without any network.

use crate::common::browser::drive;
use crate::common::browser::written;
use crate::common::offline_page::TEMPLATE;
use crate::common::offline_page::built_template;
use crate::common::offline_page::document;
use crate::common::offline_page::header;
use crate::common::offline_page::unpacked;
use candela_formats::Format;
use candela_formats::HtmlOptions;
use candela_formats::WriteOptions;
use candela_formats::write;
use candela_model::FrameKind;
use candela_model::Labels;
use candela_model::Location;
use candela_model::Profile;
use candela_model::ProfileSeries;
use candela_model::Sample;
use serde_json::Value;

/// CPU time and memory of the same stacks; a name that would end a script.
fn example() -> Profile {
    let mut profile = Profile::default();
    let mut location = |name: &str| {
        let function = profile.symbols.intern_function(name, "", "demo.c", 1);
        let place = Location::new(FrameKind::Native, 0);
        profile.symbols.intern_location(&place, &[(function, 0, 0)])
    };
    let [main, work, rest] = ["main", "work", "</script><b>"].map(&mut location);
    let working = profile.stacks.intern(&[work, main]);
    let resting = profile.stacks.intern(&[rest, main]);
    for (profile_type, values) in [
        ("memory:inuse_space:bytes:space:bytes", [1024, 3072]),
        (
            "process_cpu:cpu:nanoseconds:cpu:nanoseconds",
            [7_500_000_000, 2_500_000_000],
        ),
    ] {
        let labels = Labels::from_pairs([("service_name", "demo <1>")]);
        let mut series = ProfileSeries::new(labels, profile_type.parse().unwrap());
        series.start_ns = 1_600_000_000_000_000_000;
        series.duration_ns = 10_000_000_000;
        for (stack, value) in [working, resting].into_iter().zip(values) {
            series.samples.push(Sample::new(stack, value));
        }
        profile.series.push(series);
    }
    profile
}

fn page(template: Option<&'static str>, max_nodes: usize) -> Result<String, String> {
    let options = WriteOptions {
        html: HtmlOptions {
            template,
            title: String::new(),
            max_nodes,
        },
        ..WriteOptions::default()
    };
    let mut bytes = Vec::new();
    let written = write(Format::Html, &example(), &mut bytes, &options);
    written.map_err(|error| error.to_string())?;
    Ok(String::from_utf8(bytes).unwrap())
}

#[test]
fn a_page_has_each_type_with_its_tree_and_table() {
    let document = document(&page(Some(TEMPLATE), 0).unwrap());
    assert_eq!(document["schema"], "candela/offline/v1");
    assert_eq!(document["title"], "demo <1>");
    let profiles = document["profiles"].as_array().unwrap();
    let types: Vec<&str> = profiles
        .iter()
        .map(|profile| profile["type"]["sample_type"].as_str().unwrap())
        .collect();
    assert_eq!(types, ["cpu", "inuse_space"], "time comes first");
    let top: Value = serde_json::from_slice(&unpacked(&profiles[0]["top"])).unwrap();
    assert_eq!(top["total"], 10_000_000_000_i64);
    assert_eq!(top["functions"][0]["name"], "work");
    assert_eq!(top["functions"][0]["self"], 7_500_000_000_i64);
    let columns = unpacked(&profiles[1]["columns"]);
    let header = header(&columns);
    assert_eq!(header["total"], 4096);
    assert_eq!(header["nodes"], 4);
    assert_eq!(header["from"], 1_600_000_000_000_i64);
    assert_eq!(header["to"], 1_600_000_010_000_i64);
}

#[test]
fn what_is_pruned_is_counted() {
    let document = document(&page(Some(TEMPLATE), 3).unwrap());
    let columns = unpacked(&document["profiles"][0]["columns"]);
    let header = header(&columns);
    assert_eq!(header["pruned"], 1);
    assert_eq!(header["total"], 10_000_000_000_i64);
}

#[test]
fn without_a_page_there_is_a_clear_error() {
    let error = page(None, 0).unwrap_err();
    assert!(error.contains("cargo xtask ui"), "{error}");
    for template in [
        "<html></html>",
        "<!--candela-profiles--><!--candela-profiles-->",
    ] {
        let error = page(Some(template), 0).unwrap_err();
        assert!(error.contains("of another version"), "{error}");
    }
}

mod host {
    use super::*;

    #[test]
    fn a_browser_shows_it_without_a_network() {
        let test = "a_browser_shows_it_without_a_network";
        let Some(template) = built_template(test) else {
            return;
        };
        let page = page(Some(template), 0).unwrap();
        let path = written("offline.html", page.as_bytes());
        let screenshot = path.with_extension("png");
        let arguments = [path.to_str().unwrap(), "work", screenshot.to_str().unwrap()];
        let Some(seen) = drive(test, "html.mjs", &arguments) else {
            return;
        };
        assert_eq!(seen["problems"], serde_json::json!([]), "{seen:#}");
        assert_eq!(seen["title"], "demo <1>");
        assert_eq!(seen["first"]["total"], 10_000_000_000_i64);
        let names = |graph: &Value| -> Vec<String> {
            let boxes = graph["visible"].as_array().unwrap().iter();
            boxes
                .map(|frame| frame["name"].as_str().unwrap().to_owned())
                .collect()
        };
        assert_eq!(
            names(&seen["first"]),
            ["total", "main", "work", "</script><b>"]
        );
        assert!(
            seen["share"].as_str().unwrap().starts_with("75"),
            "{seen:#}"
        );
        assert_eq!(seen["zoomedTo"], "work");
        assert!(
            seen["whole"].as_str().unwrap().starts_with("10"),
            "{seen:#}"
        );
        assert_eq!(seen["rows"].as_array().unwrap().len(), 3);
        assert_eq!(seen["types"].as_array().unwrap().len(), 2);
        assert_eq!(seen["second"]["unit"], "bytes");
        assert_eq!(seen["second"]["total"], 4096);
        assert_eq!(
            names(&seen["second"]),
            ["total", "main", "</script><b>", "work"]
        );
    }
}
