//! `SelectSeries`: values over time.

use std::collections::BTreeMap;

use axum::response::Response;
use candela_model::Labels;
use candela_query::Aggregation;
use candela_query::Exemplar;
use candela_query::ExemplarTable;
use candela_query::PointValue;
use candela_query::Query;
use candela_query::SeriesTable;
use candela_wire::querier::v1::SelectSeriesRequest;
use candela_wire::querier::v1::SelectSeriesResponse;
use candela_wire::types::v1::LabelPair;
use candela_wire::types::v1::Point;
use candela_wire::types::v1::Series;
use candela_wire::types::v1::TimeSeriesAggregationType;

use crate::api::errors::query_error;
use crate::pyroscope::querier::exemplar::exemplar_message;
use crate::pyroscope::querier::exemplar::kind_of;
use crate::pyroscope::querier::points::Points;
use crate::pyroscope::querier::points::milliseconds;
use crate::pyroscope::querier::selection::Selected;
use crate::pyroscope::querier::selection::call_site_filters;
use crate::rpc::Call;
use crate::turns::Lane;

pub(crate) async fn select_series(call: Call) -> Response {
    call.answer(
        Lane::Queries,
        |app, caller, asked: SelectSeriesRequest, cancellation| {
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
            let points = Points::of(asked.start, asked.end, asked.step)?;
            let query = Query {
                range: points.range(),
                ..query
            };
            let options = points.lines(&asked.group_by);
            let answer = app.engine.series(&query, &options).map_err(query_error)?;
            let exemplars = match kind_of(asked.exemplar_type()) {
                Some(kind) => {
                    let answer = app.engine.exemplars(&query, &options, kind);
                    answer.map_err(query_error)?.value
                }
                None => ExemplarTable::default(),
            };
            let mut series = lines(&answer.value, &exemplars, &asked.group_by);
            series.truncate(most_lines(asked.limit).unwrap_or(usize::MAX));
            Ok(SelectSeriesResponse { series })
        },
    )
    .await
}

/// How many lines a client wants at the most; 0 is for all.
pub(crate) fn most_lines(asked: Option<i64>) -> Option<usize> {
    let limit = asked.and_then(|limit| usize::try_from(limit).ok());
    limit.filter(|&limit| limit > 0)
}

/// The lines by their totals, the heaviest first, of equal ones by their labels.
fn lines(table: &SeriesTable, exemplars: &ExemplarTable, group_by: &[String]) -> Vec<Series> {
    let mut by_place: BTreeMap<(&Labels, i64), &Exemplar> = BTreeMap::new();
    for line in &exemplars.series {
        let of_line = line.exemplars.iter();
        by_place.extend(of_line.map(|(point_ns, exemplar)| ((&line.labels, *point_ns), exemplar)));
    }
    let mut lines: Vec<(f64, Series)> = table
        .series
        .iter()
        .map(|line| {
            let points: Vec<Point> = line
                .points
                .iter()
                .map(|&(point_ns, value)| {
                    let best = by_place.get(&(&line.labels, point_ns)).into_iter();
                    Point {
                        value: number(value),
                        timestamp: milliseconds(point_ns),
                        exemplars: best.map(|it| exemplar_message(it, group_by)).collect(),
                        ..Point::default()
                    }
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
