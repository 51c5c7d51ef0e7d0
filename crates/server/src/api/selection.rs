//! What a query route was asked for: `query`, `type`, `from`, `to`, `aggregation` and the filters.

use std::borrow::Cow;

use candela_model::FilterError;
use candela_model::FilterKind;
use candela_model::FilterPreset;
use candela_model::Filters;
use candela_model::Selector;
use candela_query::Aggregation;
use candela_query::LinkSelection;
use candela_query::Query;
use candela_store::TimeRange;

use crate::api_error::ApiError;
use crate::app::App;
use crate::parameters::Parameters;
use crate::route_parameters::PRESET;
use crate::time::parse_time;

/// The range when none is given ends now and is this long.
const DEFAULT_RANGE_NS: i64 = 3_600_000_000_000;

const NANOSECONDS_PER_SECOND: i64 = 1_000_000_000;

/// The parameters that say where a range starts and ends.
#[derive(Clone, Copy, Debug)]
struct Names {
    from: &'static str,
    to: &'static str,
}

impl Default for Names {
    fn default() -> Self {
        Self {
            from: "from",
            to: "to",
        }
    }
}

const BASE: Names = Names {
    from: "base_from",
    to: "base_to",
};

/// What counts where the parameters say nothing.
#[derive(Clone, Debug)]
pub(crate) struct Defaults {
    /// Whose profiles, and what the query may cost. Its type is the default one.
    pub(crate) query: Query,
    /// `None` is the last hour.
    pub(crate) range: Option<TimeRange>,
}

impl Defaults {
    pub(crate) const fn of_store(query: Query) -> Self {
        Self { query, range: None }
    }
}

/// The query that the parameters describe.
///
/// # Errors
/// 400 with the parameter and what is wrong with it.
pub(crate) fn query_of(
    app: &App,
    parameters: &Parameters,
    defaults: Defaults,
) -> Result<Query, ApiError> {
    let (selector, links) = LinkSelection::taken_from(&selector_of(parameters)?);
    let Defaults { query, range } = defaults;
    let profile_type = parameters.one("type").map(str::to_owned);
    Ok(Query {
        selector,
        links,
        profile_type: profile_type.unwrap_or(query.profile_type),
        range: range_of(parameters, app.clock.now_ns(), Names::default(), range)?,
        filters: filters_of(parameters)?,
        aggregation: aggregation_of(parameters)?,
        ..query
    })
}

/// The other selection of a comparison: `base_query`, `base_from` and `base_to`, each by default
/// that of `selection`. Without any of them it is `default_range`, or else the range of the same
/// length before.
///
/// # Errors
/// 400 with the parameter and what is wrong with it.
pub(crate) fn base_query_of(
    app: &App,
    parameters: &Parameters,
    selection: &Query,
    default_range: Option<TimeRange>,
) -> Result<Query, ApiError> {
    let is_given = |name| parameters.one(name).is_some();
    let (selector, links) = match parameters.one("base_query") {
        Some(text) => LinkSelection::taken_from(&parse_selector("base_query", text)?),
        None => (selection.selector.clone(), selection.links.clone()),
    };
    let range = if is_given(BASE.from) || is_given(BASE.to) {
        range_of(parameters, app.clock.now_ns(), BASE, default_range)?
    } else if let Some(range) = default_range {
        range
    } else if is_given("base_query") {
        selection.range
    } else {
        let TimeRange { from_ns, to_ns } = selection.range;
        let length_ns = to_ns.saturating_sub(from_ns);
        TimeRange {
            from_ns: from_ns.saturating_sub(length_ns),
            to_ns: from_ns,
        }
    };
    Ok(Query {
        selector,
        links,
        range,
        ..selection.clone()
    })
}

