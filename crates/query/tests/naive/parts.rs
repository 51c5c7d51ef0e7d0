//! Single profiles and spans by the most obvious means.

use std::collections::BTreeMap;

use candela_model::Labels;
use candela_model::Link;
use candela_query::Engine;
use candela_query::Exemplar;
use candela_query::ExemplarKind;
use candela_query::ExemplarOf;
use candela_query::HeatmapLinesOptions;
use candela_query::LinkSelection;
use candela_query::ProfileKey;
use candela_query::Query;
use candela_query::SeriesOptions;

use super::Naive;
use super::filters;
use super::line_of;
use super::step_of;

/// A line and a point.
type Place = (Labels, i64);

/// What is told apart in a place.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Part {
    /// The key has the tenant in it.
    Profile(Labels, ProfileKey),
    /// The tenant, and what an exemplar tells.
    Span(String, LinkedSeries),
}

/// Labels, trace and span.
type LinkedSeries = (Labels, [u8; 16], [u8; 8]);

type Parts = BTreeMap<Part, i64>;

impl Naive {
    /// What each line has of each profile or span in a step.
    fn parts(
        &self,
        query: &Query,
        options: &SeriesOptions,
        kind: ExemplarKind,
    ) -> BTreeMap<Place, Parts> {
        let mut parts: BTreeMap<Place, Parts> = BTreeMap::new();
        for (sample, value) in self.matching(query) {
            let is_shown = filters::shown(&self.filters, &sample.stack).is_some();
            if sample.value == 0 || !is_shown {
                continue;
            }
            let profile = &self.profiles[sample.profile];
            let labels = profile.labels.clone();
            let part = match kind {
                ExemplarKind::Profile => Part::Profile(labels, profile.key()),
                ExemplarKind::Span if sample.link.span_id == [0; 8] => continue,
                ExemplarKind::Span => {
                    let linked = (labels, sample.link.trace_id, sample.link.span_id);
                    Part::Span(profile.tenant.clone(), linked)
                }
            };
            let place = (line_of(sample, options), step_of(profile, options));
            *parts.entry(place).or_default().entry(part).or_default() += value;
        }
        parts
    }

    /// Exemplars and heatmaps have these parts, and no others.
    pub(crate) fn check_parts(&self, engine: &Engine, query: &Query, context: &str) {
        for (kind, group_by) in [
            (ExemplarKind::Profile, vec![]),
            (ExemplarKind::Profile, vec!["pod", "thread_name"]),
            (ExemplarKind::Span, vec!["service_name"]),
            (ExemplarKind::Span, vec!["thread_name"]),
        ] {
            let lines = SeriesOptions {
                step_ns: Some(7 * super::STEP_NS),
                group_by: group_by.into_iter().map(str::to_owned).collect(),
                origin_ns: Some(super::START_NS),
            };
            let expected = self.parts(query, &lines, kind);
            let context = format!("{kind:?} {lines:?} {context}");
            let answer = engine.exemplars(query, &lines, kind).expect("exemplars");
            let mut places = 0;
            for line in answer.value.series {
                for (point, exemplar) in line.exemplars {
                    places += 1;
                    let parts = &expected[&(line.labels.clone(), point)];
                    let highest = parts.values().max();
                    assert_eq!(Some(&exemplar.value), highest, "{context}");
                    assert!(is_one_of(parts, &exemplar), "{context}");
                }
            }
            assert_eq!(places, expected.len(), "{context}");
            check_heatmap(engine, query, (lines, kind), &expected, &context);
        }
    }
}

/// Of a span nobody says whose it is: two tenants may have it in series of the same labels.
fn is_one_of(parts: &Parts, exemplar: &Exemplar) -> bool {
    let labels = exemplar.labels.clone();
    match exemplar.of {
        ExemplarOf::Profile(key) => {
            assert_eq!(key.start_ns(), exemplar.start_ns);
            parts.get(&Part::Profile(labels, key)) == Some(&exemplar.value)
        }
        ExemplarOf::Span(Link { trace_id, span_id }) => {
            let linked = (labels, trace_id, span_id);
            let is_it = |part: &Part| matches!(part, Part::Span(_, it) if *it == linked);
            let mut parts = parts.iter();
            parts.any(|(part, value)| is_it(part) && *value == exemplar.value)
        }
    }
}

