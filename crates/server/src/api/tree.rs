//! `GET /api/v1/tree` and `GET /api/v1/callers`: call trees to read.

use candela_formats::tree_json;
use candela_model::Filter;
use candela_model::FilterError;
use candela_model::FilterKind;
use candela_model::Filters;
use candela_model::FlameTree;
use serde_json::Value;
use serde_json::json;

use crate::api::asked::Asked;
use crate::api::errors::query_error;
use crate::api::head::answer_head;
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
            let answer = engine.flame_tree(query).map_err(query_error)?;
            let tree = answer.value.pruned(max_nodes);
            let mut head = answer_head(query, &answer);
            head["schema"] = json!("candela/tree/v1");
            head["total"] = json!(tree.root_total());
            head["samples"] = json!(answer.samples);
            head["nodes"] = json!(tree.len());
            head["pruned"] = json!(tree.pruned_nodes);
            Ok(with_trees(&head, &[("tree", &tree)]))
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
            let (callers, callees) = (callers.pruned(max_nodes), callees.pruned(max_nodes));
            Ok(with_trees(
                &head,
                &[("callers", &callers), ("callees", &callees)],
            ))
        })
        .await
}

fn max_nodes_of(parameters: &Parameters) -> Result<usize, ApiError> {
    let given = parameters.number::<usize>("max_nodes")?;
    Ok(given.unwrap_or(DEFAULT_MAX_NODES))
}

/// Trees are spliced in as text: a value of one would nest as deep as the stacks.
fn with_trees(head: &Value, trees: &[(&str, &FlameTree)]) -> Reply {
    let mut text = head.to_string();
    text.pop();
    for (name, tree) in trees {
        text.push_str(&format!(",\"{name}\":{}", tree_json(tree)));
    }
    text.push('}');
    Reply::new("application/json", text.into_bytes())
}
