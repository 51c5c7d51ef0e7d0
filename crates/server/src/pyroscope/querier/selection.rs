//! What a question of `querier.v1` is about, checked as its clients expect
//! (pyroscope-api 1.4, "Validation").

use candela_model::Filter;
use candela_model::FilterKind;
use candela_model::Filters;
use candela_model::LabelMatcher;
use candela_model::ProfileType;
use candela_model::SERVICE_NAME_LABEL;
use candela_model::Selector;
use candela_query::Cancellation;
use candela_query::LinkSelection;
use candela_query::ProfileKey;
use candela_query::ProfileKeyError;
use candela_query::Query;
use candela_store::TimeRange;
use candela_wire::types::v1::StackTraceSelector;

use crate::api_error::ApiError;
use crate::auth::Caller;

/// The label under which clients know the profile type.
pub(crate) const PROFILE_TYPE: &str = "__profile_type__";

/// Nodes of a graph when a client does not say, and the most that it may ask for (pyroscope-api 1.8).
const DEFAULT_MAX_NODES: usize = 8192;
const MOST_NODES: i64 = 1_048_576;

const NANOSECONDS_PER_MILLISECOND: i64 = 1_000_000;

/// The parts that all questions about samples have.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Selected<'a> {
    pub(crate) profile_type: &'a str,
    pub(crate) selector: &'a str,
    /// Milliseconds since the Unix epoch.
    pub(crate) start: i64,
    pub(crate) end: i64,
}

impl Selected<'_> {
    /// The query for it.
    ///
    /// # Errors
    /// 400 with what is missing or wrong.
    pub(crate) fn query(
        &self,
        caller: &Caller,
        cancellation: Cancellation,
    ) -> Result<Query, ApiError> {
        let profile_type = exact_type(self.profile_type)?;
        if self.selector.trim().is_empty() {
            let message = "labelSelector is missing";
            return Err(
                ApiError::bad_request("bad_selector", message).hint("it is {} for everything")
            );
        }
        let selector = parse_selector("labelSelector", self.selector)?;
        Ok(Query {
            selector: without_types(&selector),
            profile_type: profile_type.to_string(),
            range: range_of(self.start, self.end)?,
            cancellation,
            ..caller.query()
        })
    }
}

/// The profile type of an identifier. A sixth part, as older clients send it, is left out.
///
/// # Errors
/// 400 when it is none.
pub(crate) fn exact_type(id: &str) -> Result<ProfileType, ApiError> {
    let five = match id.match_indices(':').nth(4) {
        Some((end, _)) => &id[..end],
        None => id,
    };
    if id.is_empty() {
        let message = "profileTypeID is missing";
        return Err(ApiError::bad_request("bad_type", message));
    }
    five.parse().map_err(|error| {
        ApiError::bad_request("bad_type", format!("profileTypeID {id:?}: {error}"))
            .hint("it looks like process_cpu:cpu:nanoseconds:cpu:nanoseconds")
    })
}

/// # Errors
/// 400 when the range ends before it starts, or there is none.
pub(crate) fn range_of(start: i64, end: i64) -> Result<TimeRange, ApiError> {
    let bad = |message: String| Err(ApiError::bad_request("bad_range", message));
    if start == 0 && end == 0 {
        return bad("start and end are missing".to_owned());
    }
    if start > end {
        return bad(format!("start ({start}) is after end ({end})"));
    }
    Ok(TimeRange {
        from_ns: start.saturating_mul(NANOSECONDS_PER_MILLISECOND),
        // The end of clients is part of the range.
        to_ns: end
            .saturating_add(1)
            .saturating_mul(NANOSECONDS_PER_MILLISECOND),
    })
}

/// The range of lists of names, which older clients ask for without one.
///
/// # Errors
/// 400 when the range ends before it starts.
pub(crate) fn range_or_all(start: i64, end: i64) -> Result<TimeRange, ApiError> {
    if start == 0 && end == 0 {
        return Ok(TimeRange::ALL);
    }
    range_of(start, end)
}

