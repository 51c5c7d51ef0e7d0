//! Which format a body has: the first rule that says so decides (pyroscope-api 1.6).

use axum::http::HeaderMap;
use axum::http::header::CONTENT_TYPE;

use crate::ingest::form::is_form;
use crate::parameters::Parameters;

/// What a body holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum BodyFormat {
    Trie,
    Tree,
    Lines,
    Jfr,
    Pprof,
    Speedscope,
    Groups,
}

impl BodyFormat {
    pub(crate) fn of(parameters: &Parameters, headers: &HeaderMap) -> Self {
        let format = parameters.one("format").unwrap_or("");
        let content_type = headers.get(CONTENT_TYPE).map(|value| value.as_bytes());
        let content_type = String::from_utf8_lossy(content_type.unwrap_or_default());
        let is_type = |name: &str| content_type.split(';').next().unwrap_or("").trim() == name;
        match format {
            "trie" => Self::Trie,
            _ if is_type("binary/octet-stream+trie") => Self::Trie,
            "tree" => Self::Tree,
            _ if is_type("binary/octet-stream+tree") => Self::Tree,
            "lines" => Self::Lines,
            "jfr" => Self::Jfr,
            "pprof" => Self::Pprof,
            "speedscope" => Self::Speedscope,
            _ if is_form(&content_type) => Self::Pprof,
            _ => Self::Groups,
        }
    }
}
