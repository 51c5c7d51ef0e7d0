//! `GET /api/v1/diff`: two selections side by side.

use candela_formats::diff_json;
use candela_model::FlameTree;
use candela_model::ProfileType;
use candela_query::Answer;
use candela_query::Engine;
use candela_query::Query;
use serde_json::Value;
use serde_json::json;

use crate::api::asked::Asked;
use crate::api::errors::query_error;
use crate::api::head::add_remarks;
use crate::api::head::answer_head;
use crate::api::head::milliseconds;
use crate::api_error::ApiError;
use crate::reply::Reply;

const DEFAULT_MAX_NODES: usize = 20_000;
const DEFAULT_LIMIT: usize = 100;

/// The union of two trees as columns of numbers, and a table of functions by their change.
pub(crate) async fn diff(asked: Asked) -> Result<Reply, ApiError> {
    let base = asked.base_query()?;
    let max_nodes = asked.parameters.number::<usize>("max_nodes")?;
    let limit = asked
        .parameters
        .number::<usize>("limit")?
        .unwrap_or(DEFAULT_LIMIT);
    asked
        .answer(move |app, query| {
            let mut after = app.engine.flame_tree(query).map_err(query_error)?;
            let before = before_of(&app.engine, &base, after.profile_type.as_ref())?;
            if after.profile_type.is_none() {
                after.profile_type.clone_from(&before.profile_type);
            }
            let max_nodes = max_nodes.unwrap_or(DEFAULT_MAX_NODES);
            let changes = diff_json(&before.value, &after.value, limit, max_nodes);
            let mut value = answer_head(query, &after);
            value["schema"] = json!("candela/diff/v1");
            value["before"] = side(&base, before.value.root_total(), before.samples);
            value["after"] = side(query, after.value.root_total(), after.samples);
            add_remarks(&mut value["before"], &before);
            value["truncated"] = json!({
                "shown": changes.functions.len(),
                "total": changes.function_count,
            });
            value["functions"] = changes.functions.into();
            value["tree"] = changes.tree;
            Ok(Reply::json("diff", value))
        })
        .await
}

/// The tree to compare with one of this type. A short name may stand for another type there, and
/// bytes compare with nothing but bytes.
fn before_of(
    engine: &Engine,
    base: &Query,
    of_after: Option<&ProfileType>,
) -> Result<Answer<FlameTree>, ApiError> {
    let Some(wanted) = of_after else {
        return engine.flame_tree(base).map_err(query_error);
    };
    let same_type = Query {
        profile_type: wanted.to_string(),
        ..base.clone()
    };
    let before = engine.flame_tree(&same_type).map_err(query_error)?;
    if before.profile_type.is_some() {
        return Ok(before);
    }
    let Some(other) = engine.profile_type(base).map_err(query_error)? else {
        return Ok(before);
    };
    let pattern = &base.profile_type;
    let message = format!("type: {pattern} is {wanted} in the selection and {other} in its base");
    Err(ApiError::bad_request("different_types", message)
        .hint("give the identifier of a type that both have"))
}

fn side(query: &Query, total: i64, samples: Option<u64>) -> Value {
    json!({
        "query": query.selector.to_string(),
        "from": milliseconds(query.range.from_ns),
        "to": milliseconds(query.range.to_ns),
        "total": total,
        "samples": samples,
    })
}
