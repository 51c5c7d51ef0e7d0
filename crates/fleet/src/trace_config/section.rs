//! The fields of one message, taken with their types.

use std::ops::RangeInclusive;

use crate::report::TextPosition;
use crate::spelling::suggestion;
use crate::text_proto::Field;
use crate::text_proto::Message;
use crate::text_proto::Value;
use crate::trace_config::TextFinding;

/// Collects, so that everything is told at once.
#[derive(Debug, Default)]
pub(super) struct Findings {
    pub(super) problems: Vec<TextFinding>,
    pub(super) warnings: Vec<TextFinding>,
}

/// A message, its name and where it begins.
#[derive(Clone, Copy)]
pub(super) struct Section<'text> {
    pub(super) message: &'text Message,
    pub(super) position: TextPosition,
}

impl Findings {
    pub(super) fn problem(&mut self, position: TextPosition, message: impl Into<String>) {
        let message = message.into();
        self.problems.push(TextFinding { position, message });
    }

    pub(super) fn warning(&mut self, position: TextPosition, message: impl Into<String>) {
        let message = message.into();
        self.warnings.push(TextFinding { position, message });
    }
}

impl<'text> Section<'text> {
    /// A field that is none of these is a warning and no problem: Perfetto has new ones each month.
    pub(super) fn warn_unknown(&self, names: &[&'static str], findings: &mut Findings) {
        let is_known = |field: &&Field| !names.contains(&field.name.as_str());
        for field in self.message.fields.iter().filter(is_known) {
            let near = suggestion(&field.name, names);
            let name = &field.name;
            let message = format!("{name} is a field that is not known here{near}; check its name");
            findings.warning(field.position, message);
        }
    }

    /// The one value of a field.
    fn single(
        &self,
        name: &'static str,
        findings: &mut Findings,
    ) -> Option<(TextPosition, &'text Value)> {
        let mut fields = self
            .message
            .fields
            .iter()
            .filter(|field| field.name == name);
        let first = fields.next()?;
        if let Some(second) = fields.next() {
            let message = format!("{name} stands a second time; remove one");
            findings.problem(second.position, message);
        }
        Some((first.value_position, &first.value))
    }

    /// All values of a repeated field.
    fn repeated(&self, name: &'static str) -> impl Iterator<Item = (TextPosition, &'text Value)> {
        let fields = self.message.fields.iter();
        fields
            .filter(move |field| field.name == name)
            .flat_map(Field::values)
    }

    pub(super) fn section(&self, name: &'static str, findings: &mut Findings) -> Option<Self> {
        let (position, value) = self.single(name, findings)?;
        as_section(name, position, value, findings)
    }

    pub(super) fn sections(&self, name: &'static str, findings: &mut Findings) -> Vec<Self> {
        self.repeated(name)
            .filter_map(|(position, value)| as_section(name, position, value, findings))
            .collect()
    }

    pub(super) fn has(&self, name: &'static str) -> bool {
        self.message.all(name).next().is_some()
    }

    pub(super) fn position_of(&self, name: &'static str) -> TextPosition {
        let field = self.message.all(name).next();
        field.map_or(self.position, |field| field.value_position)
    }

    pub(super) fn unsigned(
        &self,
        name: &'static str,
        range: RangeInclusive<u32>,
        findings: &mut Findings,
    ) -> Option<u32> {
        let (position, value) = self.single(name, findings)?;
        as_unsigned(name, position, value, &range, findings)
    }

    pub(super) fn unsigned_list(&self, name: &'static str, findings: &mut Findings) -> Vec<u32> {
        let range = 0..=u32::MAX;
        self.repeated(name)
            .filter_map(|(position, value)| as_unsigned(name, position, value, &range, findings))
            .collect()
    }

    /// Of 64 bits, any.
    pub(super) fn long(&self, name: &'static str, findings: &mut Findings) -> Option<u64> {
        let (position, value) = self.single(name, findings)?;
        if let Value::Integer {
            is_negative: false,
            magnitude,
        } = value
        {
            return Some(*magnitude);
        }
        findings.problem(position, format!("{name} is no whole number from 0 up"));
        None
    }

    pub(super) fn boolean(&self, name: &'static str, findings: &mut Findings) -> Option<bool> {
        let (position, value) = self.single(name, findings)?;
        match value {
            Value::Name(word) if matches!(word.as_str(), "true" | "True" | "t") => Some(true),
            Value::Name(word) if matches!(word.as_str(), "false" | "False" | "f") => Some(false),
            Value::Integer {
                is_negative: false,
                magnitude: magnitude @ 0..=1,
            } => Some(*magnitude == 1),
            _ => {
                findings.problem(position, format!("{name} is neither true nor false"));
                None
            }
        }
    }

    pub(super) fn text(&self, name: &'static str, findings: &mut Findings) -> Option<String> {
        let (position, value) = self.single(name, findings)?;
        as_text(name, position, value, findings)
    }

    pub(super) fn texts(&self, name: &'static str, findings: &mut Findings) -> Vec<String> {
        self.repeated(name)
            .filter_map(|(position, value)| as_text(name, position, value, findings))
            .collect()
    }

    /// The value of an enum that is passed on, not understood: its name, or its number in digits.
    pub(super) fn word(&self, name: &'static str, findings: &mut Findings) -> Option<String> {
        let (position, value) = self.single(name, findings)?;
        match value {
            Value::Name(word) => Some(word.clone()),
            Value::Integer {
                is_negative: false,
                magnitude,
            } => Some(magnitude.to_string()),
            _ => {
                findings.problem(
                    position,
                    format!("{name} is a name; write it without quotes"),
                );
                None
            }
        }
    }

    /// The value of an enum, by its name or by its number.
    pub(super) fn choice<T: Copy>(
        &self,
        name: &'static str,
        choices: &[(&str, Option<u64>, T)],
        findings: &mut Findings,
    ) -> Option<T> {
        let (position, value) = self.single(name, findings)?;
        let is_meant = |choice: &&(&str, Option<u64>, T)| match value {
            Value::Name(word) => word == choice.0,
            Value::Integer {
                is_negative: false,
                magnitude,
            } => choice.1 == Some(*magnitude),
            _ => false,
        };
        if let Some(choice) = choices.iter().find(is_meant) {
            return Some(choice.2);
        }
        let names: Vec<&str> = choices.iter().map(|choice| choice.0).collect();
        let message = format!("{name} is none of {}", names.join(", "));
        findings.problem(position, message);
        None
    }
}

fn as_section<'text>(
    name: &'static str,
    position: TextPosition,
    value: &'text Value,
    findings: &mut Findings,
) -> Option<Section<'text>> {
    if let Value::Message(message) = value {
        return Some(Section { message, position });
    }
    findings.problem(
        position,
        format!("{name} is a message; write {name} {{ … }}"),
    );
    None
}

fn as_unsigned(
    name: &'static str,
    position: TextPosition,
    value: &Value,
    range: &RangeInclusive<u32>,
    findings: &mut Findings,
) -> Option<u32> {
    if let Value::Integer {
        is_negative: false,
        magnitude,
    } = value
    {
        let number = u32::try_from(*magnitude).ok();
        if let Some(number) = number.filter(|number| range.contains(number)) {
            return Some(number);
        }
    }
    let (low, high) = (range.start(), range.end());
    findings.problem(
        position,
        format!("{name} is no whole number from {low} to {high}"),
    );
    None
}

fn as_text(
    name: &'static str,
    position: TextPosition,
    value: &Value,
    findings: &mut Findings,
) -> Option<String> {
    if let Value::Text(bytes) = value
        && let Ok(text) = String::from_utf8(bytes.clone())
    {
        return Some(text);
    }
    findings.problem(position, format!("{name} is a text; write it in quotes"));
    None
}
