//! `GET /pyroscope/render`, `render-diff` and `label-values`: what Drilldown draws
//! (pyroscope-api 2.5).

use std::collections::BTreeMap;

use axum::extract::State;
use candela_formats::FlameDocument;
use candela_formats::Flamebearer;
use candela_formats::FlamebearerDiff;
use candela_formats::Graph;
use candela_formats::Timeline;
use candela_model::ProfileType;
use candela_model::Selector;
use candela_query::Aggregation;
use candela_query::Cancellation;
use candela_query::LabeledPoints;
use candela_query::PointValue;
use candela_query::Query;
use candela_query::SeriesOptions;
use candela_store::TimeRange;

use crate::api::errors::query_error;
use crate::api_error::ApiError;
use crate::app::App;
use crate::app::SharedApp;
use crate::app::compute;
use crate::auth::Caller;
use crate::parameters::Parameters;
use crate::pyroscope::attime::parse_attime;
use crate::pyroscope::querier::merge::dot;
use crate::pyroscope::querier::names::values_of;
use crate::pyroscope::querier::selection::exact_type;
use crate::pyroscope::querier::selection::max_nodes;
use crate::pyroscope::querier::selection::parse_selector;
use crate::pyroscope::querier::selection::without_types;
use crate::reply::AcceptsGzip;
use crate::reply::Reply;
use crate::turns::Lane;

const NANOSECONDS_PER_SECOND: i64 = 1_000_000_000;
/// Points of a timeline, at the most.
const POINTS: i64 = 1500;
/// Lines of a `groupBy`, at the most: nobody tells more of them apart, and with all their points,
/// those of nothing included, so many take 12 MB.
const MOST_GROUPS: usize = 1000;
/// Steps of a timeline that read well, seconds; the first is the shortest.
const STEPS_S: [i64; 14] = [
    15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 10_800, 21_600, 43_200, 86_400,
];

pub(crate) async fn render(
    State(app): State<SharedApp>,
    caller: Caller,
    parameters: Parameters,
    accepts: AcceptsGzip,
) -> Result<Reply, ApiError> {
    let names = ["query", "from", "until"];
    let query = query_of(&app, &caller, &parameters, names)?;
    let nodes = nodes_of(&parameters)?;
    let is_dot = parameters.one("format") == Some("dot");
    let group_by = parameters.one("groupBy").map(str::to_owned);
    let _waiting = query.cancellation.on_drop();
    compute(&app, &caller, Lane::Queries, move |app| {
        if is_dot {
            let nodes = nodes.and_then(|nodes| i64::try_from(nodes).ok());
            let text = dot(app, &query, nodes)?;
            return Ok(
                Reply::new("text/plain; charset=utf-8", text.into_bytes()).compressed(accepts)
            );
        }
        let answer = app.engine.flame_tree(&query).map_err(query_error)?;
        let profile_type = type_of(&query, answer.profile_type.clone())?;
        let nodes = max_nodes(nodes.and_then(|nodes| i64::try_from(nodes).ok()))?;
        let graph = Flamebearer::new(&answer.value, nodes).map_err(ApiError::unwritten)?;
        let groups = group_by.map(|label| timelines(app, &query, Some(label)));
        let groups = groups.transpose()?;
        let left_out = groups.as_ref().and_then(|groups| groups.left_out.clone());
        let document = FlameDocument {
            profile_type: &profile_type,
            graph: Graph::Single(&graph),
            timeline: timelines(app, &query, None)?.by_value.remove("*"),
            groups: groups.map(|groups| groups.by_value),
        };
        let partial = answer.partial.or(left_out);
        Ok(json(&document)?
            .partial(partial.as_deref())
            .compressed(accepts))
    })
    .await
}

