//! `GET /api/v1/heatmap`.

use candela_query::HeatmapColumn;
use candela_query::HeatmapOptions;
use serde_json::Value;
use serde_json::json;

use crate::api::asked::Asked;
use crate::api::errors::query_error;
use crate::api::head::answer_head;
use crate::api::head::milliseconds;
use crate::api::series::step_of;
use crate::api_error::ApiError;
use crate::reply::Reply;

pub(crate) async fn heatmap(asked: Asked) -> Result<Reply, ApiError> {
    let options = HeatmapOptions {
        step_ns: step_of(&asked.parameters)?,
        buckets: asked.parameters.number("buckets")?,
    };
    asked
        .answer(move |app, query| {
            let answer = app.engine.heatmap(query, &options).map_err(query_error)?;
            let heatmap = &answer.value;
            let mut value = answer_head(query, &answer);
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
