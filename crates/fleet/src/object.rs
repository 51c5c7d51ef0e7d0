//! Objects of the written form: what is absent stays absent.

use std::collections::BTreeMap;

use crate::json::Json;

/// Gathers the fields that are there.
#[derive(Default)]
pub(crate) struct ObjectWriter(BTreeMap<String, Json>);

impl ObjectWriter {
    pub(crate) fn json(mut self, name: &str, value: Option<Json>) -> Self {
        if let Some(value) = value {
            self.0.insert(name.to_owned(), value);
        }
        self
    }

    pub(crate) fn text(self, name: &str, value: Option<&str>) -> Self {
        self.json(name, value.map(|text| Json::Text(text.to_owned())))
    }

    pub(crate) fn texts(self, name: &str, value: Option<&[String]>) -> Self {
        let list = |texts: &[String]| Json::List(texts.iter().cloned().map(Json::Text).collect());
        self.json(name, value.map(list))
    }

    pub(crate) fn number(self, name: &str, value: Option<u32>) -> Self {
        self.json(name, value.map(|number| Json::Number(number.into())))
    }

    pub(crate) fn boolean(self, name: &str, value: Option<bool>) -> Self {
        self.json(name, value.map(Json::Boolean))
    }

    pub(crate) fn finish(self) -> Json {
        Json::Object(self.0)
    }
}
