//! Answers: their headers, and a body that is whole or is still to be written.

use std::convert::Infallible;
use std::io::BufWriter;
use std::io::IntoInnerError;
use std::io::Write;

use axum::body::Body;
use axum::extract::FromRequestParts;
use axum::http::HeaderMap;
use axum::http::HeaderName;
use axum::http::HeaderValue;
use axum::http::header::ACCEPT_ENCODING;
use axum::http::header::CACHE_CONTROL;
use axum::http::header::CONTENT_DISPOSITION;
use axum::http::header::CONTENT_ENCODING;
use axum::http::header::CONTENT_SECURITY_POLICY;
use axum::http::header::CONTENT_TYPE;
use axum::http::header::ETAG;
use axum::http::header::VARY;
use axum::http::request::Parts;
use axum::response::IntoResponse;
use axum::response::Response;
use candela_formats::WriteError;
use flate2::Compression;
use flate2::write::GzEncoder;
use serde_json::Value;

use crate::answers::Outlet;
use crate::answers::Unanswered;
use crate::api_error::ApiError;
use crate::app::App;
use crate::app::SharedApp;
use crate::app::compute;
use crate::auth::Caller;
use crate::turns::Lane;

/// An answer.
pub(crate) struct Reply {
    headers: Headers,
    content: Content,
}

pub(crate) type Headers = Vec<(HeaderName, HeaderValue)>;

enum Content {
    Whole(Vec<u8>),
    Unwritten {
        writing: Writing,
        source_bytes: usize,
        is_compressed: bool,
    },
    Streamed(Body),
}

/// What writes a body.
type Writing = Box<dyn FnOnce(&mut dyn Write) -> Result<(), WriteError> + Send>;

/// Whether the client reads gzip.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct AcceptsGzip(pub(crate) bool);

/// What is compressed at a time, bytes.
const COMPRESSED_AT_ONCE: usize = 32 << 10;

/// Below this the headers of compression cost more than it saves. How long an answer becomes that is written later is not known.
const MIN_COMPRESSED_BYTES: usize = 1024;

/// The header of answers that are only a part, with the reason.
const PARTIAL: HeaderName = HeaderName::from_static("x-candela-partial");

/// The longest reason in a header, characters: proxies refuse long ones.
const MOST_REASON: usize = 1000;

/// A body is read once, mostly over a fast link.
const FASTEST: Compression = Compression::fast();

impl Reply {
    pub(crate) fn new(content_type: &'static str, body: Vec<u8>) -> Self {
        Self::whole(headers_of(content_type), body)
    }

