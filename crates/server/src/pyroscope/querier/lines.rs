//! `SelectSeries`: values over time.

use axum::response::Response;
use candela_model::Labels;
use candela_query::Aggregation;
use candela_query::PointValue;
use candela_query::Query;
use candela_query::SeriesOptions;
use candela_query::SeriesTable;
use candela_wire::querier::v1::SelectSeriesRequest;
use candela_wire::querier::v1::SelectSeriesResponse;
use candela_wire::types::v1::LabelPair;
use candela_wire::types::v1::Point;
use candela_wire::types::v1::Series;
use candela_wire::types::v1::TimeSeriesAggregationType;

use crate::api::errors::query_error;
use crate::api_error::ApiError;
use crate::pyroscope::querier::selection::Selected;
use crate::pyroscope::querier::selection::call_site_filters;
use crate::rpc::Call;

const NANOSECONDS_PER_SECOND: f64 = 1e9;
const NANOSECONDS_PER_MILLISECOND: i64 = 1_000_000;
/// The shortest step, seconds.
const SHORTEST_STEP: f64 = 0.001;

pub(crate) async fn select_series(call: Call) -> Response {
    call.answer(|app, caller, asked: SelectSeriesRequest, cancellation| {
        let selected = Selected {
            profile_type: &asked.profile_type_id,
            selector: &asked.label_selector,
            start: asked.start,
            end: asked.end,
        };
        let query = Query {
            filters: call_site_filters(asked.stack_trace_selector.as_ref())?,
            aggregation: asked
                .aggregation
                .is_some()
                .then(|| match asked.aggregation() {
                    TimeSeriesAggregationType::Sum => Aggregation::Sum,
                    TimeSeriesAggregationType::Average => Aggregation::Average,
                }),
            ..selected.query(caller, cancellation)?
        };
        let options = SeriesOptions {
            step_ns: Some(step_ns(asked.step)?),
            group_by: asked.group_by.clone(),
            origin_ns: None,
        };
        let answer = app.engine.series(&query, &options).map_err(query_error)?;
        Ok(SelectSeriesResponse {
            series: heaviest(&answer.value, asked.limit),
        })
    })
    .await
}

/// # Errors
/// 400 for what is no step.
fn step_ns(seconds: f64) -> Result<i64, ApiError> {
    if !(SHORTEST_STEP..1e9).contains(&seconds) {
        let message = format!("step: {seconds} s; the shortest is {SHORTEST_STEP} s");
        return Err(ApiError::bad_request("bad_step", message));
    }
    Ok((seconds * NANOSECONDS_PER_SECOND).round() as i64)
}

/// The lines by their totals, the heaviest first, of equal ones by their labels.
fn heaviest(table: &SeriesTable, limit: Option<i64>) -> Vec<Series> {
    let mut lines: Vec<(f64, Series)> = table
        .series
        .iter()
        .map(|line| {
            let points: Vec<Point> = line
                .points
                .iter()
                .map(|&(start_ns, value)| Point {
                    value: number(value),
                    timestamp: start_ns / NANOSECONDS_PER_MILLISECOND,
                    ..Point::default()
                })
                .collect();
            let total = points.iter().map(|point| point.value).sum();
            let series = Series {
                labels: pairs(&line.labels),
                points,
            };
            (total, series)
        })
        .collect();
    lines.sort_by(|left, right| right.0.total_cmp(&left.0));
    if let Some(limit) = limit.and_then(|limit| usize::try_from(limit).ok()) {
        lines.truncate(if limit == 0 { lines.len() } else { limit });
    }
    lines.into_iter().map(|(_, series)| series).collect()
}

fn number(value: PointValue) -> f64 {
    match value {
        PointValue::Whole(whole) => whole as f64,
        PointValue::Fraction(fraction) => fraction,
    }
}

/// Labels as messages have them.
pub(crate) fn pairs(labels: &Labels) -> Vec<LabelPair> {
    let pairs = labels.iter().map(|(name, value)| LabelPair {
        name: name.to_owned(),
        value: value.to_owned(),
    });
    pairs.collect()
}
