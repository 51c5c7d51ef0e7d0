//! `GET /api/v1/labels`, `/label-values` and `/types`: what there is to ask for.

use candela_formats::type_json;
use serde_json::Value;
use serde_json::json;

use crate::api::asked::Asked;
use crate::api::errors::query_error;
use crate::api::head::add_remarks;
use crate::api_error::ApiError;
use crate::reply::Reply;
use crate::turns::Lane;

pub(crate) async fn labels(asked: Asked) -> Result<Reply, ApiError> {
    asked
        .answer(Lane::Lists, move |engine, query| {
            let answer = engine.labels(query).map_err(query_error)?;
            let mut value = json!({"labels": answer.value});
            add_remarks(&mut value, &answer);
            Ok(Reply::json("labels", value))
        })
        .await
}

pub(crate) async fn label_values(asked: Asked) -> Result<Reply, ApiError> {
    let Some(label) = asked.parameters.one("label").map(str::to_owned) else {
        let error = ApiError::bad_request("no_label", "label: which label's values?");
        return Err(error.hint("/api/v1/labels lists the names"));
    };
    asked
        .answer(Lane::Lists, move |engine, query| {
            let answer = engine.label_values(query, &label).map_err(query_error)?;
            let mut value = json!({"label": label, "values": answer.value});
            add_remarks(&mut value, &answer);
            Ok(Reply::json("label-values", value))
        })
        .await
}

pub(crate) async fn types(asked: Asked) -> Result<Reply, ApiError> {
    asked
        .answer(Lane::Lists, move |engine, query| {
            let answer = engine.types(query).map_err(query_error)?;
            let types = answer.value.iter().map(type_json);
            let mut value = json!({"types": types.collect::<Vec<Value>>()});
            add_remarks(&mut value, &answer);
            Ok(Reply::json("types", value))
        })
        .await
}
