//! `GET /api/v1/labels`, `/label-values` and `/types`: what there is to ask for.

use axum::extract::State;
use candela_model::ProfileType;
use candela_model::short_name;
use serde_json::Value;
use serde_json::json;

use crate::api::errors::query_error;
use crate::api::head::add_remarks;
use crate::api::selection::query_of;
use crate::api_error::ApiError;
use crate::app::SharedApp;
use crate::parameters::Parameters;
use crate::reply::AcceptsGzip;
use crate::reply::Reply;
use crate::reply::answer;

pub(crate) async fn labels(
    State(app): State<SharedApp>,
    parameters: Parameters,
    accepts: AcceptsGzip,
) -> Result<Reply, ApiError> {
    let query = query_of(&app, &parameters)?;
    let _waiting = query.cancellation.on_drop();
    answer(&app, accepts, move |app| {
        let answer = app.engine.labels(&query).map_err(query_error)?;
        let mut value = json!({"labels": answer.value});
        add_remarks(&mut value, &answer);
        Ok(Reply::json("labels", value))
    })
    .await
}

pub(crate) async fn label_values(
    State(app): State<SharedApp>,
    parameters: Parameters,
    accepts: AcceptsGzip,
) -> Result<Reply, ApiError> {
    let Some(label) = parameters.one("label").map(str::to_owned) else {
        let error = ApiError::bad_request("no_label", "label: which label's values?");
        return Err(error.hint("/api/v1/labels lists the names"));
    };
    let query = query_of(&app, &parameters)?;
    let _waiting = query.cancellation.on_drop();
    answer(&app, accepts, move |app| {
        let answer = app
            .engine
            .label_values(&query, &label)
            .map_err(query_error)?;
        let mut value = json!({"label": label, "values": answer.value});
        add_remarks(&mut value, &answer);
        Ok(Reply::json("label-values", value))
    })
    .await
}

pub(crate) async fn types(
    State(app): State<SharedApp>,
    parameters: Parameters,
    accepts: AcceptsGzip,
) -> Result<Reply, ApiError> {
    let query = query_of(&app, &parameters)?;
    let _waiting = query.cancellation.on_drop();
    answer(&app, accepts, move |app| {
        let answer = app.engine.types(&query).map_err(query_error)?;
        let types = answer.value.iter().map(profile_type);
        let mut value = json!({"types": types.collect::<Vec<Value>>()});
        add_remarks(&mut value, &answer);
        Ok(Reply::json("types", value))
    })
    .await
}

fn profile_type(profile_type: &ProfileType) -> Value {
    json!({
        "id": profile_type.to_string(),
        "name": profile_type.name,
        "sample_type": profile_type.sample_type,
        "sample_unit": profile_type.sample_unit,
        "period_type": profile_type.period_type,
        "period_unit": profile_type.period_unit,
        "short": short_name(profile_type),
    })
}
