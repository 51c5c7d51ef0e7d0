//! `GET /api/v1/services`.

use serde_json::Value;
use serde_json::json;

use crate::api::asked::Asked;
use crate::api::errors::query_error;
use crate::api::head::answer_head;
use crate::api::head::milliseconds;
use crate::api::head::profiled_ms;
use crate::api_error::ApiError;
use crate::reply::Reply;
use crate::turns::Lane;

pub(crate) async fn services(asked: Asked) -> Result<Reply, ApiError> {
    asked
        .answer(Lane::Lists, move |engine, query| {
            let answer = engine.services(query).map_err(query_error)?;
            let mut value = answer_head(query, &answer);
            value["first_ms"] = json!(answer.value.first_ns.map(milliseconds));
            value["end_ms"] = json!(answer.value.end_ns.map(milliseconds));
            value["previous_first_ms"] = json!(answer.value.previous_first_ns.map(milliseconds));
            value["profiled_ms"] = json!(answer.value.profiled_ns.map(profiled_ms));
            value["previous_profiled_ms"] =
                json!(answer.value.previous_profiled_ns.map(profiled_ms));
            let services = answer.value.services.iter().map(|service| {
                let types = service.types.iter().map(ToString::to_string);
                json!({
                    "service": service.service,
                    "total": service.total,
                    "previous_total": service.previous_total,
                    "types": types.collect::<Vec<String>>(),
                    "sparkline": service.sparkline,
                    "profiled_ms": service.profiled_ns.map(profiled_ms),
                    "previous_profiled_ms": service.previous_profiled_ns.map(profiled_ms),
                })
            });
            value["services"] = services.collect::<Vec<Value>>().into();
            Ok(Reply::json("services", value))
        })
        .await
}