    /// An answer that is written when it is sent, of what takes so many bytes: text takes more.
    pub(crate) fn written<W>(content_type: &'static str, source_bytes: usize, writing: W) -> Self
    where
        W: FnOnce(&mut dyn Write) -> Result<(), WriteError> + Send + 'static,
    {
        Self {
            headers: headers_of(content_type),
            content: Content::Unwritten {
                writing: Box::new(writing),
                source_bytes,
                is_compressed: false,
            },
        }
    }

    pub(crate) fn whole(headers: Headers, body: Vec<u8>) -> Self {
        Self {
            headers,
            content: Content::Whole(body),
        }
    }

    pub(crate) fn streamed(headers: Headers, body: Body) -> Self {
        Self {
            headers,
            content: Content::Streamed(body),
        }
    }

    /// A JSON object with its schema: `candela/NAME/v1`.
    pub(crate) fn json(name: &str, mut value: Value) -> Self {
        value["schema"] = Value::String(format!("candela/{name}/v1"));
        Self::new("application/json", value.to_string().into_bytes())
    }

    /// Lets browsers save the answer under a name.
    pub(crate) fn file_name(mut self, name: &str) -> Self {
        let value = format!("attachment; filename=\"{name}\"");
        if let Ok(value) = HeaderValue::from_str(&value) {
            self.headers.push((CONTENT_DISPOSITION, value));
        }
        self
    }

    /// Names the version of what is answered, so that who changes it can say which one that was.
    pub(crate) fn entity_tag(mut self, version: u64) -> Self {
        if let Ok(value) = HeaderValue::from_str(&format!("\"{version}\"")) {
            self.headers.push((ETAG, value));
        }
        self
    }

    /// Replaces the server's policy for documents that bring their own script and style.
    pub(crate) fn content_security_policy(mut self, policy: &'static str) -> Self {
        let value = HeaderValue::from_static(policy);
        self.headers.push((CONTENT_SECURITY_POLICY, value));
        self
    }

    /// Says why the answer is only a part, also where the body has no place for it.
    pub(crate) fn partial(mut self, reason: Option<&str>) -> Self {
        if let Some(reason) = reason {
            self.headers.push((PARTIAL, header_text(reason)));
        }
        self
    }

    pub(crate) fn compressed(mut self, accepts: AcceptsGzip) -> Self {
        self.headers
            .push((VARY, HeaderValue::from_static("accept-encoding")));
        let is_compressed = accepts.0
            && match &mut self.content {
                Content::Whole(body) => compress(body),
                Content::Unwritten { is_compressed, .. } => {
                    *is_compressed = true;
                    true
                }
                Content::Streamed(_) => false,
            };
        if is_compressed {
            self.headers
                .push((CONTENT_ENCODING, HeaderValue::from_static("gzip")));
        }
        self
    }

    /// The same with a body that is whole.
    ///
    /// # Errors
    /// When it cannot be written, which is a bug.
    pub(crate) fn written_out(self) -> Result<Self, ApiError> {
        let Content::Unwritten {
            writing,
            is_compressed,
            ..
        } = self.content
        else {
            return Ok(self);
        };
        let mut body = Vec::new();
        write_body(writing, is_compressed, &mut body).map_err(ApiError::unwritten)?;
        Ok(Self::whole(self.headers, body))
    }

    /// Writes the answer, if it is still to be written, and sends it to who waits for it. This takes as long as its client
    /// takes to read it.
    pub(crate) fn send(self, unanswered: Unanswered) {
        let Content::Unwritten {
            writing,
            source_bytes,
            is_compressed,
        } = self.content
        else {
            // A client that is gone wants no answer.
            let _ = unanswered.client.send(Ok(self));
            return;
        };
        let mut outlet = Outlet::new(unanswered, self.headers, source_bytes);
        match write_body(writing, is_compressed, &mut outlet) {
            Ok(()) => outlet.finish(),
            Err(error) => outlet.fail(error),
        }
    }
}

fn headers_of(content_type: &'static str) -> Headers {
    vec![
        (CONTENT_TYPE, HeaderValue::from_static(content_type)),
        // Profiles of the last minutes change, and old ones are nobody's business in a cache.
        (CACHE_CONTROL, HeaderValue::from_static("no-store")),
    ]
}

/// Replaces a body by itself in gzip, where that pays.
fn compress(body: &mut Vec<u8>) -> bool {
    if body.len() < MIN_COMPRESSED_BYTES {
        return false;
    }
    let mut encoder = GzEncoder::new(Vec::new(), FASTEST);
    let compressed = encoder.write_all(body).and_then(|()| encoder.finish());
    match compressed {
        Ok(compressed) => {
            *body = compressed;
            true
        }
        Err(_) => false,
    }
}

fn write_body(
    writing: Writing,
    is_compressed: bool,
    output: &mut impl Write,
) -> Result<(), WriteError> {
    if !is_compressed {
        return writing(output);
    }
    let encoder = GzEncoder::new(output, FASTEST);
    let mut buffer = BufWriter::with_capacity(COMPRESSED_AT_ONCE, encoder);
    writing(&mut buffer)?;
    let encoder = buffer.into_inner().map_err(IntoInnerError::into_error)?;
    encoder.finish()?;
    Ok(())
}

/// A text with what headers cannot have replaced, and cut where it is long.
fn header_text(text: &str) -> HeaderValue {
    let safe = text
        .chars()
        .take(MOST_REASON)
        .map(|character| match character {
            ' '..='~' => character,
            _ => '?',
        });
    let value = HeaderValue::from_str(&safe.collect::<String>());
    value.unwrap_or(HeaderValue::from_static("yes"))
}

impl IntoResponse for Reply {
    fn into_response(self) -> Response {
        let body = match self.content {
            Content::Whole(body) => Body::from(body),
            Content::Streamed(body) => body,
            Content::Unwritten { .. } => {
                return ApiError::unwritten("it was not sent by `answer`").into_response();
            }
        };
        let mut response = Response::new(body);
        response.headers_mut().extend(self.headers);
        response
    }
}

/// Computes a list, and compresses it, off the reactor.
pub(crate) async fn answer_list<W>(
    app: &SharedApp,
    caller: Caller,
    accepts: AcceptsGzip,
    work: W,
) -> Result<Reply, ApiError>
where
    W: FnOnce(&App, &Caller) -> Result<Reply, ApiError> + Send + 'static,
{
    let asking = caller.clone();
    compute(app, &caller, Lane::Lists, move |app| {
        work(app, &asking).map(|reply| reply.compressed(accepts))
    })
    .await
}

impl AcceptsGzip {
    pub(crate) fn of(headers: &HeaderMap) -> Self {
        let values = headers.get_all(ACCEPT_ENCODING).iter();
        let accepts = values
            .filter_map(|value| value.to_str().ok())
            .flat_map(|value| value.split(','))
            .any(is_gzip);
        Self(accepts)
    }
}

/// Whether one element of Accept-Encoding (RFC 9110, 12.5.3) allows gzip.
fn is_gzip(element: &str) -> bool {
    let mut parts = element.split(';').map(str::trim);
    let coding = parts.next().unwrap_or("");
    let is_refused = parts.any(|part| {
        let weight = part
            .strip_prefix("q=")
            .and_then(|weight| weight.parse::<f32>().ok());
        weight == Some(0.0)
    });
    coding.eq_ignore_ascii_case("gzip") && !is_refused
}

impl<S: Sync> FromRequestParts<S> for AcceptsGzip {
    type Rejection = Infallible;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Infallible> {
        Ok(Self::of(&parts.headers))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reason_fits_into_a_header() {
        assert_eq!(header_text("block 7: gone"), "block 7: gone");
        assert_eq!(header_text("a\r\nSet-Cookie: é\u{7f}"), "a??Set-Cookie: ??");
        assert_eq!(header_text(&"x".repeat(5000)).len(), MOST_REASON);
    }

    #[test]
    fn gzip_is_used_only_when_asked_for() {
        let accepts = |value: &'static str| {
            let mut headers = HeaderMap::new();
            headers.insert(ACCEPT_ENCODING, HeaderValue::from_static(value));
            AcceptsGzip::of(&headers).0
        };
        assert!(accepts("gzip"));
        assert!(accepts("br, GZIP;q=0.5"));
        assert!(!accepts("br"));
        assert!(!accepts("gzip;q=0"));
        assert!(!accepts("xgzip"));
        assert!(!AcceptsGzip::of(&HeaderMap::new()).0);
    }
}
