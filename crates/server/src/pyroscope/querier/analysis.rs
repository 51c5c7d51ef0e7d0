//! `GetProfileStats` and `AnalyzeQuery`: what there is, and what a question would cost.

use axum::response::Response;
use candela_model::ProfileType;
use candela_model::Selector;
use candela_query::Estimate;
use candela_query::Query;
use candela_wire::querier::v1::AnalyzeQueryRequest;
use candela_wire::querier::v1::AnalyzeQueryResponse;
use candela_wire::querier::v1::QueryImpact;
use candela_wire::querier::v1::QueryScope;
use candela_wire::types::v1::GetProfileStatsRequest;
use candela_wire::types::v1::GetProfileStatsResponse;

use crate::api::errors::query_error;
use crate::api_error::ApiError;
use crate::app::App;
use crate::pyroscope::querier::points::milliseconds;
use crate::pyroscope::querier::selection::exact_type;
use crate::pyroscope::querier::selection::is_type_label;
use crate::pyroscope::querier::selection::parse_selector;
use crate::pyroscope::querier::selection::range_or_all;
use crate::pyroscope::querier::selection::wants_type;
use crate::pyroscope::querier::selection::without_types;
use crate::rpc::Call;
use crate::turns::Lane;

/// Clients show a column for each kind of component; here the store is all there is.
const COMPONENT: &str = "store";

pub(crate) async fn get_profile_stats(call: Call) -> Response {
    call.answer(Lane::Lists, |app, caller, _: GetProfileStatsRequest, _| {
        let mut times_ns: Option<(i64, i64)> = None;
        for tenant in caller.tenants() {
            let stats = app.engine.stats(tenant).map_err(query_error)?;
            let Some((oldest_ns, newest_ns)) = stats.oldest_ns.zip(stats.newest_ns) else {
                continue;
            };
            let (oldest, newest) = times_ns.unwrap_or((oldest_ns, newest_ns));
            times_ns = Some((oldest.min(oldest_ns), newest.max(newest_ns)));
        }
        let (oldest_ns, newest_ns) = times_ns.unwrap_or_default();
        Ok(GetProfileStatsResponse {
            data_ingested: times_ns.is_some(),
            oldest_profile_time: milliseconds(oldest_ns),
            newest_profile_time: milliseconds(newest_ns),
        })
    })
    .await
}

pub(crate) async fn analyze_query(call: Call) -> Response {
    call.answer(
        Lane::Queries,
        |app, caller, asked: AnalyzeQueryRequest, cancellation| {
            let text = asked.query.trim();
            let (profile_type, selector) = text.split_at(text.find('{').unwrap_or(text.len()));
            let profile_type = match profile_type.trim() {
                "" => None,
                id => Some(exact_type(id)?),
            };
            let selector = if selector.is_empty() { "{}" } else { selector };
            let selector = parse_selector("query", selector)?;
            let query = Query {
                selector: without_types(&selector),
                range: range_or_all(asked.start, asked.end)?,
                cancellation,
                ..caller.query()
            };
            let estimate = estimate(app, query, &selector, profile_type.as_ref())?;
            Ok(AnalyzeQueryResponse {
                query_scopes: vec![QueryScope {
                    component_type: COMPONENT.to_owned(),
                    component_count: 1,
                    block_count: estimate.blocks.saturating_add(estimate.heads),
                    series_count: estimate.series,
                    profile_count: estimate.profiles,
                    sample_count: estimate.samples,
                    index_bytes: estimate.index_bytes,
                    profile_bytes: estimate.sample_bytes,
                    symbol_bytes: estimate.symbol_bytes,
                }],
                query_impact: Some(QueryImpact {
                    total_bytes_in_time_range: estimate.range_bytes,
                    total_queried_series: estimate.series,
                    // A profile that was sent twice is found out when it comes.
                    deduplication_needed: false,
                }),
            })
        },
    )
    .await
}

/// What a question reads about one type, or about all. Matchers that several types match, but not
/// all, are estimated as if all did: nobody merges several types, and the blocks are the same.
fn estimate(
    app: &App,
    query: Query,
    selector: &Selector,
    profile_type: Option<&ProfileType>,
) -> Result<Estimate, ApiError> {
    let mut matchers = selector.matchers().iter();
    let mut pattern = String::new();
    if profile_type.is_some() || matchers.any(|matcher| is_type_label(matcher.name())) {
        let types = app.engine.types(&query).map_err(query_error)?.value;
        let is_wanted = |it: &&ProfileType| {
            wants_type(selector, it) && profile_type.is_none_or(|wanted| wanted == *it)
        };
        match types.iter().filter(is_wanted).collect::<Vec<_>>()[..] {
            [] => return Ok(Estimate::default()),
            [one] => pattern = one.to_string(),
            _ => {}
        }
    }
    let query = Query {
        profile_type: pattern,
        ..query
    };
    let answer = app.engine.estimate(&query);
    Ok(answer.map_err(query_error)?.value)
}
