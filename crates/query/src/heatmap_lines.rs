//! The distribution of single profiles or spans, line by line, with one that stands for each cell.

use candela_model::Labels;

use crate::engine::Engine;
use crate::error::QueryError;
use crate::heatmap::Rows;
use crate::heatmap::allocate_columns;
use crate::heatmap::checked_buckets;
use crate::parts::Exemplar;
use crate::parts::ExemplarKind;
use crate::parts::Part;
use crate::plan::Plan;
use crate::query::Answer;
use crate::query::Query;
use crate::series::SeriesOptions;
use crate::series::steps_of;

/// Bytes of an exemplar with a few labels.
const EXEMPLAR_BYTES: usize = 512;

/// How to divide time and values, and what to count.
#[derive(Clone, Debug, Default)]
pub struct HeatmapLinesOptions {
    /// Steps and lines. With an origin a column holds what starts behind the one before it, up to
    /// its own time.
    pub lines: SeriesOptions,
    /// Rows; 20 when `None`.
    pub buckets: Option<usize>,
    /// What is counted.
    pub kind: ExemplarKind,
    /// Whether each cell tells the highest of what is in it.
    pub has_exemplars: bool,
    /// The most lines, those with the highest totals; all when `None`.
    pub limit: Option<usize>,
}

/// How many profiles or spans of each line have which value when.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct HeatmapLines {
    /// Nanoseconds of a column.
    pub step_ns: i64,
    /// Lower bounds of the rows, ascending from the least value of all lines, then the upper bound
    /// of the last one, which is the greatest and is in it. Empty without anything.
    pub bounds: Vec<f64>,
    /// The lines, by their totals, the highest first, and then by their labels.
    pub lines: Vec<HeatmapLine>,
}

/// One line.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct HeatmapLine {
    /// The labels that it is grouped by.
    pub labels: Labels,
    /// The sum of what is in it.
    pub total: i64,
    /// Columns that have something, by time.
    pub columns: Vec<HeatmapCells>,
}

/// One step of a line.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct HeatmapCells {
    /// The point as [`Engine::series`] has it, nanoseconds since the Unix epoch.
    pub point_ns: i64,
    /// How many by row.
    pub counts: Vec<u32>,
    /// By row the one with the highest value; empty unless asked for.
    pub exemplars: Vec<Option<Exemplar>>,
}

impl Engine {
    /// The distribution of the values of single profiles, or of what steps have of single spans,
    /// by line. Values are as they are and not by second, and rows span what there is: see
    /// [`Engine::heatmap`] for windows of different lengths, and for profiles in which nothing
    /// matches, which are not in here.
    ///
    /// # Errors
    /// As [`Engine::heatmap`].
    pub fn heatmap_lines(
        &self,
        query: &Query,
        options: &HeatmapLinesOptions,
    ) -> Result<Answer<HeatmapLines>, QueryError> {
        let buckets = checked_buckets(options.buckets)?;
        let group_by = &options.lines.group_by;
        let names: Vec<&str> = group_by.iter().map(String::as_str).collect();
        let mut loaded = self.load_whole_profiles(query, &names)?;
        let plan = self.plan_of_values(query, &mut loaded)?;
        let steps = steps_of(&options.lines, &plan)?;
        let mut parts = self.parts(&plan, &mut loaded, steps, group_by, options.kind)?;
        let groups = std::mem::take(&mut parts.groups);
        let sorted = parts.sorted();
        let values = || sorted.iter().map(|part| part.value());
        let bounds = values().min().zip(values().max());
        let rows = bounds.map(|(low, high)| Rows::between(low as f64, high as f64, buckets));
        let mut lines: Vec<(Labels, i64, &[Part<'_>])> = groups
            .into_lines()
            .map(|(labels, line)| {
                let start = sorted.partition_point(|part| part.line() < line);
                let end = sorted.partition_point(|part| part.line() <= line);
                let of_line = &sorted[start..end];
                let values = of_line.iter().map(|part| part.value());
                (labels, values.fold(0, i64::saturating_add), of_line)
            })
            .collect();
        lines.sort_by(|left, right| right.1.cmp(&left.1).then_with(|| left.0.cmp(&right.0)));
        lines.truncate(options.limit.unwrap_or(usize::MAX));
        let is_one_column = |left: &Part<'_>, right: &Part<'_>| left.point_ns() == right.point_ns();
        let columns = lines
            .iter()
            .map(|(_, _, parts)| parts.chunk_by(is_one_column).count());
        allocate_columns(columns.sum(), buckets, &loaded.meter)?;
        let mut table = HeatmapLines {
            step_ns: steps.step_ns(),
            bounds: rows.as_ref().map_or_else(Vec::new, Rows::bounds),
            lines: Vec::with_capacity(lines.len()),
        };
        for (labels, total, parts) in lines {
            loaded.meter.check_time()?;
            let mut columns = Vec::new();
            for of_column in parts.chunk_by(is_one_column) {
                let Some(rows) = &rows else {
                    continue;
                };
                let mut cells = HeatmapCells {
                    point_ns: of_column[0].point_ns(),
                    counts: vec![0; buckets],
                    exemplars: Vec::new(),
                };
                for part in of_column {
                    cells.counts[rows.row_of(part.value() as f64)] += 1;
                }
                if options.has_exemplars {
                    let used = cells.counts.iter().filter(|&&count| count > 0).count();
                    let empty = buckets * size_of::<Option<Exemplar>>();
                    loaded.meter.allocate(used * EXEMPLAR_BYTES + empty)?;
                    cells.exemplars = exemplars(of_column, rows, buckets, &plan);
                }
                columns.push(cells);
            }
            table.lines.push(HeatmapLine {
                labels,
                total,
                columns,
            });
        }
        self.answer(query, &loaded, &plan, parts.taken, table)
    }
}

/// By row the best part of a column.
fn exemplars(
    parts: &[Part<'_>],
    rows: &Rows,
    buckets: usize,
    plan: &Plan,
) -> Vec<Option<Exemplar>> {
    let mut best: Vec<Option<Part<'_>>> = vec![None; buckets];
    for &part in parts {
        let of_row = &mut best[rows.row_of(part.value() as f64)];
        *of_row = Some(of_row.map_or(part, |known| known.better(part, plan)));
    }
    let best = best.into_iter();
    best.map(|part| part.map(|part| part.exemplar(plan)))
        .collect()
}