pub(crate) async fn render_diff(
    State(app): State<SharedApp>,
    caller: Caller,
    parameters: Parameters,
    accepts: AcceptsGzip,
) -> Result<Reply, ApiError> {
    let left = ["leftQuery", "leftFrom", "leftUntil"];
    let right = ["rightQuery", "rightFrom", "rightUntil"];
    let left = query_of(&app, &caller, &parameters, left)?;
    let right = Query {
        cancellation: left.cancellation.clone(),
        ..query_of(&app, &caller, &parameters, right)?
    };
    if left.profile_type != right.profile_type {
        let message = format!(
            "the profile types differ: {} and {}",
            left.profile_type, right.profile_type
        );
        return Err(ApiError::bad_request("bad_type", message));
    }
    let nodes = nodes_of(&parameters)?;
    let _waiting = left.cancellation.on_drop();
    compute(&app, &caller, Lane::Queries, move |app| {
        let tree = |query| app.engine.flame_tree(query).map_err(query_error);
        let (left_tree, right_tree) = (tree(&left)?, tree(&right)?);
        let profile_type = type_of(&left, left_tree.profile_type.clone())?;
        let nodes = max_nodes(nodes.and_then(|nodes| i64::try_from(nodes).ok()))?;
        let graph = FlamebearerDiff::new(&left_tree.value, &right_tree.value, nodes);
        let graph = graph.map_err(ApiError::unwritten)?;
        let document = FlameDocument {
            profile_type: &profile_type,
            graph: Graph::Double(&graph),
            timeline: None,
            groups: None,
        };
        let partial = left_tree.partial.or(right_tree.partial);
        Ok(json(&document)?
            .partial(partial.as_deref())
            .compressed(accepts))
    })
    .await
}

/// Values of a label; of `__name__` the profile types. Upstream leaves the range out and answers
/// nothing for other labels; ours are those of all that is stored.
pub(crate) async fn label_values(
    State(app): State<SharedApp>,
    caller: Caller,
    parameters: Parameters,
    accepts: AcceptsGzip,
) -> Result<Reply, ApiError> {
    let label = parameters
        .one("label")
        .ok_or_else(|| ApiError::bad_request("missing_parameter", "label is missing".to_owned()))?;
    let label = if label == "__name__" {
        "__profile_type__".to_owned()
    } else {
        label.to_owned()
    };
    let query = Query {
        cancellation: Cancellation::default(),
        ..caller.query()
    };
    let _waiting = query.cancellation.on_drop();
    compute(&app, &caller, Lane::Lists, move |app| {
        let values = values_of(app, &query, &Selector::default(), &label)?;
        let text = serde_json::json!(values).to_string();
        Ok(Reply::new("application/json", text.into_bytes()).compressed(accepts))
    })
    .await
}

/// The query of three parameters: `TYPE{MATCHERS}`, and the range.
fn query_of(
    app: &App,
    caller: &Caller,
    parameters: &Parameters,
    [query, from, until]: [&str; 3],
) -> Result<Query, ApiError> {
    let text = parameters.one(query).ok_or_else(|| {
        ApiError::bad_request("missing_parameter", format!("{query} is missing"))
            .hint("it looks like process_cpu:cpu:nanoseconds:cpu:nanoseconds{service_name=\"api\"}")
    })?;
    let start = text.find('{').unwrap_or(text.len());
    let (profile_type, selector) = text.split_at(start);
    let selector = if selector.is_empty() { "{}" } else { selector };
    let now_ns = app.clock.now_ns();
    let time = |name| {
        let text = parameters.one(name).unwrap_or("now");
        parse_attime(text, now_ns)
            .map_err(|error| ApiError::bad_request("bad_time", format!("{name}: {error}")))
    };
    let range = TimeRange {
        from_ns: time(from)?,
        to_ns: time(until)?,
    };
    if range.from_ns < 0 || range.to_ns < 0 {
        let message = format!("{from} and {until} must not be before 1970");
        return Err(ApiError::bad_request("bad_range", message));
    }
    if range.from_ns == 0 || range.to_ns == 0 || range.from_ns > range.to_ns {
        let message = format!("{from} and {until} are no range");
        return Err(ApiError::bad_request("bad_range", message));
    }
    let aggregation = match parameters.one("aggregation") {
        Some("avg") => Some(Aggregation::Average),
        Some("sum") => Some(Aggregation::Sum),
        _ => None,
    };
    Ok(Query {
        selector: without_types(&parse_selector(query, selector)?),
        profile_type: exact_type(profile_type.trim())?.to_string(),
        range,
        aggregation,
        ..caller.query()
    })
}