/// # Errors
/// 400 with what is wrong with it.
pub(crate) fn parse_selector(name: &str, text: &str) -> Result<Selector, ApiError> {
    text.parse().map_err(|error: candela_model::SelectorError| {
        ApiError::bad_request("bad_selector", format!("{name}: {error}"))
            .hint(r#"a selector looks like {service_name="api", pod=~"web-.*"}"#)
    })
}

/// Whether a label describes the type of a profile, which is no label here.
pub(crate) fn is_type_label(name: &str) -> bool {
    type_label(name, &ProfileType::default()).is_some()
}

/// What clients know as a label of a profile type.
pub(crate) fn type_label(name: &str, profile_type: &ProfileType) -> Option<String> {
    match name {
        PROFILE_TYPE => Some(profile_type.to_string()),
        "__name__" => Some(profile_type.name.clone()),
        "__type__" => Some(profile_type.sample_type.clone()),
        "__unit__" => Some(profile_type.sample_unit.clone()),
        "__period_type__" => Some(profile_type.period_type.clone()),
        "__period_unit__" => Some(profile_type.period_unit.clone()),
        _ => None,
    }
}

/// All labels that describe a type.
pub(crate) const TYPE_LABELS: [&str; 6] = [
    "__name__",
    "__period_type__",
    "__period_unit__",
    PROFILE_TYPE,
    "__type__",
    "__unit__",
];

/// The matchers of labels alone, under the names that we have for them.
pub(crate) fn without_types(selector: &Selector) -> Selector {
    let matchers = selector.matchers().iter();
    let matchers = matchers.filter(|matcher| !is_type_label(matcher.name()));
    Selector::new(matchers.map(known_by_us).collect())
}

/// Whether a type is one that the matchers of types want.
pub(crate) fn wants_type(selector: &Selector, profile_type: &ProfileType) -> bool {
    selector.matchers().iter().all(|matcher| {
        let value = type_label(matcher.name(), profile_type);
        value.is_none_or(|value| matcher.matches(&value))
    })
}

fn known_by_us(matcher: &LabelMatcher) -> LabelMatcher {
    let name = own_name(matcher.name());
    if name == matcher.name() {
        return matcher.clone();
    }
    LabelMatcher::new(name, matcher.operator(), matcher.value())
        .expect("a value that was compiled once is compiled again")
}

/// The name that we have for what clients know as a label.
pub(crate) fn own_name(name: &str) -> &str {
    match name {
        "__service_name__" => SERVICE_NAME_LABEL,
        _ => name,
    }
}

/// Only samples of these traces and spans.
///
/// # Errors
/// 400 for what is no id.
pub(crate) fn link_selection(
    trace_ids: &[String],
    span_ids: &[String],
) -> Result<LinkSelection, ApiError> {
    let traces = trace_ids.iter().map(|id| hex_id("traceIdSelector", id));
    let spans = span_ids.iter().map(|id| hex_id("spanSelector", id));
    Ok(LinkSelection {
        trace_ids: traces.collect::<Result<_, _>>()?,
        span_ids: spans.collect::<Result<_, _>>()?,
        ..LinkSelection::default()
    })
}

/// # Errors
/// 400 for what is no id of so many bytes.
fn hex_id<const BYTES: usize>(name: &str, text: &str) -> Result<[u8; BYTES], ApiError> {
    let is_id = text.len() == 2 * BYTES && text.bytes().all(|byte| byte.is_ascii_hexdigit());
    if !is_id {
        // What is far too long for an id is not repeated.
        let shown: String = text.chars().take(64).collect();
        let digits = 2 * BYTES;
        let message = format!("{name}: {shown:?} is not {digits} hexadecimal digits");
        return Err(ApiError::bad_request("bad_selector", message));
    }
    let value = |digit: u8| char::from(digit).to_digit(16).unwrap_or(0) as u8;
    let mut id = [0; BYTES];
    for (byte, pair) in id.iter_mut().zip(text.as_bytes().chunks_exact(2)) {
        *byte = value(pair[0]) << 4 | value(pair[1]);
    }
    Ok(id)
}

/// # Errors
/// 400 for what is no id of a profile.
pub(crate) fn profile_keys(ids: &[String]) -> Result<Vec<ProfileKey>, ApiError> {
    let keys = ids.iter().map(|id| {
        id.parse().map_err(|error: ProfileKeyError| {
            ApiError::bad_request("bad_selector", format!("profileIdSelector: {error}"))
        })
    });
    keys.collect()
}

/// Only stacks below a call site, which is given from the root on.
///
/// # Errors
/// 400 when a name cannot be looked for.
pub(crate) fn call_site_filters(
    selector: Option<&StackTraceSelector>,
) -> Result<Filters, ApiError> {
    let sites = selector.map_or(&[][..], |selector| &selector.call_site);
    let filters = sites
        .iter()
        .map(|site| Filter::new(FilterKind::Path, &site.name));
    let filters: Result<Vec<Filter>, _> = filters.collect();
    let filters = filters.and_then(Filters::new);
    filters.map_err(|error| ApiError::bad_request("bad_call_site", error.to_string()))
}

/// How many nodes a graph may have; a client that says 0 gets what one gets that says nothing.
///
/// # Errors
/// 400 below 0 and above the most.
pub(crate) fn max_nodes(asked: Option<i64>) -> Result<usize, ApiError> {
    Ok(asked_nodes(asked)?.unwrap_or(DEFAULT_MAX_NODES))
}

/// The same for profiles, which are whole unless the client says a number.
///
/// # Errors
/// 400 below 0 and above the most.
pub(crate) fn asked_nodes(asked: Option<i64>) -> Result<Option<usize>, ApiError> {
    match asked {
        None | Some(0) => Ok(None),
        Some(nodes @ ..0) => {
            let message = format!("maxNodes {nodes} is negative");
            Err(ApiError::bad_request("bad_number", message))
        }
        Some(nodes) if nodes > MOST_NODES => {
            let message = format!("maxNodes {nodes} is more than {MOST_NODES}");
            Err(ApiError::bad_request("too_many_nodes", message))
        }
        Some(nodes) => Ok(usize::try_from(nodes).ok()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_are_as_long_as_they_are() {
        let id: [u8; 8] = hex_id("x", "00fF000000000102").expect("an id");
        assert_eq!(id, [0, 255, 0, 0, 0, 0, 1, 2]);
        let endless = "0".repeat(10_000);
        for text in [
            "",
            "1",
            "00ff00000000010",
            "00ff0000000001ü",
            "+0ff000000000102",
            &endless,
        ] {
            let error = hex_id::<8>("spanSelector", text)
                .expect_err("no id")
                .message;
            assert!(
                error.starts_with("spanSelector: ") && error.len() < 150,
                "{error}"
            );
        }
    }
}
