//! `GET /api/v1/heatmap`.

use candela_query::Answer;
use candela_query::Engine;
use candela_query::HeatmapColumn;
use candela_query::HeatmapOptions;
use candela_query::Query;
use candela_query::SampleHeatmap;
use candela_query::SampleHeatmapOptions;
use serde_json::Value;
use serde_json::json;

use crate::api::asked::Asked;
use crate::api::errors::query_error;
use crate::api::head::answer_head;
use crate::api::head::milliseconds;
use crate::api::series::step_of;
use crate::api_error::ApiError;
use crate::parameters::Parameters;
use crate::reply::Reply;
use crate::turns::Lane;

/// What a cell counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Counted {
    Profiles,
    Samples,
}

pub(crate) async fn heatmap(asked: Asked) -> Result<Reply, ApiError> {
    let of = Counted::asked(&asked.parameters)?;
    let step_ns = step_of(&asked.parameters)?;
    let buckets: Option<usize> = asked.parameters.number("buckets")?;
    asked
        .answer(Lane::Queries, move |engine, query| {
            if of == Counted::Profiles {
                return of_profiles(engine, query, &HeatmapOptions { step_ns, buckets });
            }
            let options = SampleHeatmapOptions { step_ns, buckets };
            let answer = engine.sample_heatmap(query, options);
            Ok(of_samples(query, &answer.map_err(query_error)?))
        })
        .await
}

impl Counted {
    fn asked(parameters: &Parameters) -> Result<Self, ApiError> {
        match parameters.one("of").unwrap_or("profiles") {
            "profiles" => Ok(Self::Profiles),
            "samples" => Ok(Self::Samples),
            other => {
                let message = format!("of: {other:?} is not known");
                Err(ApiError::bad_request("bad_heatmap", message).hint("known: profiles, samples"))
            }
        }
    }
}

fn of_profiles(
    engine: &Engine,
    query: &Query,
    options: &HeatmapOptions,
) -> Result<Reply, ApiError> {
    let answer = engine.heatmap(query, options).map_err(query_error)?;
    let heatmap = &answer.value;
    let mut value = answer_head(query, &answer);
    value["of"] = json!("profiles");
    value["step_ms"] = json!(milliseconds(heatmap.step_ns));
    value["is_rate"] = json!(heatmap.is_rate);
    value["bounds"] = json!(heatmap.bounds);
    value["columns"] = columns(&heatmap.columns);
    Ok(Reply::json("heatmap", value))
}

/// Bounds are milliseconds from the start of a column.
fn of_samples(query: &Query, answer: &Answer<SampleHeatmap>) -> Reply {
    let heatmap = &answer.value;
    let step_ms = heatmap.step_ns as f64 / 1e6;
    let bound = |row: usize| step_ms * row as f64 / heatmap.buckets as f64;
    let mut value = answer_head(query, answer);
    value["of"] = json!("samples");
    value["step_ms"] = json!(milliseconds(heatmap.step_ns));
    value["is_rate"] = json!(false);
    value["timed"] = json!(heatmap.timed);
    value["untimed"] = json!(heatmap.untimed);
    value["bounds"] = (0..=heatmap.buckets)
        .map(bound)
        .collect::<Vec<f64>>()
        .into();
    value["columns"] = columns(&heatmap.columns);
    Reply::json("heatmap", value)
}

fn columns(columns: &[HeatmapColumn]) -> Value {
    let columns = columns.iter().map(|column| {
        let time = milliseconds(column.start_ns);
        json!({"time": time, "counts": column.counts})
    });
    columns.collect::<Vec<Value>>().into()
}
