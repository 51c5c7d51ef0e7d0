//! `GET /api/v1/chart`: stacks in the order of time.

use std::collections::BTreeMap;

use candela_formats::write_columns;
use candela_model::FlameTree;
use candela_query::Answer;
use candela_query::Chart;
use candela_query::ChartLane;
use candela_query::ChartOptions;
use candela_query::Query;
use serde_json::Value;
use serde_json::json;

use crate::api::asked::Asked;
use crate::api::errors::query_error;
use crate::api::head::answer_head;
use crate::api_error::ApiError;
use crate::parameters::Parameters;
use crate::reply::Reply;
use crate::turns::Lane;

/// The schema of both forms.
const SCHEMA: &str = "candela/chart/v1";

/// What the answer looks like.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Shape {
    Json,
    Columns,
}

pub(crate) async fn chart(asked: Asked) -> Result<Reply, ApiError> {
    let shape = Shape::of(&asked.parameters)?;
    let options = ChartOptions {
        lanes: asked.parameters.all("lane_by").map(str::to_owned).collect(),
        max_samples: asked.parameters.number("limit")?,
    };
    asked
        .answer(Lane::Queries, move |engine, query| {
            let answer = engine.chart(query, &options).map_err(query_error)?;
            let partial = answer.partial.clone();
            let reply = match shape {
                Shape::Json => nested(query, &answer),
                Shape::Columns => columns(query, answer),
            };
            Ok(reply.partial(partial.as_deref()))
        })
        .await
}

impl Shape {
    fn of(parameters: &Parameters) -> Result<Self, ApiError> {
        match parameters.one("format").unwrap_or("json") {
            "json" => Ok(Self::Json),
            "columns" => Ok(Self::Columns),
            other => {
                let message = format!("format {other:?} is not known here");
                Err(ApiError::bad_request("unknown_format", message).hint("known: json, columns"))
            }
        }
    }
}

fn head(query: &Query, answer: &Answer<Chart>) -> Value {
    let chart = &answer.value;
    let mut head = answer_head(query, answer);
    head["schema"] = json!(SCHEMA);
    head["from_ns"] = json!(query.range.from_ns);
    head["timed"] = json!(chart.timed);
    head["untimed"] = json!(chart.untimed);
    head["total"] = json!(chart.tree.root_total());
    head["samples"] = json!(answer.samples);
    head
}

fn nested(query: &Query, answer: &Answer<Chart>) -> Reply {
    let chart = &answer.value;
    let mut value = head(query, answer);
    value["stacks"] = stacks(&chart.tree);
    let mut boxes = chart.boxes.iter();
    let lanes = chart.lanes.iter().map(|lane| {
        let boxes = boxes.by_ref().take(lane.boxes).map(|drawn| {
            json!([
                drawn.start_ns - query.range.from_ns,
                drawn.end_ns - drawn.start_ns,
                drawn.node,
                drawn.samples,
                drawn.value
            ])
        });
        let boxes: Vec<Value> = boxes.collect();
        let mut lane = lane_head(lane);
        lane["boxes"] = boxes.into();
        lane
    });
    value["lanes"] = lanes.collect::<Vec<Value>>().into();
    Reply::json("chart", value)
}

fn lane_head(lane: &ChartLane) -> Value {
    json!({
        "labels": lane.labels.iter().collect::<BTreeMap<&str, &str>>(),
        "total": lane.total,
        "samples": lane.samples,
    })
}

/// Each node with the number of its parent; the root's is its own.
fn stacks(tree: &FlameTree) -> Value {
    let mut parents: Vec<usize> = Vec::with_capacity(tree.len());
    let mut path: Vec<usize> = Vec::new();
    let nodes = tree.frame.iter().zip(&tree.depth).enumerate();
    let nodes = nodes.map(|(node, (frame, &depth))| {
        path.truncate(depth.into());
        parents.push(path.last().copied().unwrap_or(node));
        path.push(node);
        let frame = tree.frames.get(*frame);
        let text = |id| tree.frames.strings.get(id);
        json!({
            "parent": parents[node],
            "name": text(frame.name),
            "file": text(frame.file),
            "mapping": text(frame.mapping),
            "kind": frame.kind.as_str(),
        })
    });
    nodes.collect::<Vec<Value>>().into()
}

fn columns(query: &Query, answer: Answer<Chart>) -> Reply {
    let mut header = head(query, &answer);
    let chart = answer.value;
    let lanes = chart.lanes.iter().map(|lane| {
        let mut head = lane_head(lane);
        head["boxes"] = json!(lane.boxes);
        head
    });
    header["lanes"] = lanes.collect::<Vec<Value>>().into();
    let from_ns = query.range.from_ns;
    let boxes = || chart.boxes.iter();
    let further = [
        (
            "box_start",
            boxes().map(|drawn| drawn.start_ns - from_ns).collect(),
        ),
        (
            "box_length",
            boxes().map(|drawn| drawn.end_ns - drawn.start_ns).collect(),
        ),
        ("box_node", boxes().map(|drawn| drawn.node.into()).collect()),
        (
            "box_samples",
            boxes().map(|drawn| drawn.samples.into()).collect(),
        ),
        ("box_value", boxes().map(|drawn| drawn.value).collect()),
    ];
    let bytes = 2 * (chart.tree.bytes() + size_of_val(&*chart.boxes));
    Reply::written("application/vnd.candela.columns", bytes, move |output| {
        Ok(write_columns(&chart.tree, header, further, output)?)
    })
}
