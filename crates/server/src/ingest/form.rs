//! A body, and its parts when it is a form.

use std::collections::BTreeMap;
use std::convert::Infallible;

use axum::http::HeaderMap;
use axum::http::header::CONTENT_TYPE;
use bytes::Bytes;
use futures::stream;
use multer::Multipart;

use crate::api_error::ApiError;
use crate::ingest::append::received_hash;

/// More parts than any client sends.
const MOST_PARTS: usize = 16;

/// What was sent: a form, or one file.
#[derive(Debug)]
pub(crate) struct Sent {
    /// All of it.
    pub(crate) body: Bytes,
    /// The parts of a form by their names.
    parts: Option<BTreeMap<String, Bytes>>,
}

impl Sent {
    /// # Errors
    /// 400 for a form that is none.
    pub(crate) async fn of(headers: &HeaderMap, body: Bytes) -> Result<Self, ApiError> {
        let content_type = headers.get(CONTENT_TYPE);
        let content_type = content_type.and_then(|value| value.to_str().ok());
        let boundary = content_type.filter(|text| is_form(text));
        let Some(content_type) = boundary else {
            return Ok(Self { body, parts: None });
        };
        let bad = |error: multer::Error| {
            ApiError::bad_request("bad_form", format!("the form cannot be read: {error}"))
        };
        let boundary = multer::parse_boundary(content_type).map_err(bad)?;
        let whole = body.clone();
        let chunks = stream::once(async move { Ok::<_, Infallible>(whole) });
        let mut form = Multipart::new(chunks, boundary);
        let mut parts = BTreeMap::new();
        while let Some(field) = form.next_field().await.map_err(bad)? {
            let name = field.name().unwrap_or("").to_owned();
            parts.insert(name, field.bytes().await.map_err(bad)?);
            if parts.len() > MOST_PARTS {
                let message = format!("the form has more than {MOST_PARTS} parts");
                return Err(ApiError::bad_request("bad_form", message));
            }
        }
        Ok(Self {
            body,
            parts: Some(parts),
        })
    }

    pub(crate) const fn is_form(&self) -> bool {
        self.parts.is_some()
    }

    /// The [`received_hash`] of what was sent. That of a form is of its parts: who sends it again may separate them otherwise.
    pub(crate) fn hash(&self, way: &str, said: &[&str]) -> u128 {
        let Some(parts) = &self.parts else {
            return received_hash(way, said, &self.body);
        };
        let before = received_hash(way, said, &[]);
        parts.iter().fold(before, |before, (name, part)| {
            received_hash(name, &[&before.to_string()], part)
        })
    }

    /// A part of a form.
    pub(crate) fn part(&self, name: &str) -> Option<&Bytes> {
        self.parts.as_ref()?.get(name)
    }

    /// The part that has the profile, or the body when it is no form.
    ///
    /// # Errors
    /// 422 for a form without it.
    pub(crate) fn file(&self, name: &str) -> Result<&Bytes, ApiError> {
        let Some(parts) = &self.parts else {
            return Ok(&self.body);
        };
        parts.get(name).ok_or_else(|| {
            let names: Vec<&str> = parts.keys().map(String::as_str).collect();
            let message = format!("the form has no part {name:?}, but {names:?}");
            ApiError::unprocessable("missing_part", message)
        })
    }
}

/// Whether a content type is that of forms.
pub(crate) fn is_form(content_type: &str) -> bool {
    const FORM: &str = "multipart/form-data";
    let start = content_type.get(..FORM.len());
    start.is_some_and(|start| start.eq_ignore_ascii_case(FORM))
}
