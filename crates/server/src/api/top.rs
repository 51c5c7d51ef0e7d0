//! `GET /api/v1/top`.

use candela_model::FlameTree;
use candela_model::FunctionRow;
use serde_json::Value;
use serde_json::json;

use crate::api::asked::Asked;
use crate::api::errors::query_error;
use crate::api::head::answer_head;
use crate::api::head::profiled_ms;
use crate::api_error::ApiError;
use crate::parameters::Parameters;
use crate::reply::Reply;
use crate::turns::Lane;

const DEFAULT_LIMIT: usize = 100;

/// By which value the rows are ordered, and so which the limit cuts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Order {
    SelfValue,
    Total,
}

pub(crate) async fn top(asked: Asked) -> Result<Reply, ApiError> {
    let order = Order::of(&asked.parameters)?;
    let limit = asked
        .parameters
        .number::<usize>("limit")?
        .unwrap_or(DEFAULT_LIMIT);
    asked
        .answer(Lane::Queries, move |engine, query| {
            let answer = engine.flame_tree(query).map_err(query_error)?;
            let tree = &answer.value;
            let mut rows = tree.function_table();
            if order == Order::Total {
                // Stable: equal totals stay in the order of their self values.
                rows.sort_by_key(|row| std::cmp::Reverse(row.total));
            }
            let count = rows.len();
            if limit != 0 {
                rows.truncate(limit);
            }
            let mut value = answer_head(query, &answer);
            value["total"] = json!(tree.root_total());
            value["samples"] = json!(answer.samples);
            value["profiled_ms"] = json!(answer.profiled_ns.map(profiled_ms));
            value["truncated"] = json!({"shown": rows.len(), "total": count});
            let functions = rows.iter().map(|row| function(tree, row));
            value["functions"] = functions.collect::<Vec<Value>>().into();
            Ok(Reply::json("top", value).partial(answer.partial.as_deref()))
        })
        .await
}

fn function(tree: &FlameTree, row: &FunctionRow) -> Value {
    let frame = tree.frames.get(row.frame);
    let text = |id| tree.frames.strings.get(id);
    json!({
        "name": text(frame.name),
        "file": text(frame.file),
        "mapping": text(frame.mapping),
        "kind": frame.kind.as_str(),
        "self": row.self_value,
        "total": row.total,
    })
}

impl Order {
    fn of(parameters: &Parameters) -> Result<Self, ApiError> {
        match parameters.one("sort").unwrap_or("self") {
            "self" => Ok(Self::SelfValue),
            "total" => Ok(Self::Total),
            other => {
                let message = format!("sort: {other:?} is neither self nor total");
                Err(ApiError::bad_request("bad_sort", message))
            }
        }
    }
}
