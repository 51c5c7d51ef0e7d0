//! Answers about code as text: source lines and instructions with their values in front.

use std::collections::BTreeMap;
use std::fmt::Write;

use candela_formats::format_share;
use candela_formats::format_value;
use candela_formats::printable;
use serde_json::Value;

/// Lines that are shown around one with a value.
const CONTEXT: u64 = 2;
/// Width of a value with its share.
const COST_WIDTH: usize = 18;

/// The lines that took something, with those around them.
pub(super) fn source_text(answer: &Value) -> String {
    let place = &answer["place"];
    let mut text = heading(answer, place);
    let values: BTreeMap<u64, &Value> = list(&place["lines"])
        .iter()
        .filter_map(|line| Some((line["line"].as_u64()?, line)))
        .collect();
    let source: Vec<&str> = answer["source"]["text"]
        .as_str()
        .map_or_else(Vec::new, |text| text.lines().collect());
    let mut before = 0;
    for number in shown_lines(&values, source.len() as u64) {
        if before != 0 && number != before + 1 {
            text.push_str("...\n");
        }
        before = number;
        let line = usize::try_from(number)
            .ok()
            .and_then(|number| source.get(number - 1));
        let line = line.map_or(String::new(), |line| line.replace('\t', "    "));
        push_row(
            &mut text,
            answer,
            values.get(&number).copied(),
            &number.to_string(),
            &line,
        );
    }
    let unknown = &place["unknown"];
    if unknown["total"].as_i64() != Some(0) {
        push_row(&mut text, answer, Some(unknown), "?", "lines unknown");
    }
    text
}

/// The instructions in their order, each new position in the source with what it took.
pub(super) fn disassembly_text(answer: &Value) -> String {
    let mut text = heading(answer, chosen_place(answer));
    let positions = list(&answer["positions"]);
    for function in list(&answer["functions"]) {
        let _ = writeln!(
            text,
            "\n{} at {}, {} bytes{}",
            word(&function["name"]),
            word(&function["address"]),
            function["size"],
            if function["is_cut"] == true {
                ", cut"
            } else {
                ""
            },
        );
        let mut before = None;
        for instruction in list(&function["instructions"]) {
            let position = instruction["position"].as_u64();
            let at = position.and_then(|number| positions.get(usize::try_from(number).ok()?));
            // What a position took is told where it begins: no sample says which instruction it was.
            let value = at.filter(|_| position != before);
            before = position;
            let line = at.map_or(String::new(), |at| at["line"].to_string());
            let target = instruction["target"].as_str();
            let target = target.map_or(String::new(), |target| format!("  ; {target}"));
            let code = format!(
                "{}  {}{target}",
                word(&instruction["address"]),
                word(&instruction["text"])
            );
            push_row(&mut text, answer, value, &line, &code);
        }
    }
    text.push_str("\nValues are those of source lines: all instructions of a line share them.\n");
    text
}

/// That whose code is shown, which need not be the heaviest.
fn chosen_place(answer: &Value) -> &Value {
    let places = list(&answer["places"]);
    let is_chosen = |place: &&Value| {
        ["file", "binary"]
            .iter()
            .all(|&part| place[part] == answer[part])
    };
    places
        .iter()
        .find(is_chosen)
        .unwrap_or(&answer["places"][0])
}

fn heading(answer: &Value, place: &Value) -> String {
    let unit = answer["unit"].as_str().unwrap_or_default();
    let whole = answer["total"].as_i64().unwrap_or(0);
    let cost = |name: &str| {
        let value = place[name].as_i64().unwrap_or(0);
        format!(
            "{name} {} ({})",
            format_value(value, unit),
            format_share(value, whole)
        )
    };
    let parts = [&answer["function"], &place["file"], &place["binary"]];
    let parts: Vec<String> = parts
        .into_iter()
        .map(word)
        .filter(|part| !part.is_empty())
        .collect();
    format!(
        "{}\n{}, {}\n",
        parts.join(", "),
        cost("self"),
        cost("total")
    )
}

/// Those with a value and a few around each; where there is no text those with a value alone.
fn shown_lines(values: &BTreeMap<u64, &Value>, count: u64) -> Vec<u64> {
    let mut shown: Vec<u64> = Vec::new();
    for &number in values.keys() {
        let around = if count == 0 { 0 } else { CONTEXT };
        let last = number.saturating_add(around).min(count.max(number));
        let first = number.saturating_sub(around).max(1);
        let next = shown.last().map_or(first, |&before| first.max(before + 1));
        shown.extend(next..=last);
    }
    shown
}

/// Self, total, line and what stands there.
fn push_row(text: &mut String, answer: &Value, value: Option<&Value>, line: &str, code: &str) {
    let unit = answer["unit"].as_str().unwrap_or_default();
    let whole = answer["total"].as_i64().unwrap_or(0);
    let cost = |name: &str| {
        let value = value.and_then(|value| value[name].as_i64());
        let value = value.filter(|&value| value != 0);
        value.map_or(String::new(), |value| {
            format!(
                "{} {:>7}",
                format_value(value, unit),
                format_share(value, whole)
            )
        })
    };
    let row = format!(
        "{:>COST_WIDTH$} {:>COST_WIDTH$} {line:>6}  {}",
        cost("self"),
        cost("total"),
        printable(code)
    );
    text.push_str(row.trim_end());
    text.push('\n');
}

fn list(value: &Value) -> &[Value] {
    value.as_array().map_or(&[], Vec::as_slice)
}

fn word(value: &Value) -> String {
    printable(value.as_str().unwrap_or_default())
}
