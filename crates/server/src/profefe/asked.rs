//! What requests ask for: service, type, labels and times.

use candela_model::LabelMatcher;
use candela_model::MatchOperator;
use candela_model::SERVICE_NAME_LABEL;
use candela_model::Selector;
use candela_store::TimeRange;
use jiff::civil::DateTime;
use jiff::tz::TimeZone;

use crate::api_error::ApiError;
use crate::parameters::Parameters;
use crate::profefe::kind::Kind;

const TIME_FORMAT: &str = "%Y-%m-%dT%H:%M:%S";
const NANOSECONDS_PER_SECOND: i64 = 1_000_000_000;

/// Profiles of a list, when the client does not say, and at the most.
const MOST_PROFILES: usize = 10_000;

/// Which profiles a request is about.
#[derive(Clone, Debug)]
pub(super) struct Asked {
    pub(super) selector: Selector,
    /// Of any type when there is none.
    pub(super) kind: Option<Kind>,
    pub(super) range: TimeRange,
    pub(super) limit: usize,
}

impl Asked {
    /// # Errors
    /// 400 with what is missing or wrong.
    pub(super) fn of(parameters: &Parameters) -> Result<Self, ApiError> {
        let service = service_of(parameters)?;
        let kind = parameters.one("type").map(Kind::parse).transpose()?;
        let labels = labels_of(parameters)?;
        let pairs = labels
            .iter()
            .map(|(name, value)| (name.as_str(), value.as_str()));
        let pairs = std::iter::once((SERVICE_NAME_LABEL, service)).chain(pairs);
        let matchers = pairs.map(|(name, value)| {
            LabelMatcher::new(name, MatchOperator::Equal, value).map_err(|error| {
                ApiError::bad_request("bad_label", format!("bad \"labels\": {error}"))
            })
        });
        let matchers: Result<Vec<LabelMatcher>, ApiError> = matchers.collect();
        let time = |name| {
            let text = parameters.one(name).ok_or_else(|| missing(name))?;
            parse_time(name, text)
        };
        let limit = parameters.number::<usize>("limit")?.unwrap_or(0);
        Ok(Self {
            selector: Selector::new(matchers?),
            kind,
            range: TimeRange {
                from_ns: time("from")?,
                // Times are told by the second: what began in the last one is asked for.
                to_ns: time("to")?.saturating_add(NANOSECONDS_PER_SECOND),
            },
            limit: match limit {
                0 => MOST_PROFILES,
                limit => limit.min(MOST_PROFILES),
            },
        })
    }
}

/// # Errors
/// 400 when there is none.
pub(super) fn service_of(parameters: &Parameters) -> Result<&str, ApiError> {
    parameters.one("service").ok_or_else(|| missing("service"))
}

/// `region=eu,dc=fra`: each name and value may be escaped once more than the parameter is.
///
/// # Errors
/// 400 when one is no `name=value`.
pub(super) fn labels_of(parameters: &Parameters) -> Result<Vec<(String, String)>, ApiError> {
    let text = parameters.one("labels").unwrap_or("");
    let mut labels = Vec::new();
    for part in text.split(',').map(str::trim).filter(|it| !it.is_empty()) {
        let pair = form_urlencoded::parse(part.as_bytes()).next();
        let Some((name, value)) = pair.filter(|(name, _)| !name.trim().is_empty()) else {
            let shown: String = part.chars().take(64).collect();
            let message = format!("bad \"labels\": {shown:?} is no name=value");
            return Err(ApiError::bad_request("bad_label", message));
        };
        labels.push((name.trim().to_owned(), value.trim().to_owned()));
    }
    Ok(labels)
}

/// # Errors
/// 400 when it is none.
pub(super) fn parse_time(name: &str, text: &str) -> Result<i64, ApiError> {
    let time = DateTime::strptime(TIME_FORMAT, text).ok();
    let time = time.and_then(|time| TimeZone::UTC.to_timestamp(time).ok());
    let time = time.and_then(|time| i64::try_from(time.as_nanosecond()).ok());
    time.filter(|&time_ns| time_ns >= 0).ok_or_else(|| {
        let shown: String = text.chars().take(64).collect();
        let message = format!("bad {name:?} {shown:?}: a time is written 2006-01-02T15:04:05, UTC");
        ApiError::bad_request("bad_time", message)
    })
}

fn missing(name: &str) -> ApiError {
    ApiError::bad_request("missing_parameter", format!("missing {name:?}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parameters(query: &str) -> Parameters {
        let uri = format!("/x?{query}");
        Parameters::of(&uri.parse().expect("an address"))
    }

    #[test]
    fn times_are_those_of_profefe() {
        let time = parse_time("from", "2023-11-14T22:13:20").expect("a time");
        assert_eq!(time, 1_700_000_000_000_000_000);
        for text in ["", "now", "1700000000", "2023-11-14", "1950-01-01T00:00:00"] {
            assert!(parse_time("from", text).is_err(), "{text}");
        }
    }

    #[test]
    fn labels_are_separated_by_commas() {
        let labels = labels_of(&parameters("labels=region=eu%2Cdc=a%252Cb,%20v%3D1.0,"));
        let pair = |name: &str, value: &str| (name.to_owned(), value.to_owned());
        let wanted = vec![pair("region", "eu"), pair("dc", "a,b"), pair("v", "1.0")];
        assert_eq!(labels, Ok(wanted));
        assert!(labels_of(&parameters("labels=%3Dx")).is_err());
        assert_eq!(labels_of(&parameters("")), Ok(Vec::new()));
    }

    #[test]
    fn what_is_missing_is_named() {
        let range = "from=2023-11-14T22:13:20&to=2023-11-14T22:13:20";
        for (query, part) in [
            (range.to_owned(), "service"),
            ("service=a&to=2023-11-14T22:13:20".to_owned(), "from"),
            ("service=a&from=2023-11-14T22:13:20".to_owned(), "to"),
            (format!("service=a&type=moon&{range}"), "moon"),
        ] {
            let error = Asked::of(&parameters(&query)).expect_err(&query);
            assert!(error.message.contains(part), "{}", error.message);
        }
        let asked = Asked::of(&parameters(&format!("service=a&limit=3&{range}")));
        let asked = asked.expect("it is complete");
        assert_eq!((asked.limit, asked.kind), (3, None));
        assert_eq!(asked.range.to_ns - asked.range.from_ns, 1_000_000_000);
    }
}
