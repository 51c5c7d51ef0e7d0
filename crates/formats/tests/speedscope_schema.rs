//! What we write as speedscope JSON, judged by the schema that speedscope publishes.

use crate::common::real_file;
use candela_formats::Format;
use candela_formats::ReadOptions;
use candela_formats::WriteOptions;
use candela_formats::read;
use candela_formats::write;
use serde_json::Value;
use serde_json::json;

/// The first rule that a value breaks. Of JSON Schema it knows what that schema is made of.
fn broken_rule(value: &Value, rule: &Value, schema: &Value) -> Option<String> {
    for (keyword, wanted) in rule.as_object().unwrap() {
        let broken = match keyword.as_str() {
            "$ref" => {
                let name = wanted
                    .as_str()
                    .unwrap()
                    .strip_prefix("#/definitions/")
                    .unwrap();
                broken_rule(value, &schema["definitions"][name], schema)
            }
            "type" => {
                let fits = match wanted.as_str().unwrap() {
                    "object" => value.is_object(),
                    "array" => value.is_array(),
                    "string" => value.is_string(),
                    "number" => value.is_number(),
                    other => panic!("the schema has a new type {other}"),
                };
                (!fits).then(|| format!("{value} is no {wanted}"))
            }
            "const" => (value != wanted).then(|| format!("{value} is not {wanted}")),
            "enum" => {
                let is_one = wanted.as_array().unwrap().contains(value);
                (!is_one).then(|| format!("{value} is none of {wanted}"))
            }
            "required" => {
                let mut missing = wanted.as_array().unwrap().iter();
                let missing = missing.find(|key| value.get(key.as_str().unwrap()).is_none());
                missing.map(|key| format!("{key} is missing"))
            }
            "properties" => wanted.as_object().unwrap().iter().find_map(|(key, rule)| {
                let broken = broken_rule(value.get(key)?, rule, schema)?;
                Some(format!("{key}: {broken}"))
            }),
            "items" => {
                let mut items = value.as_array().into_iter().flatten();
                items.find_map(|item| broken_rule(item, wanted, schema))
            }
            "anyOf" => {
                let rules = wanted.as_array().unwrap().iter();
                let broken: Vec<Option<String>> =
                    rules.map(|rule| broken_rule(value, rule, schema)).collect();
                broken
                    .into_iter()
                    .collect::<Option<Vec<String>>>()
                    .map(|all| all.join(" or "))
            }
            "title" | "$schema" | "definitions" => None,
            other => panic!("the schema has a new keyword {other}"),
        };
        if broken.is_some() {
            return broken;
        }
    }
    None
}

fn schema() -> Value {
    serde_json::from_slice(&real_file("speedscope/file-format-schema.json")).unwrap()
}

#[test]
fn what_we_write_is_by_the_schema() {
    let schema = schema();
    for name in [
        "pprof/parca.many.1644509275338070000.pb.gz",
        "pprof/parca.labels.pb.gz",
    ] {
        let bytes = real_file(name);
        let (profile, _) = read(Format::Pprof, &bytes[..], &ReadOptions::default()).unwrap();
        for series in &profile.series {
            let options = WriteOptions {
                sample_type: Some(series.profile_type.to_string()),
                ..WriteOptions::default()
            };
            let mut written = Vec::new();
            write(Format::Speedscope, &profile, &mut written, &options).unwrap();
            let file: Value = serde_json::from_slice(&written).unwrap();
            assert_eq!(broken_rule(&file, &schema, &schema), None, "{name}");
            // What a schema cannot say: as many weights as samples, of frames that are there.
            let frames = file["shared"]["frames"].as_array().unwrap().len() as u64;
            for profile in file["profiles"].as_array().unwrap() {
                let samples = profile["samples"].as_array().unwrap();
                assert_eq!(samples.len(), profile["weights"].as_array().unwrap().len());
                let mut used = samples.iter().flat_map(|sample| sample.as_array().unwrap());
                assert!(used.all(|frame| frame.as_u64().unwrap() < frames));
            }
        }
    }
}

#[test]
fn the_schema_is_applied() {
    let schema = schema();
    let rule = |file: &Value| broken_rule(file, &schema, &schema).unwrap();
    assert!(rule(&json!({"profiles": []})).contains("is missing"));
    let file = json!({
        "$schema": "https://www.speedscope.app/file-format-schema.json",
        "shared": {"frames": [{"name": 3}]}, "profiles": [],
    });
    assert!(rule(&file).contains("3 is no \"string\""));
    let file = json!({
        "$schema": "https://www.speedscope.app/file-format-schema.json",
        "shared": {"frames": []}, "profiles": [{"type": "sampled", "unit": "hours"}],
    });
    assert!(rule(&file).contains(" or "));
}
