//! The fields of one object of the document: found by either spelling, taken with their type.

use std::collections::BTreeMap;
use std::ops::RangeInclusive;

use serde_json::Number;

use crate::json::Json;
use crate::path::DocumentPath;
use crate::report::Report;
use crate::spelling::known_name;
use crate::spelling::suggestion;

/// What a number may be, and what to do about one that is not.
pub(crate) struct NumberRule {
    pub(crate) name: &'static str,
    pub(crate) range: RangeInclusive<u32>,
    /// Behind the range: ` Hz`, ` seconds`, or nothing.
    pub(crate) unit: &'static str,
    /// What a good value would be.
    pub(crate) cure: &'static str,
}

/// A value of an enum: its name in the document, its protobuf number where it has one, what it is.
pub(crate) struct Choice<T> {
    pub(crate) name: &'static str,
    pub(crate) number: Option<u64>,
    pub(crate) value: T,
}

/// An object whose keys were looked at.
pub(crate) struct Fields<'json> {
    path: DocumentPath,
    known: BTreeMap<&'static str, &'json Json>,
    unknown: Vec<(&'json str, &'json Json)>,
}

impl<'json> Fields<'json> {
    /// The fields of an object; nothing and a problem when it is none.
    ///
    /// `null` is absence, as in protobuf's JSON.
    pub(crate) fn of(
        json: &'json Json,
        path: &DocumentPath,
        names: &[&'static str],
        report: &mut Report,
    ) -> Option<Self> {
        let Json::Object(entries) = json else {
            let given = json.described();
            report.problem(
                path.clone(),
                format!("is {given}, not an object; write {{…}}"),
            );
            return None;
        };
        let mut known = BTreeMap::new();
        let mut unknown = Vec::new();
        for (key, value) in entries {
            let Some(name) = known_name(key, names) else {
                unknown.push((key.as_str(), value));
                continue;
            };
            if *value == Json::Null {
                continue;
            }
            if known.insert(name, value).is_some() {
                report.problem(
                    path.key(name),
                    "stands twice, in snake_case and in lowerCamelCase; remove one",
                );
            }
        }
        Some(Self {
            path: path.clone(),
            known,
            unknown,
        })
    }

    pub(crate) fn path_of(&self, name: &str) -> DocumentPath {
        self.path.key(name)
    }

    /// What stands under a known name.
    pub(crate) fn json(&self, name: &str) -> Option<&'json Json> {
        self.known.get(name).copied()
    }

    /// Keys that are none of the known names, as written.
    pub(crate) fn unknown(&self) -> &[(&'json str, &'json Json)] {
        &self.unknown
    }