fn check_heatmap(
    engine: &Engine,
    query: &Query,
    (lines, kind): (SeriesOptions, ExemplarKind),
    expected: &BTreeMap<Place, Parts>,
    context: &str,
) {
    let options = HeatmapLinesOptions {
        lines,
        kind,
        has_exemplars: true,
        ..HeatmapLinesOptions::default()
    };
    let heatmap = engine
        .heatmap_lines(query, &options)
        .expect("a heatmap")
        .value;
    let values = || expected.values().flat_map(BTreeMap::values).copied();
    let (Some(&first), Some(&last)) = (heatmap.bounds.first(), heatmap.bounds.last()) else {
        assert_eq!(values().count(), 0, "{context}");
        return;
    };
    assert_eq!(heatmap.bounds.len(), 21);
    assert_eq!(
        Some(first),
        values().min().map(|value| value as f64),
        "{context}"
    );
    let height = heatmap.bounds[1] - first;
    let highest = values().max().unwrap_or(0) as f64;
    // Rows have a height, even where all values are one.
    let expected_last = if highest > first {
        highest
    } else {
        first + 20.0
    };
    assert!((last - expected_last).abs() <= height * 1e-6, "{context}");
    let mut totals = Vec::new();
    let mut columns = 0;
    for line in &heatmap.lines {
        let mut total = 0;
        for column in &line.columns {
            columns += 1;
            let parts = &expected[&(line.labels.clone(), column.point_ns)];
            total += parts.values().sum::<i64>();
            for row in 0..20 {
                let is_in_row = |&&value: &&i64| {
                    let value = value as f64;
                    let is_below = row == 19 || value < heatmap.bounds[row + 1];
                    is_below && (row == 0 || value >= heatmap.bounds[row])
                };
                let in_row: Vec<i64> = parts.values().filter(is_in_row).copied().collect();
                assert_eq!(column.counts[row] as usize, in_row.len(), "{context}");
                let exemplar = column.exemplars[row].as_ref();
                let found = exemplar.map(|exemplar| exemplar.value);
                assert_eq!(found, in_row.iter().max().copied(), "{context}");
                if let Some(exemplar) = exemplar {
                    assert!(is_one_of(parts, exemplar), "{context}");
                }
            }
        }
        assert_eq!(line.total, total, "{context}");
        totals.push(total);
    }
    assert_eq!(columns, expected.len(), "{context}");
    assert!(
        totals.is_sorted_by(|left, right| left >= right),
        "{context}"
    );
    let limited = HeatmapLinesOptions {
        limit: Some(1),
        ..options
    };
    let limited = engine
        .heatmap_lines(query, &limited)
        .expect("a heatmap")
        .value;
    assert_eq!(limited.bounds, heatmap.bounds, "{context}");
    assert_eq!(
        limited.lines[..],
        heatmap.lines[..heatmap.lines.len().min(1)]
    );
    ask_again(engine, query, &heatmap.lines, context);
}

/// What names an exemplar finds it, and of a whole line just what it had.
fn ask_again(engine: &Engine, query: &Query, lines: &[candela_query::HeatmapLine], context: &str) {
    let mut columns = lines.iter().flat_map(|line| &line.columns);
    let Some(exemplar) = columns.find_map(|column| column.exemplars.iter().flatten().next()) else {
        return;
    };
    let mut again = query.clone();
    match exemplar.of {
        ExemplarOf::Profile(key) => again.profiles = vec![key],
        ExemplarOf::Span(link) => {
            again.links = LinkSelection {
                trace_ids: (link.trace_id != [0; 16])
                    .then_some(link.trace_id)
                    .into_iter()
                    .collect(),
                span_ids: vec![link.span_id],
                ..LinkSelection::default()
            }
        }
    }
    let answer = engine.exemplars(&again, &SeriesOptions::default(), ExemplarKind::Profile);
    let answer = answer.expect("exemplars");
    assert!(
        answer
            .value
            .series
            .iter()
            .any(|line| !line.exemplars.is_empty()),
        "{context}"
    );
}
