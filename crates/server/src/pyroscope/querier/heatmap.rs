//! `SelectHeatmap`: how many profiles or spans have which value when.

use axum::response::Response;
use candela_query::ExemplarKind;
use candela_query::HeatmapCells;
use candela_query::HeatmapLinesOptions;
use candela_query::Query;
use candela_wire::querier::v1::HeatmapQueryType;
use candela_wire::querier::v1::SelectHeatmapRequest;
use candela_wire::querier::v1::SelectHeatmapResponse;
use candela_wire::types::v1::HeatmapSeries;
use candela_wire::types::v1::HeatmapSlot;

use crate::api::errors::query_error;
use crate::pyroscope::querier::exemplar::exemplar_message;
use crate::pyroscope::querier::exemplar::kind_of;
use crate::pyroscope::querier::lines::most_lines;
use crate::pyroscope::querier::lines::pairs;
use crate::pyroscope::querier::points::Points;
use crate::pyroscope::querier::points::milliseconds;
use crate::pyroscope::querier::selection::Selected;
use crate::rpc::Call;
use crate::turns::Lane;

pub(crate) async fn select_heatmap(call: Call) -> Response {
    call.answer(
        Lane::Queries,
        |app, caller, asked: SelectHeatmapRequest, cancellation| {
            let selected = Selected {
                profile_type: &asked.profile_type_id,
                selector: &asked.label_selector,
                start: asked.start,
                end: asked.end,
            };
            let query = selected.query(caller, cancellation)?;
            let points = Points::of(asked.start, asked.end, asked.step)?;
            let query = Query {
                range: points.range(),
                ..query
            };
            let options = HeatmapLinesOptions {
                lines: points.lines(&asked.group_by),
                buckets: None,
                kind: match asked.query_type() {
                    HeatmapQueryType::Unspecified | HeatmapQueryType::Individual => {
                        ExemplarKind::Profile
                    }
                    HeatmapQueryType::Span => ExemplarKind::Span,
                },
                has_exemplars: kind_of(asked.exemplar_type()).is_some(),
                limit: most_lines(asked.limit),
            };
            let answer = app.engine.heatmap_lines(&query, &options);
            let table = answer.map_err(query_error)?.value;
            // The upper bound of the last row goes without saying.
            let rows = table.bounds.len().saturating_sub(1);
            let lower_bounds = &table.bounds[..rows];
            let lines = table.lines.iter().filter(|line| !line.columns.is_empty());
            let series = lines.map(|line| {
                let slots = line.columns.iter();
                let slots = slots.map(|cells| slot(cells, lower_bounds, &asked.group_by));
                HeatmapSeries {
                    labels: pairs(&line.labels),
                    slots: slots.collect(),
                }
            });
            Ok(SelectHeatmapResponse {
                series: series.collect(),
            })
        },
    )
    .await
}

fn slot(cells: &HeatmapCells, lower_bounds: &[f64], group_by: &[String]) -> HeatmapSlot {
    let counts = cells.counts.iter();
    let exemplars = cells.exemplars.iter().flatten();
    HeatmapSlot {
        timestamp: milliseconds(cells.point_ns),
        y_min: lower_bounds.to_vec(),
        counts: counts
            .map(|&count| i32::try_from(count).unwrap_or(i32::MAX))
            .collect(),
        exemplars: exemplars
            .map(|exemplar| exemplar_message(exemplar, group_by))
            .collect(),
    }
}
