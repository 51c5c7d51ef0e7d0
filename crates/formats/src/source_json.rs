//! Values of source lines as the HTTP API's `/source` writes them.

use candela_model::CodeValue;
use candela_model::SourcePlace;
use serde_json::Value;
use serde_json::json;

/// What a chooser needs to know of each file and binary that has the code.
#[must_use]
pub fn places_json(places: &[SourcePlace]) -> Value {
    let places = places.iter().map(|place| {
        json!({
            "file": place.file,
            "binary": place.binary,
            "build_ids": place.build_ids,
            "kind": place.kind.as_str(),
            "self": place.value.self_value,
            "total": place.value.total,
        })
    });
    places.collect::<Vec<Value>>().into()
}

/// The lines of one of them.
#[must_use]
pub fn place_json(place: &SourcePlace) -> Value {
    let value = |value: CodeValue| json!({"self": value.self_value, "total": value.total});
    let lines = place.lines.iter().map(
        |&(line, value)| json!({"line": line, "self": value.self_value, "total": value.total}),
    );
    json!({
        "file": place.file,
        "binary": place.binary,
        "start_line": place.start_line,
        "hottest_line": place.hottest_line(),
        "self": place.value.self_value,
        "total": place.value.total,
        "lines": lines.collect::<Vec<Value>>(),
        "unknown": value(place.unknown),
    })
}
