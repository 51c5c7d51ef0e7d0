//! Attribute values: those of resources become texts, those of samples keep their numbers.

use opentelemetry_proto::tonic::common::v1::AnyValue;
use opentelemetry_proto::tonic::common::v1::KeyValue;
use opentelemetry_proto::tonic::common::v1::any_value::Value;

/// A plain value, as far as labels can hold one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Plain {
    Text(String),
    Number(i64),
}

impl Plain {
    pub(crate) fn into_text(self) -> String {
        match self {
            Self::Text(text) => text,
            Self::Number(number) => number.to_string(),
        }
    }
}

/// The plain values of an attribute: one, or one for each element of an array. Maps and bytes have
/// none, nor have indices of strings that do not exist.
pub(crate) fn plain_values(value: Option<&AnyValue>, strings: &[String]) -> Vec<Plain> {
    let Some(value) = value.and_then(|value| value.value.as_ref()) else {
        return Vec::new();
    };
    match value {
        Value::ArrayValue(array) => array
            .values
            .iter()
            .filter_map(|element| plain(element.value.as_ref()?, strings))
            .collect(),
        single => plain(single, strings).into_iter().collect(),
    }
}

/// The key of an attribute, whether it stands there itself or by its index.
pub(crate) fn key<'a>(attribute: &'a KeyValue, strings: &'a [String]) -> &'a str {
    if attribute.key_strindex == 0 {
        return &attribute.key;
    }
    let index = usize::try_from(attribute.key_strindex).unwrap_or(usize::MAX);
    strings.get(index).map_or("", String::as_str)
}

fn plain(value: &Value, strings: &[String]) -> Option<Plain> {
    match value {
        Value::StringValue(text) => Some(Plain::Text(text.clone())),
        Value::BoolValue(flag) => Some(Plain::Text(flag.to_string())),
        Value::IntValue(number) => Some(Plain::Number(*number)),
        Value::DoubleValue(number) => Some(Plain::Text(number.to_string())),
        Value::StringValueStrindex(index) => {
            let text = strings.get(usize::try_from(*index).ok()?)?;
            Some(Plain::Text(text.clone()))
        }
        Value::ArrayValue(_) | Value::KvlistValue(_) | Value::BytesValue(_) => None,
    }
}
