//! `GET /api/v1/series`.

use axum::extract::State;
use candela_query::Aggregation;
use candela_store::TimeRange;
use serde_json::Value;
use serde_json::json;

use crate::api::errors::query_error;
use crate::api::head::answer_head;
use crate::api::head::milliseconds;
use crate::api::selection::query_of;
use crate::api_error::ApiError;
use crate::app::SharedApp;
use crate::parameters::Parameters;
use crate::reply::AcceptsGzip;
use crate::reply::Reply;
use crate::reply::answer;

const NANOSECONDS_PER_SECOND: i64 = 1_000_000_000;

/// Points in which a range is shown when no step is given, about: steps are round numbers.
const WANTED_POINTS: i64 = 120;

/// More points than any screen has columns.
const MAX_POINTS: i64 = 11_000;

/// Steps that people read easily, seconds.
const ROUND_STEPS: [i64; 14] = [
    10, 15, 30, 60, 120, 300, 600, 900, 1_800, 3_600, 7_200, 21_600, 43_200, 86_400,
];

pub(crate) async fn series(
    State(app): State<SharedApp>,
    parameters: Parameters,
    accepts: AcceptsGzip,
) -> Result<Reply, ApiError> {
    let query = query_of(&app, &parameters)?;
    let step_ns = step_of(&parameters, query.range)?;
    let group_by: Vec<String> = parameters.all("group_by").map(str::to_owned).collect();
    let aggregation = aggregation_of(&parameters)?;
    answer(&app, accepts, move |app| {
        let answer = app
            .engine
            .series(&query, step_ns, &group_by, aggregation)
            .map_err(query_error)?;
        let mut value = answer_head(&query, &answer);
        value["step_ms"] = json!(milliseconds(step_ns));
        let lines = answer.value.iter().map(|line| {
            let points = line.points.iter();
            let points = points.map(|point| json!([milliseconds(point.time_ns), point.value]));
            json!({
                "labels": line.labels.iter().collect::<std::collections::BTreeMap<_, _>>(),
                "points": points.collect::<Vec<Value>>(),
            })
        });
        value["series"] = lines.collect::<Vec<Value>>().into();
        Ok(Reply::json("series", value))
    })
    .await
}

fn step_of(parameters: &Parameters, range: TimeRange) -> Result<i64, ApiError> {
    let range_ns = range.to_ns.saturating_sub(range.from_ns);
    let Some(step) = parameters.number::<i64>("step")? else {
        let wanted = range_ns / NANOSECONDS_PER_SECOND / WANTED_POINTS;
        let longest = ROUND_STEPS[ROUND_STEPS.len() - 1];
        let round = ROUND_STEPS.into_iter().find(|step| *step >= wanted);
        // Behind the table: whole days.
        let step = round.unwrap_or_else(|| (wanted / longest + 1) * longest);
        return Ok(step * NANOSECONDS_PER_SECOND);
    };
    let step_ns = step
        .checked_mul(NANOSECONDS_PER_SECOND)
        .filter(|step| *step > 0);
    let Some(step_ns) = step_ns else {
        let message = format!("step: {step} is no length in seconds");
        return Err(ApiError::bad_request("bad_step", message));
    };
    let points = range_ns / step_ns;
    if points > MAX_POINTS {
        let message = format!("step: {step} s makes {points} points, at most {MAX_POINTS} may be");
        return Err(ApiError::bad_request("bad_step", message).hint("use a longer step"));
    }
    Ok(step_ns)
}

fn aggregation_of(parameters: &Parameters) -> Result<Option<Aggregation>, ApiError> {
    match parameters.one("aggregation") {
        None => Ok(None),
        Some("sum") => Ok(Some(Aggregation::Sum)),
        Some("average") => Ok(Some(Aggregation::Average)),
        Some(other) => {
            let message = format!("aggregation: {other:?} is neither sum nor average");
            Err(ApiError::bad_request("bad_aggregation", message))
        }
    }
}
