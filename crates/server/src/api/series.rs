//! `GET /api/v1/series`.

use std::collections::BTreeMap;

use candela_query::LabeledPoints;
use candela_query::PointValue;
use candela_query::SeriesOptions;
use serde_json::Value;
use serde_json::json;

use crate::api::asked::Asked;
use crate::api::errors::query_error;
use crate::api::head::answer_head;
use crate::api::head::milliseconds;
use crate::api::head::profiled_ms;
use crate::api_error::ApiError;
use crate::parameters::Parameters;
use crate::reply::Reply;
use crate::turns::Lane;

const NANOSECONDS_PER_SECOND: i64 = 1_000_000_000;

pub(crate) async fn series(asked: Asked) -> Result<Reply, ApiError> {
    let options = SeriesOptions {
        step_ns: step_of(&asked.parameters)?,
        group_by: asked
            .parameters
            .all("group_by")
            .map(str::to_owned)
            .collect(),
        origin_ns: None,
    };
    asked
        .answer(Lane::Queries, move |engine, query| {
            let answer = engine.series(query, &options).map_err(query_error)?;
            let mut value = answer_head(query, &answer);
            value["step_ms"] = json!(milliseconds(answer.value.step_ns));
            value["profiled_ms"] = json!(answer.profiled_ns.map(profiled_ms));
            let lines = answer.value.series.iter().map(line);
            value["series"] = lines.collect::<Vec<Value>>().into();
            Ok(Reply::json("series", value))
        })
        .await
}

fn line(line: &LabeledPoints) -> Value {
    let points = line.points.iter();
    let points = points.map(|&(time_ns, value)| json!([milliseconds(time_ns), number(value)]));
    json!({
        "labels": line.labels.iter().collect::<BTreeMap<&str, &str>>(),
        "points": points.collect::<Vec<Value>>(),
        "profiled_ms": line.profiled_ns.map(profiled_ms),
    })
}

fn number(value: PointValue) -> Value {
    match value {
        PointValue::Whole(value) => json!(value),
        PointValue::Fraction(value) => json!(value),
    }
}

/// `step`, seconds, as nanoseconds.
pub(crate) fn step_of(parameters: &Parameters) -> Result<Option<i64>, ApiError> {
    let Some(step) = parameters.number::<i64>("step")? else {
        return Ok(None);
    };
    let step_ns = step.checked_mul(NANOSECONDS_PER_SECOND);
    match step_ns.filter(|step_ns| *step_ns > 0) {
        Some(step_ns) => Ok(Some(step_ns)),
        None => {
            let message = format!("step: {step} is no length in seconds");
            Err(ApiError::bad_request("bad_step", message))
        }
    }
}
