//! What a request for a profile says, and what is wrong with one. The keys, ranges, defaults and status
//! codes are those of `compute_ctl`; `target` is ours, and other unknown keys are ignored as there.

use std::path::PathBuf;
use std::time::Duration;

use axum::http::HeaderMap;
use axum::http::StatusCode;
use axum::http::header::CONTENT_TYPE;
use serde::Deserialize;
use serde_json::Value;

use crate::on_demand::reply::Refusal;
use crate::on_demand::target::Target;

/// Samples a second of each busy CPU.
const FREQUENCIES: std::ops::RangeInclusive<u16> = 1..=1000;
/// How long a session may take, seconds.
const TIMEOUTS: std::ops::RangeInclusive<u8> = 1..=60;

/// A profile that somebody wants.
#[derive(Debug, PartialEq, Eq, Deserialize)]
pub(crate) struct ProfileRequest {
    pub(crate) profiler: Profiler,
    #[serde(default = "default_frequency")]
    pub(crate) sampling_frequency: u16,
    #[serde(default = "default_timeout")]
    timeout_seconds: u8,
    /// Whether the answer is compressed.
    #[serde(default)]
    pub(crate) archive: bool,
    #[serde(default)]
    target: Option<Target>,
}

/// Who samples: we do, unless there is a path.
#[derive(Debug, PartialEq, Eq, Deserialize)]
pub(crate) enum Profiler {
    /// `profile` of bcc.
    BccProfile(Option<PathBuf>),
    /// Linux's perf.
    Perf(Option<PathBuf>),
}

fn default_frequency() -> u16 {
    100
}

fn default_timeout() -> u8 {
    5
}

// === impl ProfileRequest ===

impl ProfileRequest {
    /// The request of a body.
    ///
    /// # Errors
    /// 415 when it does not say that it is JSON, 400 when it is none, 422 when a value is missing, of
    /// another type or out of its range.
    pub(crate) fn parse(headers: &HeaderMap, body: &[u8]) -> Result<Self, Refusal> {
        if !is_json(headers) {
            return Err(Refusal::new(
                StatusCode::UNSUPPORTED_MEDIA_TYPE,
                "Expected request with `Content-Type: application/json`",
            ));
        }
        // In two steps: what is JSON and of another type is never malformed, which one step tells of some types.
        let body: Value = serde_json::from_slice(body).map_err(|error| {
            Refusal::new(
                StatusCode::BAD_REQUEST,
                format!("Failed to parse the request body as JSON: {error}"),
            )
        })?;
        let request: Self =
            serde_json::from_value(body).map_err(|error| unprocessable(&error.to_string()))?;
        request.check().map_err(|problem| unprocessable(&problem))?;
        Ok(request)
    }

    fn check(&self) -> Result<(), String> {
        let range = |name, value: u16, least: u16, most: u16| match (least..=most).contains(&value)
        {
            true => Ok(()),
            false => Err(format!(
                "{name} {value} is out of range; choose {least} to {most}"
            )),
        };
        let (least, most) = FREQUENCIES.into_inner();
        range("sampling_frequency", self.sampling_frequency, least, most)?;
        let (least, most) = TIMEOUTS.into_inner();
        let timeout = u16::from(self.timeout_seconds);
        range("timeout_seconds", timeout, least.into(), most.into())?;
        self.target().check()
    }

    /// How long samples are taken.
    pub(crate) fn duration(&self) -> Duration {
        Duration::from_secs(self.timeout_seconds.into())
    }

    /// Whose samples are wanted.
    pub(crate) fn target(&self) -> &Target {
        self.target.as_ref().unwrap_or(&Target::Postgres)
    }
}

fn unprocessable(problem: &str) -> Refusal {
    Refusal::new(
        StatusCode::UNPROCESSABLE_ENTITY,
        format!("Failed to deserialize the JSON body into the target type: {problem}"),
    )
}

/// `application/json`, or another type with that syntax (RFC 6839, 3.1), with or without parameters.
fn is_json(headers: &HeaderMap) -> bool {
    let value = headers.get(CONTENT_TYPE).and_then(|it| it.to_str().ok());
    let essence = value.and_then(|value| value.split(';').next());
    let Some(essence) = essence.map(|essence| essence.trim().to_ascii_lowercase()) else {
        return false;
    };
    let subtype = essence.strip_prefix("application/");
    subtype.is_some_and(|subtype| subtype == "json" || subtype.ends_with("+json"))
}

#[cfg(test)]
mod tests {
    use axum::http::HeaderValue;

    use super::*;

