//! What a query route was asked for: `query`, `type`, `from`, `to`.

use candela_model::Selector;
use candela_query::Query;
use candela_store::TimeRange;

use crate::api_error::ApiError;
use crate::app::App;
use crate::app::DEFAULT_TENANT;
use crate::parameters::Parameters;
use crate::time::parse_time;

/// The profile type when none is given.
const DEFAULT_TYPE: &str = "cpu";

/// The range when none is given ends now and is this long.
const DEFAULT_RANGE_NS: i64 = 3_600_000_000_000;

const NANOSECONDS_PER_SECOND: i64 = 1_000_000_000;

/// The query that the parameters describe.
///
/// # Errors
/// 400 with the parameter and what is wrong with it.
pub(crate) fn query_of(app: &App, parameters: &Parameters) -> Result<Query, ApiError> {
    Ok(Query {
        selector: selector_of(parameters)?,
        profile_type: parameters.one("type").unwrap_or(DEFAULT_TYPE).to_owned(),
        range: range_of(parameters, app.clock.now_ns())?,
        ..Query::new(DEFAULT_TENANT)
    })
}

/// The `query` parameter; absent is every series.
fn selector_of(parameters: &Parameters) -> Result<Selector, ApiError> {
    parameters.one("query").unwrap_or("{}").parse().map_err(
        |error: candela_model::SelectorError| {
            ApiError::bad_request("bad_selector", error.to_string())
                .hint(r#"a selector looks like {service_name="api", pod=~"web-.*"}"#)
        },
    )
}

/// The range of `from` and `to`.
fn range_of(parameters: &Parameters, now_ns: i64) -> Result<TimeRange, ApiError> {
    let time = |name: &str| -> Result<Option<i64>, ApiError> {
        let Some(text) = parameters.one(name) else {
            return Ok(None);
        };
        let time = parse_time(text, now_ns);
        let time =
            time.map_err(|error| ApiError::bad_request("bad_time", format!("{name}: {error}")))?;
        Ok(Some(time))
    };
    let to_ns = time("to")?.unwrap_or(now_ns);
    let from_ns = match (time("from")?, parameters.number::<u32>("seconds")?) {
        (Some(from_ns), None) => from_ns,
        // `go tool pprof -seconds 30 URL` asks for the last 30 seconds.
        (None, Some(seconds)) => to_ns.saturating_sub(i64::from(seconds) * NANOSECONDS_PER_SECOND),
        (None, None) => to_ns.saturating_sub(DEFAULT_RANGE_NS),
        (Some(_), Some(_)) => {
            let message = "from and seconds both say where the range starts";
            return Err(ApiError::bad_request("bad_range", message));
        }
    };
    if from_ns > to_ns {
        let message = format!(
            "from ({}) is after to ({})",
            parameters.one("from").unwrap_or("one hour before to"),
            parameters.one("to").unwrap_or("now")
        );
        return Err(ApiError::bad_request("bad_range", message).hint("exchange the two"));
    }
    Ok(TimeRange { from_ns, to_ns })
}
