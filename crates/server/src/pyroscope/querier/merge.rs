//! `SelectMergeStacktraces`, `SelectMergeSpanProfile`, `SelectMergeProfile` and `Diff`.

use axum::http::StatusCode;
use axum::response::Response;
use candela_formats::DotOptions;
use candela_formats::Flamebearer;
use candela_formats::FlamebearerDiff;
use candela_formats::PprofOptions;
use candela_formats::tree_bytes;
use candela_formats::write_dot;
use candela_formats::write_pprof;
use candela_model::FlameTree;
use candela_model::Labels;
use candela_model::PgoOptions;
use candela_model::Profile as ModelProfile;
use candela_model::ProfileSeries;
use candela_query::Cancellation;
use candela_query::Query;
use candela_wire::google::v1::Profile;
use candela_wire::querier::v1::DiffRequest;
use candela_wire::querier::v1::DiffResponse;
use candela_wire::querier::v1::FlameGraph;
use candela_wire::querier::v1::FlameGraphDiff;
use candela_wire::querier::v1::Level;
use candela_wire::querier::v1::PprofProfile;
use candela_wire::querier::v1::ProfileFormat;
use candela_wire::querier::v1::SelectMergeProfileRequest;
use candela_wire::querier::v1::SelectMergeSpanProfileRequest;
use candela_wire::querier::v1::SelectMergeSpanProfileResponse;
use candela_wire::querier::v1::SelectMergeStacktracesRequest;
use candela_wire::querier::v1::SelectMergeStacktracesResponse;
use prost::Message;

use crate::api::errors::query_error;
use crate::api_error::ApiError;
use crate::app::App;
use crate::auth::Caller;
use crate::pyroscope::querier::selection::Selected;
use crate::pyroscope::querier::selection::asked_nodes;
use crate::pyroscope::querier::selection::call_site_filters;
use crate::pyroscope::querier::selection::exact_type;
use crate::pyroscope::querier::selection::link_selection;
use crate::pyroscope::querier::selection::max_nodes;
use crate::pyroscope::querier::selection::profile_keys;
use crate::rpc::Answer;
use crate::rpc::Call;
use crate::rpc::Codec;
use crate::turns::Lane;

/// A pprof that is written already, and is not taken apart unless the client reads JSON.
struct WrittenPprof(Vec<u8>);

/// What is left of a profile.
struct Shape {
    /// Nodes of the tree of its stacks; all when 0.
    max_nodes: usize,
    /// For compilers.
    pgo: Option<PgoOptions>,
}

impl Shape {
    /// # Errors
    /// 400 for too many nodes.
    fn of(asked: &SelectMergeStacktracesRequest) -> Result<Self, ApiError> {
        let selector = asked.stack_trace_selector.as_ref();
        let pgo = selector.and_then(|selector| selector.go_pgo.as_ref());
        Ok(Self {
            max_nodes: asked_nodes(asked.max_nodes)?.unwrap_or(0),
            pgo: pgo.map(|pgo| PgoOptions {
                keep_locations: pgo.keep_locations as usize,
                aggregate_callees: pgo.aggregate_callees,
            }),
        })
    }
}

