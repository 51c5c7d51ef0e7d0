//! Attribute values: those of resources become texts, those of samples keep their numbers.

use std::borrow::Cow;

use opentelemetry_proto::tonic::common::v1::AnyValue;
use opentelemetry_proto::tonic::common::v1::KeyValue;
use opentelemetry_proto::tonic::common::v1::any_value::Value;

use crate::options::Limits;
use crate::otlp::dictionary::entry;

/// A plain value, as far as labels can hold one. Texts are borrowed: a table may refer to one
/// string of many megabytes a million times.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Plain<'a> {
    Text(Cow<'a, str>),
    Number(i64),
}

/// The string table of a request, no string longer than it may be.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Texts<'a> {
    pub(crate) strings: &'a [String],
    pub(crate) limits: &'a Limits,
}

/// More digits than any 64-bit number has.
const NUMBER_BYTES: usize = 20;

impl<'a> Plain<'a> {
    /// The length of its text, which is made only when that is known to be bearable.
    pub(crate) fn text_bytes(&self) -> usize {
        match self {
            Self::Text(text) => text.len(),
            Self::Number(_) => NUMBER_BYTES,
        }
    }

    pub(crate) fn to_text(&self) -> Cow<'_, str> {
        match self {
            Self::Text(text) => Cow::Borrowed(text),
            Self::Number(number) => Cow::Owned(number.to_string()),
        }
    }
}

impl<'a> Texts<'a> {
    /// The string at an index; `None` when there is no such entry.
    pub(crate) fn get(self, index: i32) -> Option<&'a str> {
        entry(self.strings, index).map(|text| self.limits.cut(text))
    }
}

/// The plain values of an attribute: one, or one for each element of an array. Maps and bytes have
/// none, nor have indices of strings that do not exist.
pub(crate) fn plain_values<'a>(value: Option<&'a AnyValue>, texts: Texts<'a>) -> Vec<Plain<'a>> {
    let Some(value) = value.and_then(|value| value.value.as_ref()) else {
        return Vec::new();
    };
    match value {
        Value::ArrayValue(array) => array
            .values
            .iter()
            .filter_map(|element| plain(element.value.as_ref()?, texts))
            .collect(),
        single => plain(single, texts).into_iter().collect(),
    }
}

/// The key of an attribute, whether it stands there itself or by its index.
pub(crate) fn key<'a>(attribute: &'a KeyValue, texts: Texts<'a>) -> &'a str {
    if attribute.key_strindex == 0 && !attribute.key.is_empty() {
        return texts.limits.cut(&attribute.key);
    }
    texts.get(attribute.key_strindex).unwrap_or("")
}

fn plain<'a>(value: &'a Value, texts: Texts<'a>) -> Option<Plain<'a>> {
    match value {
        Value::StringValue(text) => Some(Plain::Text(Cow::Borrowed(texts.limits.cut(text)))),
        Value::BoolValue(flag) => Some(Plain::Text(Cow::Owned(flag.to_string()))),
        Value::IntValue(number) => Some(Plain::Number(*number)),
        Value::DoubleValue(number) => Some(Plain::Text(Cow::Owned(number.to_string()))),
        Value::StringValueStrindex(index) => Some(Plain::Text(Cow::Borrowed(texts.get(*index)?))),
        Value::ArrayValue(_) | Value::KvlistValue(_) | Value::BytesValue(_) => None,
    }
}