    fn parse(body: &str) -> Result<ProfileRequest, Refusal> {
        let headers =
            HeaderMap::from_iter([(CONTENT_TYPE, HeaderValue::from_static("application/json"))]);
        ProfileRequest::parse(&headers, body.as_bytes())
    }

    #[test]
    fn what_is_left_out_has_a_default() {
        let request = parse(r#"{"profiler": {"BccProfile": null}, "colour": "red"}"#);
        let expected = ProfileRequest {
            profiler: Profiler::BccProfile(None),
            sampling_frequency: 100,
            timeout_seconds: 5,
            archive: false,
            target: None,
        };
        assert_eq!(request.expect("valid"), expected);
        assert_eq!(expected.duration(), Duration::from_secs(5));
        assert_eq!(*expected.target(), Target::Postgres);
    }

    #[test]
    fn profilers_may_have_a_path() {
        let path = PathBuf::from("/usr/bin/perf");
        let request = parse(r#"{"profiler":{"Perf":"/usr/bin/perf"},"target":{"pid":7}}"#);
        let request = request.expect("valid");
        assert_eq!(request.profiler, Profiler::Perf(Some(path)));
        assert_eq!(*request.target(), Target::Pid(7));
    }

    #[test]
    fn the_ends_of_the_ranges_are_in_them() {
        for (frequency, timeout, is_valid) in [
            (1, 1, true),
            (1000, 60, true),
            (0, 5, false),
            (1001, 5, false),
            (65536, 5, false),
            (-1, 5, false),
            (99, 0, false),
            (99, 61, false),
            (99, 256, false),
        ] {
            let body = format!(
                r#"{{"profiler":{{"Perf":null}},"sampling_frequency":{frequency},"timeout_seconds":{timeout}}}"#
            );
            match parse(&body) {
                Ok(_) => assert!(is_valid, "{body}"),
                Err(refusal) => {
                    assert!(!is_valid, "{body}: {refusal:?}");
                    assert_eq!(refusal.status, StatusCode::UNPROCESSABLE_ENTITY, "{body}");
                }
            }
        }
    }

    #[test]
    fn what_is_no_request_is_refused_by_kind() {
        let cases = [
            ("{\"profiler\":", StatusCode::BAD_REQUEST),
            ("", StatusCode::BAD_REQUEST),
            (
                "{\"profiler\":{\"Perf\":null}} trailing",
                StatusCode::BAD_REQUEST,
            ),
            ("{}", StatusCode::UNPROCESSABLE_ENTITY),
            ("[1]", StatusCode::UNPROCESSABLE_ENTITY),
            (r#"{"profiler":7}"#, StatusCode::UNPROCESSABLE_ENTITY),
            (r#"{"profiler":"Perf"}"#, StatusCode::UNPROCESSABLE_ENTITY),
            (
                r#"{"profiler":{"Vtune":null}}"#,
                StatusCode::UNPROCESSABLE_ENTITY,
            ),
            (
                r#"{"profiler":{"Perf":7}}"#,
                StatusCode::UNPROCESSABLE_ENTITY,
            ),
            (
                r#"{"profiler":{"Perf":null},"archive":"yes"}"#,
                StatusCode::UNPROCESSABLE_ENTITY,
            ),
            (
                r#"{"profiler":{"Perf":null},"sampling_frequency":99.5}"#,
                StatusCode::UNPROCESSABLE_ENTITY,
            ),
            (
                r#"{"profiler":{"Perf":null},"target":{"planet":"mars"}}"#,
                StatusCode::UNPROCESSABLE_ENTITY,
            ),
            (
                r#"{"profiler":{"Perf":null},"target":{"pids":[]}}"#,
                StatusCode::UNPROCESSABLE_ENTITY,
            ),
        ];
        for (body, status) in cases {
            assert_eq!(parse(body).expect_err(body).status, status, "{body}");
        }
    }

    #[test]
    fn only_json_is_read() {
        let content_type = |text| {
            let value = HeaderValue::from_static(text);
            HeaderMap::from_iter([(CONTENT_TYPE, value)])
        };
        for good in [
            "application/json",
            "Application/JSON; charset=utf-8",
            "application/vnd.api+json",
        ] {
            assert!(is_json(&content_type(good)), "{good}");
        }
        for bad in ["text/plain", "application/jsonp", "json", ""] {
            assert!(!is_json(&content_type(bad)), "{bad}");
        }
        let refusal = ProfileRequest::parse(&HeaderMap::new(), b"{}").expect_err("no type");
        assert_eq!(refusal.status, StatusCode::UNSUPPORTED_MEDIA_TYPE);
    }
}