/// The filters in the order of the URL.
fn filters_of(parameters: &Parameters) -> Result<Filters, ApiError> {
    let bad = |error: FilterError| {
        ApiError::bad_request("bad_filter", error.to_string()).hint(
            "a filter is a regular expression, after fn: file: line: pkg: bin: or kind: of that only; to collapse also recursion; of tags KEY=REGEX or KEY=1kb:1mb",
        )
    };
    let mut filters: Vec<(FilterKind, Cow<'_, str>)> = Vec::new();
    for (name, value) in parameters.in_order() {
        if let Some(kind) = FilterKind::from_name(name) {
            filters.push((kind, Cow::Borrowed(value)));
        } else if name == PRESET.name {
            let of_preset = preset_of(value)?.into_filters();
            filters.extend(of_preset.map(|(kind, text)| (kind, Cow::Owned(text))));
        }
    }
    let texts: Vec<(FilterKind, &str)> = filters
        .iter()
        .map(|(kind, text)| (*kind, text.as_ref()))
        .collect();
    Filters::parse(&texts).map_err(bad)
}

fn preset_of(id: &str) -> Result<FilterPreset, ApiError> {
    FilterPreset::from_id(id).ok_or_else(|| {
        let known: Vec<&str> = FilterPreset::all().iter().map(|preset| preset.id).collect();
        ApiError::bad_request("bad_preset", format!("preset: {id:?} is not known"))
            .hint(format!("known: {}", known.join(", ")))
    })
}

fn aggregation_of(parameters: &Parameters) -> Result<Option<Aggregation>, ApiError> {
    let Some(name) = parameters.one("aggregation") else {
        return Ok(None);
    };
    let Some(aggregation) = Aggregation::from_name(name) else {
        let known = Aggregation::ALL.map(Aggregation::name).join(", ");
        let message = format!("aggregation: {name:?} is not known");
        return Err(
            ApiError::bad_request("bad_aggregation", message).hint(format!("known: {known}"))
        );
    };
    Ok(Some(aggregation))
}

/// The `query` parameter; absent is every series.
///
/// # Errors
/// 400 with what is wrong with it.
pub(crate) fn selector_of(parameters: &Parameters) -> Result<Selector, ApiError> {
    parse_selector("query", parameters.one("query").unwrap_or("{}"))
}

fn parse_selector(name: &str, text: &str) -> Result<Selector, ApiError> {
    text.parse().map_err(|error: candela_model::SelectorError| {
        ApiError::bad_request("bad_selector", format!("{name}: {error}"))
            .hint(r#"a selector looks like {service_name="api", pod=~"web-.*"}"#)
    })
}

/// The range in `from` and `to`, for what has no profiles.
///
/// # Errors
/// 400 with the parameter and what is wrong with it.
pub(crate) fn range_parameters(app: &App, parameters: &Parameters) -> Result<TimeRange, ApiError> {
    range_of(parameters, app.clock.now_ns(), Names::default(), None)
}

/// The time in a parameter, when it is given.
///
/// # Errors
/// 400 with the parameter and what is wrong with it.
pub(crate) fn boundary_of(
    parameters: &Parameters,
    name: &str,
    now_ns: i64,
) -> Result<Option<i64>, ApiError> {
    let Some(text) = parameters.one(name) else {
        return Ok(None);
    };
    let time = parse_time(text, now_ns);
    let time =
        time.map_err(|error| ApiError::bad_request("bad_time", format!("{name}: {error}")))?;
    Ok(Some(time))
}

/// The range of two parameters, `from` and `to` by default.
fn range_of(
    parameters: &Parameters,
    now_ns: i64,
    names: Names,
    default: Option<TimeRange>,
) -> Result<TimeRange, ApiError> {
    let default_to_ns = default.map_or(now_ns, |range| range.to_ns);
    let to_ns = boundary_of(parameters, names.to, now_ns)?.unwrap_or(default_to_ns);
    let from_ns = boundary_of(parameters, names.from, now_ns)?;
    let from_ns = match (from_ns, parameters.number::<u32>("seconds")?) {
        (Some(from_ns), None) => from_ns,
        // `go tool pprof -seconds 30 URL` asks for the last 30 seconds.
        (None, Some(seconds)) => to_ns.saturating_sub(i64::from(seconds) * NANOSECONDS_PER_SECOND),
        (None, None) => match default {
            Some(range) => range.from_ns,
            None => to_ns.saturating_sub(DEFAULT_RANGE_NS),
        },
        (Some(_), Some(_)) => {
            let message = "from and seconds both say where the range starts";
            return Err(ApiError::bad_request("bad_range", message));
        }
    };
    if from_ns > to_ns {
        let unsaid = match default {
            Some(_) => ("the start of the file", "the end of the file"),
            None => ("one hour before", "now"),
        };
        let message = format!(
            "{} ({}) is after {} ({})",
            names.from,
            parameters.one(names.from).unwrap_or(unsaid.0),
            names.to,
            parameters.one(names.to).unwrap_or(unsaid.1)
        );
        return Err(ApiError::bad_request("bad_range", message).hint("exchange the two"));
    }
    Ok(TimeRange { from_ns, to_ns })
}
