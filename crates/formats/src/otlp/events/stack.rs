//! The stack of an event, wherever the event keeps it.

use std::borrow::Cow;

use candela_model::FrameKind;
use serde_json::Value;

use crate::json_limits::check_value_count;
use crate::options::Limits;
use crate::otlp::events::fields::Fields;
use crate::otlp::events::fields::whole_number;
use crate::report::Report;

/// A frame of an event.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct EventFrame {
    pub(crate) name: String,
    pub(crate) file: String,
    pub(crate) line: u32,
    pub(crate) module: String,
    pub(crate) address: u64,
    pub(crate) kind: FrameKind,
}

/// Which end of a list is the leaf where the event does not tell.
#[derive(Clone, Copy, PartialEq)]
enum Usual {
    LeafFirst,
    RootFirst,
}

/// What three agents put between the functions of a path: caller behind callee first, then the other
/// way round.
const SEPARATORS: [(&str, Usual); 3] = [
    (" <- ", Usual::LeafFirst),
    (";", Usual::RootFirst),
    (" > ", Usual::RootFirst),
];

/// The frames, leaf first; none when the event has no stack. Lists of frames are preferred, as the
/// path is short on purpose: with some agents the topmost five.
pub(crate) fn event_stack(
    fields: Fields<'_>,
    kind: FrameKind,
    limits: &Limits,
    report: &mut Report,
) -> Vec<EventFrame> {
    let top = Top::of(fields);
    for name in [
        "stackTrace",
        "stack_trace.frames",
        "stack_trace",
        "stackFrames",
    ] {
        let Some(list) = fields
            .value(&[name])
            .and_then(|value| list(value, limits, report))
        else {
            continue;
        };
        let frames: Vec<EventFrame> = list.iter().filter_map(|value| frame(value, kind)).collect();
        if !frames.is_empty() {
            return top.leaf_first(frames, Usual::LeafFirst);
        }
    }
    let frames = match fields.text(&["stackPath", "stack_trace.path", "stack_path"]) {
        Some(path) => top.path(path, kind),
        None => top
            .name()
            .into_iter()
            .map(|name| named(&name, kind))
            .collect(),
    };
    let depth = fields.number(&["stackDepth", "stack_trace.depth", "stack_depth"]);
    let is_short = depth.is_some_and(|depth| depth > frames.len() as i64);
    report.note_many(
        "stacks_shortened",
        "events with only the top of their stack were taken as they are",
        u64::from(is_short),
    );
    frames
}

/// The list itself, or the one in a text of JSON.
fn list<'a>(value: &'a Value, limits: &Limits, report: &mut Report) -> Option<Cow<'a, [Value]>> {
    match value {
        Value::Array(list) => Some(Cow::Borrowed(list)),
        Value::String(text) if !text.is_empty() => {
            let is_bearable = check_value_count(text.as_bytes(), limits).is_ok();
            let parsed = is_bearable.then(|| serde_json::from_str::<Vec<Value>>(text).ok());
            if let Some(Some(list)) = parsed {
                return Some(Cow::Owned(list));
            }
            report.note(
                "stack_traces_broken",
                "stack traces that are no list in JSON were left out",
            );
            None
        }
        _ => None,
    }
}

fn frame(value: &Value, kind: FrameKind) -> Option<EventFrame> {
    if let Some(name) = value.as_str() {
        return (!name.is_empty()).then(|| named(name, kind));
    }
    let fields = Fields(value.as_object()?);
    let text = |names: &[&str]| fields.text(names).unwrap_or("").to_owned();
    let function = || {
        fields
            .text(&["demangled", "function", "name"])
            .map(str::to_owned)
    };
    let method = class_and_method(fields.text(&["class"]), fields.text(&["method"]));
    let address = fields.value(&["address"]).and_then(address).unwrap_or(0);
    let module = text(&["module"]);
    let is_kernel = fields.value(&["isKernel", "is_kernel"]) == Some(&Value::Bool(true));
    let name = method.or_else(function).unwrap_or_default();
    if name.is_empty() && address == 0 {
        return None;
    }
    let line = fields.number(&["line", "sourceLine"]);
    Some(EventFrame {
        name,
        file: text(&["file"]),
        line: line.and_then(|line| u32::try_from(line).ok()).unwrap_or(0),
        module,
        address,
        kind: if is_kernel { FrameKind::Kernel } else { kind },
    })
}

fn named(name: &str, kind: FrameKind) -> EventFrame {
    EventFrame {
        name: name.to_owned(),
        kind,
        ..EventFrame::default()
    }
}

fn class_and_method(class: Option<&str>, method: Option<&str>) -> Option<String> {
    match (class, method) {
        (Some(class), Some(method)) => Some(format!("{class}.{method}")),
        (None, Some(method)) => Some(method.to_owned()),
        (_, None) => None,
    }
}