/// As upstream: what is no number of nodes is the usual one.
fn nodes_of(parameters: &Parameters) -> Result<Option<usize>, ApiError> {
    let text = parameters
        .one("max-nodes")
        .or_else(|| parameters.one("maxNodes"));
    let nodes = text.and_then(|text| text.parse().ok());
    let nodes = nodes.filter(|&nodes| nodes > 0);
    let checked = nodes.and_then(|nodes: usize| i64::try_from(nodes).ok());
    max_nodes(checked).map(|_| nodes)
}

fn type_of(query: &Query, found: Option<ProfileType>) -> Result<ProfileType, ApiError> {
    found.map_or_else(|| exact_type(&query.profile_type), Ok)
}

/// Values over time by the value of a label; of everything under `*`.
struct Timelines {
    by_value: BTreeMap<String, Timeline>,
    /// What is not there, in words.
    left_out: Option<String>,
}

fn timelines(app: &App, query: &Query, label: Option<String>) -> Result<Timelines, ApiError> {
    let length_ns = query.range.to_ns.saturating_sub(query.range.from_ns);
    let length_s = length_ns / NANOSECONDS_PER_SECOND;
    let fits = |step: &i64| length_s / step <= POINTS;
    let step_s = STEPS_S.into_iter().find(fits).unwrap_or(length_s / POINTS);
    let options = SeriesOptions {
        step_ns: Some(step_s.saturating_mul(NANOSECONDS_PER_SECOND)),
        group_by: label.into_iter().collect(),
        origin_ns: None,
    };
    let table = app.engine.series(query, &options).map_err(query_error)?;
    let steps = usize::try_from(length_s / step_s + 1).unwrap_or(0);
    let lines = table.value.series;
    let left_out = (lines.len() > MOST_GROUPS).then(|| {
        let count = lines.len();
        format!("of {count} groups the {MOST_GROUPS} heaviest are shown")
    });
    let mut by_value: BTreeMap<String, Timeline> = BTreeMap::new();
    for line in heaviest(lines, MOST_GROUPS) {
        let value = line.labels.iter().next().map(|(_, value)| value.to_owned());
        let timeline = timeline(&line, query.range.from_ns, step_s, steps);
        by_value.insert(value.unwrap_or_else(|| "*".to_owned()), timeline);
    }
    if by_value.is_empty() {
        let empty = LabeledPoints::default();
        by_value.insert(
            "*".to_owned(),
            timeline(&empty, query.range.from_ns, step_s, steps),
        );
    }
    Ok(Timelines { by_value, left_out })
}

/// The lines with the greatest sums, of equal ones the first.
fn heaviest(lines: Vec<LabeledPoints>, most: usize) -> Vec<LabeledPoints> {
    let weight = |line: &LabeledPoints| -> f64 {
        let values = line.points.iter().map(|&(_, value)| match value {
            PointValue::Whole(whole) => whole as f64,
            PointValue::Fraction(fraction) => fraction,
        });
        values.sum()
    };
    let mut weighed: Vec<(f64, LabeledPoints)> = lines
        .into_iter()
        .map(|line| (weight(&line), line))
        .collect();
    weighed.sort_by(|left, right| right.0.total_cmp(&left.0));
    weighed.truncate(most);
    weighed.into_iter().map(|(_, line)| line).collect()
}

fn timeline(line: &LabeledPoints, from_ns: i64, step_s: i64, steps: usize) -> Timeline {
    let start_time = from_ns / NANOSECONDS_PER_SECOND / step_s * step_s;
    let mut samples = vec![0; steps];
    for &(time_ns, value) in &line.points {
        let position = (time_ns / NANOSECONDS_PER_SECOND - start_time) / step_s;
        let slot = usize::try_from(position).ok();
        if let Some(slot) = slot.and_then(|position| samples.get_mut(position)) {
            *slot = match value {
                PointValue::Whole(whole) => whole,
                PointValue::Fraction(fraction) => fraction.round() as i64,
            };
        }
    }
    Timeline {
        start_time,
        samples,
        duration_delta: step_s,
        watermarks: BTreeMap::new(),
    }
}

fn json(document: &FlameDocument<'_>) -> Result<Reply, ApiError> {
    let bytes = serde_json::to_vec(document).map_err(ApiError::unwritten)?;
    Ok(Reply::new("application/json", bytes))
}
