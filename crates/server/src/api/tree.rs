//! `GET /api/v1/tree` and `GET /api/v1/callers`: call trees to read.

use candela_formats::write_trees_json;
use candela_model::Filter;
use candela_model::FilterError;
use candela_model::FilterKind;
use candela_model::Filters;
use serde_json::json;

use crate::api::asked::Asked;
use crate::api::errors::query_error;
use crate::api::head::answer_head;
use crate::api::head::profiled_ms;
use crate::api_error::ApiError;
use crate::parameters::Parameters;
use crate::reply::Reply;
use crate::turns::Lane;

/// Nodes kept when nothing is said: what somebody reads, not what a screen draws.
const DEFAULT_MAX_NODES: usize = 1000;

/// The call tree from the roots, nested.
pub(crate) async fn tree(asked: Asked) -> Result<Reply, ApiError> {
    let max_nodes = max_nodes_of(&asked.parameters)?;
    asked
        .answer(Lane::Queries, move |engine, query| {
            let mut answer = engine.flame_tree(query).map_err(query_error)?;
            let tree = std::mem::take(&mut answer.value).into_pruned(max_nodes);
            let mut head = answer_head(query, &answer);
            head["schema"] = json!("candela/tree/v1");
            head["total"] = json!(tree.root_total());
            head["samples"] = json!(answer.samples);
            head["profiled_ms"] = json!(answer.profiled_ns.map(profiled_ms));
            head["nodes"] = json!(tree.len());
            head["pruned"] = json!(tree.pruned_nodes);
            Ok(Reply::written(
                "application/json",
                tree.bytes(),
                move |output| Ok(write_trees_json(&head, &[("tree", &tree)], output)?),
            ))
        })
        .await
}

/// What calls a function, and what it calls. Of recursive calls the outermost counts.
pub(crate) async fn callers(asked: Asked) -> Result<Reply, ApiError> {
    let max_nodes = max_nodes_of(&asked.parameters)?;
    let pattern = asked.parameters.one("function").ok_or_else(|| {
        ApiError::bad_request("missing_parameter", "function is missing".to_owned())
            .hint("function=NAME, a regular expression; function=^main$ is main alone")
    })?;
    let function = Filter::new(FilterKind::Focus, pattern).map_err(|error| {
        let FilterError::Pattern { reason, .. } = error else {
            return ApiError::bad_request("bad_filter", error.to_string());
        };
        ApiError::bad_request("bad_filter", format!("function={pattern}: {reason}"))
            .hint("it is a regular expression; put \\ before what is to be taken as it is")
    })?;
    asked
        .answer(Lane::Queries, move |engine, query| {
            let answer = engine.flame_tree_with_rare_stacks(query);
            let answer = answer.map_err(query_error)?;
            let tree = &answer.value;
            let is_wanted = Filters::matching_frames(&function, &tree.frames);
            let callers = tree.callers(|frame| is_wanted[frame.index()]);
            let callees = tree.callees(|frame| is_wanted[frame.index()]);
            let mut head = answer_head(query, &answer);
            head["schema"] = json!("candela/callers/v1");
            head["total"] = json!(tree.root_total());
            head["function_total"] = json!(callers.root_total());
            let [callers, callees] = [callers, callees].map(|side| side.into_pruned(max_nodes));
            let bytes = callers.bytes() + callees.bytes();
            Ok(Reply::written("application/json", bytes, move |output| {
                let sides = [("callers", &callers), ("callees", &callees)];
                Ok(write_trees_json(&head, &sides, output)?)
            }))
        })
        .await
}

fn max_nodes_of(parameters: &Parameters) -> Result<usize, ApiError> {
    let given = parameters.number::<usize>("max_nodes")?;
    Ok(given.unwrap_or(DEFAULT_MAX_NODES))
}