/// A number, or the text of one in hexadecimal.
fn address(value: &Value) -> Option<u64> {
    match value {
        Value::String(text) => u64::from_str_radix(text.trim().trim_start_matches("0x"), 16).ok(),
        number => number
            .as_u64()
            .or_else(|| u64::try_from(whole_number(number)?).ok()),
    }
}

/// What an event says of its leaf.
#[derive(Clone, Copy)]
struct Top<'a> {
    function: Option<&'a str>,
    class: Option<&'a str>,
    method: Option<&'a str>,
}

impl<'a> Top<'a> {
    fn of(fields: Fields<'a>) -> Self {
        Self {
            function: fields.text(&["topFunction", "stack_trace.top_function"]),
            class: fields.text(&["topClass", "stack_trace.top_class"]),
            method: fields.text(&["topMethod", "stack_trace.top_method"]),
        }
    }

    fn name(self) -> Option<String> {
        let method = class_and_method(self.class, self.method);
        method.or_else(|| self.function.map(str::to_owned))
    }

    fn path(self, path: &str, kind: FrameKind) -> Vec<EventFrame> {
        let separator = SEPARATORS
            .into_iter()
            .find(|(separator, _)| path.contains(separator));
        let (separator, usual) = separator.unwrap_or((";", Usual::LeafFirst));
        let names = path.split(separator).map(str::trim);
        let names = names.filter(|name| !name.is_empty());
        self.leaf_first(names.map(|name| named(name, kind)).collect(), usual)
    }

    /// Agents disagree about the order, so the end at which the top is decides, and what is usual
    /// only where it stands at both or none.
    fn leaf_first(self, mut frames: Vec<EventFrame>, usual: Usual) -> Vec<EventFrame> {
        let first = frames.first().is_some_and(|frame| self.is(&frame.name));
        let last = frames.last().is_some_and(|frame| self.is(&frame.name));
        let is_reversed = match (first, last) {
            (true, false) => false,
            (false, true) => true,
            _ => usual == Usual::RootFirst,
        };
        if is_reversed {
            frames.reverse();
        }
        frames
    }

    fn is(self, name: &str) -> bool {
        let is_method = self.name().is_some_and(|top| top == name);
        is_method || self.function == Some(name) || self.method == Some(name)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn names(event: &Value) -> Vec<String> {
        let fields = Fields(event.as_object().expect("an object"));
        let limits = Limits::default();
        let frames = event_stack(fields, FrameKind::Jvm, &limits, &mut Report::default());
        frames.into_iter().map(|frame| frame.name).collect()
    }

    #[test]
    fn stacks_are_found_wherever_they_are() {
        let list = r#"[{"class":"A","method":"leaf","line":3},{"class":"B","method":"main"}]"#;
        for event in [
            json!({"stackTrace": list}),
            json!({"stackTrace": "no list", "stackFrames": ["A.leaf", "B.main"]}),
            json!({"stackTrace": "[]", "stackPath": "A.leaf <- B.main"}),
            json!({"stack_trace": {"frames": [{"function": "A.leaf"}, {"function": "B.main"}]}}),
            json!({"stackPath": "B.main;A.leaf"}),
            json!({"stackPath": "B.main > A.leaf"}),
        ] {
            assert_eq!(names(&event), ["A.leaf", "B.main"], "{event}");
        }
        let only_top = json!({"topClass": "A", "topMethod": "leaf"});
        assert_eq!(names(&only_top), ["A.leaf"]);
        assert_eq!(names(&json!({})), [""; 0]);
    }

    #[test]
    fn the_top_decides_which_end_is_the_leaf() {
        for event in [
            json!({"stackPath": "A.leaf;B.main", "topClass": "A", "topMethod": "leaf"}),
            json!({"stackPath": "B.main <- A.leaf", "topFunction": "A.leaf"}),
            json!({"stackFrames": ["B.main", "A.leaf"], "topMethod": "A.leaf"}),
        ] {
            assert_eq!(names(&event), ["A.leaf", "B.main"], "{event}");
        }
    }

    #[test]
    fn frames_carry_what_they_have() {
        let value = json!({
            "function": "do_sys", "file": "fs/open.c", "line": 12, "module": "vmlinux",
            "address": "0xffff", "isKernel": true,
        });
        let expected = EventFrame {
            name: "do_sys".to_owned(),
            file: "fs/open.c".to_owned(),
            line: 12,
            module: "vmlinux".to_owned(),
            address: 0xffff,
            kind: FrameKind::Kernel,
        };
        assert_eq!(frame(&value, FrameKind::Unknown), Some(expected));
        assert_eq!(frame(&json!({"line": 1}), FrameKind::Unknown), None);
        assert_eq!(frame(&json!(7), FrameKind::Unknown), None);
    }
}