pub(crate) async fn select_merge_stacktraces(call: Call) -> Response {
    call.answer(
        Lane::Queries,
        |app, caller, asked: SelectMergeStacktracesRequest, cancellation| {
            if asked
                .r#async
                .as_ref()
                .is_some_and(|request| request.r#type != 0)
            {
                let message = "asynchronous queries are not part of this server";
                let status = StatusCode::NOT_IMPLEMENTED;
                return Err(ApiError::new(status, "not_implemented", message)
                    .hint("answers come at once; ask without async"));
            }
            let nodes = max_nodes(asked.max_nodes)?;
            let query = stacktraces_query(caller, &asked, cancellation)?;
            let mut response = SelectMergeStacktracesResponse::default();
            match asked.format() {
                ProfileFormat::Unspecified | ProfileFormat::Flamegraph => {
                    response.flamegraph = Some(flame_graph(&tree(app, &query)?, nodes)?);
                }
                ProfileFormat::Tree => {
                    response.tree =
                        tree_bytes(&tree(app, &query)?, nodes).map_err(ApiError::unwritten)?;
                }
                ProfileFormat::Dot => response.dot = dot(app, &query, asked.max_nodes)?,
                ProfileFormat::Pprof => {
                    let bytes = pprof(app, &query, &Shape::of(&asked)?)?;
                    let profile = Profile::decode(&bytes[..]).map_err(|error| {
                        tracing::error!("a pprof that was written cannot be read: {error}");
                        ApiError::internal("the profile cannot be read")
                    })?;
                    response.pprof = Some(PprofProfile {
                        profile: Some(profile),
                    });
                }
            }
            Ok(response)
        },
    )
    .await
}

pub(crate) async fn select_merge_span_profile(call: Call) -> Response {
    call.answer(
        Lane::Queries,
        |app, caller, asked: SelectMergeSpanProfileRequest, cancellation| {
            let nodes = max_nodes(asked.max_nodes)?;
            let format = asked.format();
            let query = stacktraces_query(
                caller,
                &SelectMergeStacktracesRequest {
                    profile_type_id: asked.profile_type_id,
                    label_selector: asked.label_selector,
                    start: asked.start,
                    end: asked.end,
                    span_selector: asked.span_selector,
                    ..SelectMergeStacktracesRequest::default()
                },
                cancellation,
            )?;
            let tree = tree(app, &query)?;
            let mut response = SelectMergeSpanProfileResponse::default();
            if format == ProfileFormat::Tree {
                response.tree = tree_bytes(&tree, nodes).map_err(ApiError::unwritten)?;
            } else {
                response.flamegraph = Some(flame_graph(&tree, nodes)?);
            }
            Ok(response)
        },
    )
    .await
}

pub(crate) async fn select_merge_profile(call: Call) -> Response {
    call.answer(
        Lane::Queries,
        |app, caller, asked: SelectMergeProfileRequest, cancellation| {
            let asked = SelectMergeStacktracesRequest {
                profile_type_id: asked.profile_type_id,
                label_selector: asked.label_selector,
                start: asked.start,
                end: asked.end,
                max_nodes: asked.max_nodes,
                stack_trace_selector: asked.stack_trace_selector,
                profile_id_selector: asked.profile_id_selector,
                trace_id_selector: asked.trace_id_selector,
                ..SelectMergeStacktracesRequest::default()
            };
            let shape = Shape::of(&asked)?;
            let query = stacktraces_query(caller, &asked, cancellation)?;
            Ok(WrittenPprof(pprof(app, &query, &shape)?))
        },
    )
    .await
}

pub(crate) async fn diff(call: Call) -> Response {
    call.answer(
        Lane::Queries,
        |app, caller, asked: DiffRequest, cancellation| {
            let side = |name: &str, side: Option<SelectMergeStacktracesRequest>| {
                side.ok_or_else(|| {
                    ApiError::bad_request("missing_parameter", format!("{name} is missing"))
                })
            };
            let (left, right) = (side("left", asked.left)?, side("right", asked.right)?);
            let nodes = max_nodes(left.max_nodes)?.max(max_nodes(right.max_nodes)?);
            let left = stacktraces_query(caller, &left, cancellation.clone())?;
            let right = stacktraces_query(caller, &right, cancellation)?;
            let (left, right) = (tree(app, &left)?, tree(app, &right)?);
            let graph = FlamebearerDiff::new(&left, &right, nodes).map_err(ApiError::unwritten)?;
            Ok(DiffResponse {
                flamegraph: Some(FlameGraphDiff {
                    names: graph.names,
                    levels: levels(graph.levels),
                    total: graph.total,
                    max_self: graph.max_self,
                    left_ticks: graph.left_ticks,
                    right_ticks: graph.right_ticks,
                }),
            })
        },
    )
    .await
}

/// The query of a question about stacks.
fn stacktraces_query(
    caller: &Caller,
    asked: &SelectMergeStacktracesRequest,
    cancellation: Cancellation,
) -> Result<Query, ApiError> {
    if !asked.span_selector.is_empty() && !asked.trace_id_selector.is_empty() {
        let message = "spanSelector and traceIdSelector cannot be combined";
        return Err(ApiError::bad_request("bad_selector", message));
    }
    let selected = Selected {
        profile_type: &asked.profile_type_id,
        selector: &asked.label_selector,
        start: asked.start,
        end: asked.end,
    };
    Ok(Query {
        filters: call_site_filters(asked.stack_trace_selector.as_ref())?,
        links: link_selection(&asked.trace_id_selector, &asked.span_selector)?,
        profiles: profile_keys(&asked.profile_id_selector)?,
        ..selected.query(caller, cancellation)?
    })
}

fn tree(app: &App, query: &Query) -> Result<FlameTree, ApiError> {
    let answer = app.engine.flame_tree(query).map_err(query_error)?;
    Ok(answer.value)
}

fn flame_graph(tree: &FlameTree, max_nodes: usize) -> Result<FlameGraph, ApiError> {
    let graph = Flamebearer::new(tree, max_nodes).map_err(ApiError::unwritten)?;
    Ok(FlameGraph {
        names: graph.names,
        levels: levels(graph.levels),
        total: graph.total,
        max_self: graph.max_self,
    })
}

fn levels(levels: Vec<Vec<i64>>) -> Vec<Level> {
    let levels = levels.into_iter();
    levels.map(|values| Level { values }).collect()
}

/// The graph in Graphviz's language; nothing without data.
pub(crate) fn dot(app: &App, query: &Query, max_nodes: Option<i64>) -> Result<String, ApiError> {
    let answer = app.engine.flame_tree(query).map_err(query_error)?;
    let (Some(profile_type), false) = (&answer.profile_type, answer.value.is_empty()) else {
        return Ok(String::new());
    };
    let asked = max_nodes.and_then(|nodes| usize::try_from(nodes).ok());
    let mut options = DotOptions::default();
    if let Some(nodes) = asked.filter(|&nodes| nodes > 0) {
        options.max_nodes = nodes;
    }
    let mut bytes = Vec::new();
    write_dot(&answer.value, profile_type, &options, &mut bytes).map_err(ApiError::unwritten)?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

/// The merged profile, not compressed: the transport does that.
fn pprof(app: &App, query: &Query, shape: &Shape) -> Result<Vec<u8>, ApiError> {
    let answer = app.engine.profile(query).map_err(query_error)?;
    let mut profile: ModelProfile = answer.value;
    if let Some(pgo) = &shape.pgo {
        profile.reduce_for_pgo(pgo);
    }
    // Last: it is a promise about what the client gets.
    profile.prune_stacks(shape.max_nodes);
    if profile.series.is_empty() {
        let profile_type = exact_type(&query.profile_type)?;
        let empty = ProfileSeries::new(Labels::default(), profile_type);
        profile.series.push(empty);
    }
    let options = PprofOptions {
        compress: false,
        comments: answer.partial.into_iter().collect(),
        ..PprofOptions::default()
    };
    let mut bytes = Vec::new();
    write_pprof(&profile, &mut bytes, &options).map_err(ApiError::unwritten)?;
    Ok(bytes)
}

impl Answer for WrittenPprof {
    fn encode(&self, codec: Codec) -> Result<Vec<u8>, ApiError> {
        match codec {
            Codec::Protobuf => Ok(self.0.clone()),
            Codec::Json => {
                let profile = Profile::decode(&self.0[..]).map_err(|error| {
                    tracing::error!("a pprof that was written cannot be read: {error}");
                    ApiError::internal("the profile cannot be read")
                })?;
                Answer::encode(&profile, codec)
            }
        }
    }
}
