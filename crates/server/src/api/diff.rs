//! `GET /api/v1/diff`: two selections side by side.

use candela_formats::DiffTable;
use candela_model::FlameDiff;
use candela_model::FlameTree;
use candela_model::ProfileType;
use candela_query::Answer;
use candela_query::Engine;
use candela_query::Query;

use crate::api::asked::Asked;
use crate::api::comparison::ComparisonAsked;
use crate::api::diff_answer::Compared;
use crate::api::diff_answer::Drawing;
use crate::api::diff_answer::Shape;
use crate::api::errors::query_error;
use crate::api::pprof::type_of_empty;
use crate::api_error::ApiError;
use crate::reply::Reply;
use crate::turns::Lane;

const DEFAULT_MAX_NODES: usize = 20_000;
const DEFAULT_LIMIT: usize = 100;

/// The union of two trees as columns of numbers, and a table of functions by their change, with how
/// sure each is.
pub(crate) async fn diff(asked: Asked) -> Result<Reply, ApiError> {
    let base = asked.base_query()?;
    let comparison = ComparisonAsked::of(&asked.parameters)?;
    let shape = Shape::of(&asked.parameters)?;
    let drawing = Drawing::of(&asked.parameters)?;
    let max_nodes = asked.parameters.number::<usize>("max_nodes")?;
    let limit = asked
        .parameters
        .number::<usize>("limit")?
        .unwrap_or(DEFAULT_LIMIT);
    asked
        .answer(Lane::Queries, move |engine, query| {
            let mut after = engine.flame_tree(query).map_err(query_error)?;
            let before = before_of(engine, &base, after.profile_type.as_ref())?;
            if after.profile_type.is_none() {
                after.profile_type.clone_from(&before.profile_type);
            }
            let of_type = |query: &Query| match &after.profile_type {
                Some(profile_type) => of_type(query, profile_type),
                None => query.clone(),
            };
            let (old, new) = (&before.value, &after.value);
            let union = union_of(query, old, new, max_nodes.unwrap_or(DEFAULT_MAX_NODES))?;
            let sides = [&base, query].map(of_type);
            let samples = comparison.samples(engine, &sides[0], &sides[1], &union)?;
            let table = DiffTable::new(old, new, &samples, &comparison.options);
            let compared = Compared {
                profile_type: type_of_empty(query, after.profile_type.as_ref()),
                base,
                query: query.clone(),
                before,
                after,
                union,
                table,
            };
            compared.reply(shape, drawing, limit)
        })
        .await
}

/// The union of two trees, in what they leave of the query's memory.
fn union_of(
    query: &Query,
    old: &FlameTree,
    new: &FlameTree,
    max_nodes: usize,
) -> Result<FlameDiff, ApiError> {
    let most = usize::try_from(query.budget.max_memory).unwrap_or(usize::MAX);
    let left = most.saturating_sub(old.bytes() + new.bytes());
    FlameDiff::within(old, new, max_nodes, left).map_err(|error| {
        let message = format!(
            "{error}: {} and {}, in {most} bytes of memory",
            old.len(),
            new.len()
        );
        ApiError::unprocessable("over_budget", message)
            .hint("compare shorter time ranges or fewer series, or filter: focus=NAME")
    })
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
    let before = engine
        .flame_tree(&of_type(base, wanted))
        .map_err(query_error)?;
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

fn of_type(query: &Query, profile_type: &ProfileType) -> Query {
    Query {
        profile_type: profile_type.to_string(),
        ..query.clone()
    }
}