    /// Refuses every key that is none of the known names.
    pub(crate) fn refuse_unknown(&self, names: &[&'static str], report: &mut Report) {
        for (key, _) in &self.unknown {
            report.problem(self.path.key(key), unknown_key(key, names));
        }
    }

    pub(crate) fn boolean(&self, name: &'static str, report: &mut Report) -> Option<bool> {
        let json = self.json(name)?;
        if let Json::Boolean(value) = json {
            return Some(*value);
        }
        let given = json.described();
        let message = format!("is {given}; write true or false, without quotes");
        report.problem(self.path_of(name), message);
        None
    }

    pub(crate) fn text(&self, name: &'static str, report: &mut Report) -> Option<String> {
        let json = self.json(name)?;
        if let Json::Text(text) = json {
            return Some(text.clone());
        }
        let message = format!("is {}, not a text; write it in quotes", json.described());
        report.problem(self.path_of(name), message);
        None
    }

    pub(crate) fn texts(&self, name: &'static str, report: &mut Report) -> Option<Vec<String>> {
        let path = self.path_of(name);
        let Json::List(elements) = self.json(name)? else {
            report.problem(path, "is not a list; write [\"…\"]");
            return None;
        };
        let mut texts = Vec::with_capacity(elements.len());
        for (index, element) in elements.iter().enumerate() {
            match element {
                Json::Text(text) if !text.is_empty() => texts.push(text.clone()),
                other => {
                    let given = other.described();
                    let message = format!("is {given}; write a text of at least one letter");
                    report.problem(path.index(index), message);
                }
            }
        }
        Some(texts)
    }

    /// A number without sign, of 32 bits.
    ///
    /// As in protobuf's JSON, `60`, `60.0` and `"60"` are the same.
    pub(crate) fn number(&self, rule: &NumberRule, report: &mut Report) -> Option<u32> {
        let json = self.json(rule.name)?;
        let whole = match json {
            Json::Number(number) => whole_number(number),
            Json::Text(text) if text.bytes().all(|byte| byte.is_ascii_digit()) => text.parse().ok(),
            _ => None,
        };
        let given = json.described();
        let (low, high, unit) = (rule.range.start(), rule.range.end(), rule.unit);
        let Some(whole) = whole else {
            let message = format!("is {given}; write a whole number from {low} to {high}{unit}");
            report.problem(self.path_of(rule.name), message);
            return None;
        };
        let in_range = u32::try_from(whole).ok();
        if let Some(number) = in_range.filter(|number| rule.range.contains(number)) {
            return Some(number);
        }
        let cure = rule.cure;
        let message = format!("{whole} is outside {low} to {high}{unit}; {cure}");
        report.problem(self.path_of(rule.name), message);
        None
    }

    /// A value of an enum, by its name or by its number.
    pub(crate) fn choice<T: Copy>(
        &self,
        name: &'static str,
        choices: &[Choice<T>],
        report: &mut Report,
    ) -> Option<T> {
        let json = self.json(name)?;
        let is_meant = |choice: &&Choice<T>| match json {
            Json::Text(text) => text == choice.name,
            Json::Number(number) => choice.number.is_some() && number.as_u64() == choice.number,
            _ => false,
        };
        if let Some(choice) = choices.iter().find(is_meant) {
            return Some(choice.value);
        }
        let names: Vec<&str> = choices.iter().map(|choice| choice.name).collect();
        let message = format!("is {}; write {}", json.described(), names.join(" or "));
        report.problem(self.path_of(name), message);
        None
    }
}

pub(crate) fn unknown_key(key: &str, names: &[&'static str]) -> String {
    let near = suggestion(key, names);
    format!(
        "no such key{near}; remove it, or write one of {}",
        names.join(", ")
    )
}

fn whole_number(number: &Number) -> Option<u64> {
    if let Some(whole) = number.as_u64() {
        return Some(whole);
    }
    let float = number.as_f64()?;
    // Below 2^53 every whole double is exact; no field takes more.
    let is_whole = float.fract() == 0.0 && (0.0..9_007_199_254_740_992.0).contains(&float);
    is_whole.then_some(float as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    const NAMES: [&str; 3] = ["call_graph", "interval", "cpu"];
    const INTERVAL: NumberRule = NumberRule {
        name: "interval",
        range: 1..=1000,
        unit: " Hz",
        cure: "99 is usual",
    };

    fn problems(text: &str, take: impl Fn(&Fields<'_>, &mut Report)) -> Vec<String> {
        let json: Json = serde_json::from_str(text).unwrap();
        let mut report = Report::default();
        if let Some(fields) = Fields::of(&json, &DocumentPath::top(), &NAMES, &mut report) {
            take(&fields, &mut report);
        }
        report.problems.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn one_number_has_three_forms() {
        for text in [
            r#"{"interval": 60}"#,
            r#"{"interval": 60.0}"#,
            r#"{"interval": "60"}"#,
        ] {
            let found = problems(text, |fields, report| {
                assert_eq!(fields.number(&INTERVAL, report), Some(60));
            });
            assert_eq!(found, Vec::<String>::new());
        }
    }

    #[test]
    fn numbers_out_of_range_name_the_range() {
        let take = |fields: &Fields<'_>, report: &mut Report| {
            assert_eq!(fields.number(&INTERVAL, report), None);
        };
        let out = ["interval: 0 is outside 1 to 1000 Hz; 99 is usual"];
        assert_eq!(problems(r#"{"interval": 0}"#, take), out);
        let wrong = ["interval: is -1; write a whole number from 1 to 1000 Hz"];
        assert_eq!(problems(r#"{"interval": -1}"#, take), wrong);
        let large = ["interval: 4294967297 is outside 1 to 1000 Hz; 99 is usual"];
        assert_eq!(problems(r#"{"interval": 4294967297}"#, take), large);
    }

    #[test]
    fn null_is_absence_and_two_spellings_are_one_key() {
        let absent = problems(r#"{"call_graph": null}"#, |fields, report| {
            assert_eq!(fields.boolean("call_graph", report), None);
        });
        assert_eq!(absent, Vec::<String>::new());
        let twice = problems(r#"{"call_graph": true, "callGraph": true}"#, |_, _| ());
        let message = "call_graph: stands twice, in snake_case and in lowerCamelCase; remove one";
        assert_eq!(twice, [message]);
    }
}
