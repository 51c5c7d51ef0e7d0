//! Looking up the keys of an event.

use serde_json::Map;
use serde_json::Value;

/// A JSON object whose keys may have several names. A name with dots is a key with dots, or a way
/// through objects.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Fields<'a>(pub(crate) &'a Map<String, Value>);

/// Objects in objects on the way of a name; the names are ours and have no more dots.
const MAX_STEPS: usize = 4;

impl<'a> Fields<'a> {
    /// The value of the first name that has one.
    pub(crate) fn value(self, names: &[&str]) -> Option<&'a Value> {
        names
            .iter()
            .filter_map(|name| find(self.0, name, MAX_STEPS))
            .find(|value| !value.is_null())
    }

    /// A text that is not empty.
    pub(crate) fn text(self, names: &[&str]) -> Option<&'a str> {
        let mut texts = names
            .iter()
            .filter_map(|name| find(self.0, name, MAX_STEPS)?.as_str());
        texts.find(|text| !text.is_empty())
    }

    /// A whole number, or the nearest one; texts of digits are numbers too.
    pub(crate) fn number(self, names: &[&str]) -> Option<i64> {
        whole_number(self.value(names)?)
    }
}

/// A number as JSON of several languages writes it.
pub(crate) fn whole_number(value: &Value) -> Option<i64> {
    match value {
        Value::Number(number) => number.as_i64().or_else(|| {
            let number = number.as_f64()?.round();
            // Beyond 2^63 there is no meaning.
            (number.abs() < 9.0e18).then_some(number as i64)
        }),
        Value::String(text) => text.trim().parse().ok(),
        _ => None,
    }
}

fn find<'a>(object: &'a Map<String, Value>, name: &str, steps: usize) -> Option<&'a Value> {
    if let Some(value) = object.get(name) {
        return Some(value);
    }
    let (first, rest) = name.split_once('.')?;
    let inner = object.get(first)?.as_object()?;
    find(inner, rest, steps.checked_sub(1)?)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn names_are_keys_or_ways() {
        let value = json!({"event.type": "a", "sample": {"weight": "3"}, "empty": "", "half": 2.5, "none": null});
        let fields = Fields(value.as_object().expect("an object"));
        assert_eq!(fields.text(&["eventType", "event.type"]), Some("a"));
        assert_eq!(fields.text(&["empty", "event.type"]), Some("a"));
        assert_eq!(fields.number(&["sampleWeight", "sample.weight"]), Some(3));
        assert_eq!(fields.number(&["half"]), Some(3));
        assert_eq!(fields.number(&["none", "half"]), Some(3));
        assert_eq!(fields.value(&["none"]), None);
        assert_eq!(fields.number(&["event.type"]), None);
        assert_eq!(fields.number(&["absent.deeper"]), None);
    }
}
