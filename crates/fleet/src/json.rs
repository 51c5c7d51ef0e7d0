//! JSON as the document needs it: keys that stand twice are refused, numbers keep their value.
//!
//! `serde_json::Value` keeps the last of two equal keys and forgets the first, and a whole number
//! beyond 64 bits becomes another number. Both would change fields of others unseen.

use std::collections::BTreeMap;
use std::fmt;

use serde::Deserialize;
use serde::Deserializer;
use serde::Serialize;
use serde::Serializer;
use serde::de;
use serde_json::Number;

/// Decimal digits that every double keeps.
const MOST_DIGITS: usize = 15;
/// 2^64: whole numbers from here on are read as the nearest double.
const FIRST_INEXACT: f64 = 18_446_744_073_709_551_616.0;

/// Any JSON value. Two that are equal are written alike: keys are sorted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Json {
    /// `null`
    Null,
    /// `true` or `false`
    Boolean(bool),
    /// Any number that JSON can hold exactly as 64 bits.
    Number(Number),
    /// A text.
    Text(String),
    /// A list.
    List(Vec<Json>),
    /// An object.
    Object(BTreeMap<String, Json>),
}

impl Json {
    /// What it is, for people: with its value where that is short.
    #[must_use]
    pub(crate) fn described(&self) -> String {
        match self {
            Self::Null => "null".to_owned(),
            Self::Boolean(value) => value.to_string(),
            Self::Number(number) => number.to_string(),
            Self::Text(text) if text.chars().count() <= 60 => format!("{text:?}"),
            Self::Text(_) => "a long text".to_owned(),
            Self::List(_) => "a list".to_owned(),
            Self::Object(_) => "an object".to_owned(),
        }
    }
}

/// On one line, without spaces.
impl fmt::Display for Json {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = serde_json::to_string(self).map_err(|_| fmt::Error)?;
        formatter.write_str(&text)
    }
}

impl Serialize for Json {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Null => serializer.serialize_unit(),
            Self::Boolean(value) => serializer.serialize_bool(*value),
            Self::Number(number) => number.serialize(serializer),
            Self::Text(text) => serializer.serialize_str(text),
            Self::List(elements) => elements.serialize(serializer),
            Self::Object(entries) => entries.serialize(serializer),
        }
    }
}

impl<'de> Deserialize<'de> for Json {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(AnyJson)
    }
}

struct AnyJson;

impl<'de> de::Visitor<'de> for AnyJson {
    type Value = Json;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("a JSON value")
    }

    fn visit_unit<E: de::Error>(self) -> Result<Json, E> {
        Ok(Json::Null)
    }

    fn visit_bool<E: de::Error>(self, value: bool) -> Result<Json, E> {
        Ok(Json::Boolean(value))
    }

    fn visit_u64<E: de::Error>(self, value: u64) -> Result<Json, E> {
        Ok(Json::Number(value.into()))
    }

    fn visit_i64<E: de::Error>(self, value: i64) -> Result<Json, E> {
        Ok(Json::Number(value.into()))
    }

    fn visit_f64<E: de::Error>(self, value: f64) -> Result<Json, E> {
        if value.abs() >= FIRST_INEXACT {
            return Err(E::custom(
                "a number beyond 64 bits is not kept exactly; write it as a text",
            ));
        }
        let number =
            Number::from_f64(value).ok_or_else(|| E::custom("a number that is not finite"))?;
        // Beyond that a number may be read as its neighbour, and each editor would change it again.
        let digits = number.to_string();
        let digits = digits.split(['e', 'E']).next().unwrap_or_default();
        let digits = digits.trim_end_matches(['0', '.']);
        let digits = digits.bytes().filter(u8::is_ascii_digit);
        if digits.skip_while(|&digit| digit == b'0').count() > MOST_DIGITS {
            return Err(E::custom(
                "a number of more than fifteen digits is not kept exactly; write it as a text",
            ));
        }
        Ok(Json::Number(number))
    }

    fn visit_str<E: de::Error>(self, text: &str) -> Result<Json, E> {
        Ok(Json::Text(text.to_owned()))
    }

    fn visit_string<E: de::Error>(self, text: String) -> Result<Json, E> {
        Ok(Json::Text(text))
    }

    fn visit_seq<A: de::SeqAccess<'de>>(self, mut elements: A) -> Result<Json, A::Error> {
        let mut list = Vec::new();
        while let Some(element) = elements.next_element()? {
            list.push(element);
        }
        Ok(Json::List(list))
    }

    fn visit_map<A: de::MapAccess<'de>>(self, mut entries: A) -> Result<Json, A::Error> {
        let mut object = BTreeMap::new();
        while let Some(key) = entries.next_key::<String>()? {
            if object.contains_key(&key) {
                let message = format!("the key {key:?} stands twice in one object; remove one");
                return Err(de::Error::custom(message));
            }
            let value = entries.next_value()?;
            object.insert(key, value);
        }
        Ok(Json::Object(object))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<Json, serde_json::Error> {
        serde_json::from_str(text)
    }

    #[test]
    fn equal_values_are_written_alike() {
        let first = read(r#"{"b": [1, 2.5, -3], "a": {"y": null, "x": "\u00e4\n"}}"#).unwrap();
        let second = read(r#"{"a":{"x":"ä\n","y":null},"b":[1,2.5,-3]}"#).unwrap();
        assert_eq!(first, second);
        let written = r#"{"a":{"x":"ä\n","y":null},"b":[1,2.5,-3]}"#;
        assert_eq!(first.to_string(), written);
    }

    #[test]
    fn keys_that_stand_twice_are_refused() {
        let error = read("{\"a\": 1,\n \"a\": 2}").unwrap_err();
        let message = "the key \"a\" stands twice in one object; remove one at line 2 column 4";
        assert_eq!(error.to_string(), message);
    }

    #[test]
    fn numbers_that_would_change_are_refused() {
        assert!(read("12345678901234567890123").is_err());
        assert_eq!(
            read("18446744073709551615").unwrap(),
            Json::Number(u64::MAX.into())
        );
        assert!(read("0.30000000000000004").is_err());
        for kept in ["0.3", "-1234567.89012345", "1e+17"] {
            assert_eq!(read(kept).unwrap().to_string(), kept);
        }
    }
}
