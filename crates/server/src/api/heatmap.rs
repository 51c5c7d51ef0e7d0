//! `GET /api/v1/heatmap`.

use axum::extract::State;
use candela_query::HeatmapColumn;
use candela_query::HeatmapOptions;
use serde_json::Value;
use serde_json::json;

use crate::api::errors::query_error;
use crate::api::head::answer_head;
use crate::api::head::milliseconds;
use crate::api::selection::query_of;
use crate::api::series::step_of;
use crate::api_error::ApiError;
use crate::app::SharedApp;
use crate::parameters::Parameters;
use crate::reply::AcceptsGzip;
use crate::reply::Reply;
use crate::reply::answer;

pub(crate) async fn heatmap(
    State(app): State<SharedApp>,
    parameters: Parameters,
    accepts: AcceptsGzip,
) -> Result<Reply, ApiError> {
    let query = query_of(&app, &parameters)?;
    let _waiting = query.cancellation.on_drop();
    let options = HeatmapOptions {
        step_ns: step_of(&parameters)?,
        buckets: parameters.number("buckets")?,
    };
    answer(&app, accepts, move |app| {
        let answer = app.engine.heatmap(&query, &options).map_err(query_error)?;
        let heatmap = &answer.value;
        let mut value = answer_head(&query, &answer);
        value["step_ms"] = json!(milliseconds(heatmap.step_ns));
        value["is_rate"] = json!(heatmap.is_rate);
        value["bounds"] = json!(heatmap.bounds);
        let columns = heatmap.columns.iter().map(column);
        value["columns"] = columns.collect::<Vec<Value>>().into();
        Ok(Reply::json("heatmap", value))
    })
    .await
}

fn column(column: &HeatmapColumn) -> Value {
    json!({"time": milliseconds(column.start_ns), "counts": column.counts})
}
