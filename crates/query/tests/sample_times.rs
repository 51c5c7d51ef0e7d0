//! What is asked of the times of samples: charts, heatmaps of samples, and ranges inside a profile.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::common::CPU;
use crate::common::NOON_NS;
use crate::common::engine;
use crate::common::query;
use candela_model::FrameKind;
use candela_model::LabelSetId;
use candela_model::Labels;
use candela_model::Location;
use candela_model::Profile;
use candela_model::ProfileSeries;
use candela_model::Sample;
use candela_model::SampleLabel;
use candela_model::StackId;
use candela_query::Chart;
use candela_query::ChartOptions;
use candela_query::Engine;
use candela_query::Query;
use candela_query::QueryError;
use candela_query::SampleHeatmapOptions;
use candela_store::LooseProfiles;
use candela_store::SystemClock;
use candela_store::TimeRange;

const MILLISECOND_NS: i64 = 1_000_000;
const SECOND_NS: i64 = 1000 * MILLISECOND_NS;
const PERIOD_NS: i64 = 10 * MILLISECOND_NS;

/// A recording of ten seconds. Thread 1 works on `read` in each first half second and on `write` in each
/// second one; thread 2 works on `write` in the third second alone.
fn recording() -> Profile {
    let mut profile = Profile::default();
    let stacks = ["read", "write"].map(|name| stack(&mut profile, &["main", name]));
    let threads = ["1", "2"].map(|thread| label_set(&mut profile, "thread_id", thread));
    let mut series = series("app");
    for tick in 0..1000 {
        let is_first_half = tick % 100 < 50;
        let stack = if is_first_half { stacks[0] } else { stacks[1] };
        series.samples.push(sample(stack, threads[0], tick));
        if (200..300).contains(&tick) {
            series.samples.push(sample(stacks[1], threads[1], tick));
        }
    }
    profile.series.push(series);
    profile
}

/// The same without times.
fn untimed() -> Profile {
    let mut profile = recording();
    for sample in &mut profile.series[0].samples {
        sample.time_ns = 0;
    }
    profile.series[0].labels = Labels::from_pairs([("service_name", "other")]);
    profile
}

fn series(service: &str) -> ProfileSeries {
    let labels = Labels::from_pairs([("service_name", service), ("host", "h1")]);
    let mut series = ProfileSeries::new(labels, CPU.parse().expect("a type"));
    series.start_ns = NOON_NS;
    series.duration_ns = 10 * SECOND_NS;
    series.period = PERIOD_NS;
    series
}

fn sample(stack: StackId, label_set: LabelSetId, tick: i64) -> Sample {
    Sample {
        label_set,
        time_ns: NOON_NS + tick * PERIOD_NS,
        ..Sample::new(stack, PERIOD_NS)
    }
}

/// Root first.
fn stack(profile: &mut Profile, names: &[&str]) -> StackId {
    let locations = names.iter().rev().enumerate().map(|(address, name)| {
        let function = profile.symbols.intern_function(name, "", "a.c", 1);
        let place = Location::new(FrameKind::Native, address as u64 + 1);
        profile.symbols.intern_location(&place, &[(function, 1, 0)])
    });
    let locations: Vec<_> = locations.collect();
    profile.stacks.intern(&locations)
}

fn label_set(profile: &mut Profile, name: &str, value: &str) -> LabelSetId {
    let key = profile.symbols.strings.intern(name);
    let value = profile.symbols.strings.intern(value);
    profile
        .label_sets
        .intern(vec![SampleLabel::text(key, value)])
}

fn between(from_ms: i64, to_ms: i64) -> Query {
    let mut query = query("{}", "cpu");
    query.range = TimeRange {
        from_ns: NOON_NS + from_ms * MILLISECOND_NS,
        to_ns: NOON_NS + to_ms * MILLISECOND_NS,
    };
    query
}

/// In blocks and in memory.
fn both_ways(profiles: impl Fn() -> Vec<Profile>, test: impl Fn(&Engine)) {
    for is_flushed in [false, true] {
        let directory = tempfile::tempdir().expect("a temporary directory");
        let (engine, _store) = engine(directory.path(), profiles(), is_flushed);
        test(&engine);
    }
}

fn chart(engine: &Engine, query: &Query) -> Chart {
    let answer = engine.chart(query, &ChartOptions::default());
    answer.expect("a chart").value
}

/// Of a lane: start and length in milliseconds from noon, and the function at the end of the stack.
fn drawn(chart: &Chart, lane: usize) -> Vec<(i64, i64, String)> {
    let skipped: usize = chart.lanes[..lane].iter().map(|lane| lane.boxes).sum();
    let boxes = chart.boxes[skipped..].iter().take(chart.lanes[lane].boxes);
    let boxes = boxes.map(|it| {
        let frame = chart.tree.frames.get(chart.tree.frame[it.node as usize]);
        let name = chart.tree.frames.strings.get(frame.name).to_owned();
        let start_ms = (it.start_ns - NOON_NS) / MILLISECOND_NS;
        (start_ms, (it.end_ns - it.start_ns) / MILLISECOND_NS, name)
    });
    boxes.collect()
}

#[test]
fn each_thread_has_a_lane_with_its_stacks_in_the_order_of_time() {
    both_ways(
        || vec![recording()],
        |engine| {
            let chart = chart(engine, &between(0, 10_000));
            let lanes: Vec<String> = chart.lanes.iter().map(|it| it.labels.to_string()).collect();
            assert_eq!(lanes, [r#"{thread_id="1"}"#, r#"{thread_id="2"}"#]);
            let totals: Vec<_> = chart
                .lanes
                .iter()
                .map(|it| (it.total, it.samples))
                .collect();
            assert_eq!(totals, [(10 * SECOND_NS, 1000), (SECOND_NS, 100)]);
            assert_eq!((chart.timed, chart.untimed), (1100, 0));
            let first = drawn(&chart, 0);
            let expected = (0..20).map(|half| {
                let name = if half % 2 == 0 { "read" } else { "write" };
                (half * 500, 500, name.to_owned())
            });
            assert!(first.iter().cloned().eq(expected), "{first:?}");
            assert_eq!(drawn(&chart, 1), [(2000, 1000, "write".to_owned())]);
            assert_eq!(chart.tree.root_total(), 11 * SECOND_NS);
        },
    );
}

#[test]
fn a_range_inside_a_profile_has_the_samples_of_that_time() {
    both_ways(
        || vec![recording(), untimed()],
        |engine| {
            // From the middle of the third second to a quarter of the fourth.
            let query = between(2500, 3250);
            let chart = chart(engine, &query);
            assert_eq!(
                drawn(&chart, 0),
                [
                    (2500, 500, "write".to_owned()),
                    (3000, 250, "read".to_owned())
                ]
            );
            assert_eq!(drawn(&chart, 1), [(2500, 500, "write".to_owned())]);
            let tree = engine.flame_tree(&query).expect("a tree").value;
            assert_eq!(tree.root_total(), 1250 * MILLISECOND_NS);
            let answer = engine.series(&query, &candela_query::SeriesOptions::default());
            let series = answer.expect("a line").value.series;
            assert_eq!(series.len(), 1);
            let services = engine.services(&query).expect("services").value.services;
            assert_eq!(services.len(), 1);
            assert_eq!(
                (&*services[0].service, services[0].total),
                ("app", 1250 * MILLISECOND_NS)
            );
            let types = engine.types(&query).expect("types").value;
            assert!(types.iter().any(|it| it.to_string() == CPU), "{types:?}");
        },
    );
}

#[test]
fn short_ranges_that_touch_add_up_and_profiles_without_times_stay_whole() {
    both_ways(
        || vec![recording(), untimed()],
        |engine| {
            let total = |from_ms, to_ms| {
                let tree = engine.flame_tree(&between(from_ms, to_ms));
                tree.expect("a tree").value.root_total()
            };
            let parts: i64 = [(-500, 1300), (1300, 1310), (1310, 7777), (7777, 20_000)]
                .into_iter()
                .map(|(from_ms, to_ms)| total(from_ms, to_ms))
                .sum();
            assert_eq!(parts, total(-500, 20_000));
            assert_eq!(parts, 2 * 11 * SECOND_NS);
            // All of the profile without times is where its window starts.
            assert_eq!(total(-1, 1), 11 * SECOND_NS + PERIOD_NS);
            // A long range takes the profiles that start in it, whole.
            assert_eq!(total(5, 3_600_000), 0);
        },
    );
}

#[test]
fn a_file_is_cut_in_ranges_of_any_length() {
    let file = LooseProfiles::of(&recording()).expect("a sound profile");
    let files = BTreeMap::from([("t".to_owned(), file)]);
    let engine = Engine::of_loose(files, Arc::new(SystemClock));
    let total = |from_ms, to_ms| {
        let tree = engine.flame_tree(&between(from_ms, to_ms));
        tree.expect("a tree").value.root_total()
    };
    assert_eq!(total(5000, 3_600_000), 5 * SECOND_NS);
    assert_eq!(total(-3_600_000, 2000), 2 * SECOND_NS);
}

#[test]
fn a_heatmap_of_samples_has_the_moments_within_each_second() {
    both_ways(
        || vec![recording(), untimed()],
        |engine| {
            let options = SampleHeatmapOptions {
                step_ns: Some(SECOND_NS),
                buckets: Some(4),
            };
            let mut query = between(0, 10_000);
            query.filters =
                candela_model::Filters::parse(&[(candela_model::FilterKind::Focus, "^read$")])
                    .expect("a filter");
            let answer = engine.sample_heatmap(&query, options).expect("a heatmap");
            let heatmap = answer.value;
            assert_eq!(heatmap.columns.len(), 10);
            for (second, column) in (0..).zip(&heatmap.columns) {
                assert_eq!(column.start_ns, NOON_NS + second * SECOND_NS);
                assert_eq!(column.counts, [25, 25, 0, 0], "second {second}");
            }
            assert_eq!(heatmap.timed, 500);
            assert!(heatmap.untimed > 0);
            let bad = SampleHeatmapOptions {
                step_ns: Some(1),
                buckets: None,
            };
            let error = engine.sample_heatmap(&query, bad).expect_err("too many");
            assert!(matches!(error, QueryError::BadRequest(_)), "{error}");
        },
    );
}

#[test]
fn lanes_are_values_of_labels_when_asked_and_filters_hold() {
    both_ways(
        || vec![recording()],
        |engine| {
            let options = ChartOptions {
                lanes: vec!["host".to_owned()],
                max_samples: None,
            };
            let mut query = between(0, 10_000);
            query.filters =
                candela_model::Filters::parse(&[(candela_model::FilterKind::Hide, "^main$")])
                    .expect("a filter");
            let chart = engine.chart(&query, &options).expect("a chart").value;
            assert_eq!(chart.lanes.len(), 1);
            assert_eq!(chart.lanes[0].labels.to_string(), r#"{host="h1"}"#);
            assert_eq!(chart.lanes[0].total, 11 * SECOND_NS);
            let depth = chart.tree.depth.iter().max();
            assert_eq!(depth, Some(&1), "main is hidden");
        },
    );
}

#[test]
fn a_limit_leaves_the_latest_samples_and_says_so() {
    both_ways(
        || vec![recording()],
        |engine| {
            let options = ChartOptions {
                lanes: Vec::new(),
                max_samples: Some(50),
            };
            let answer = engine
                .chart(&between(0, 10_000), &options)
                .expect("a chart");
            let reason = answer.partial.expect("a reason");
            assert!(
                reason.contains("of 1100 samples with times the latest 50"),
                "{reason}"
            );
            let chart = answer.value;
            // What lanes cost is of all samples.
            assert_eq!(chart.lanes[0].total, 10 * SECOND_NS);
            assert_eq!(drawn(&chart, 0), [(9500, 500, "write".to_owned())]);
            assert_eq!(chart.lanes[1].boxes, 0);
            for max_samples in [0, 2_000_001] {
                let options = ChartOptions {
                    lanes: Vec::new(),
                    max_samples: Some(max_samples),
                };
                let error = engine
                    .chart(&between(0, 10), &options)
                    .expect_err("a limit");
                assert!(matches!(error, QueryError::BadRequest(_)), "{error}");
            }
        },
    );
}

#[test]
fn without_times_there_is_nothing_and_a_word_why() {
    both_ways(
        || vec![untimed()],
        |engine| {
            let answer = engine.chart(&between(0, 10_000), &ChartOptions::default());
            let answer = answer.expect("a chart");
            assert!(answer.value.lanes.is_empty() && answer.value.boxes.is_empty());
            assert_eq!((answer.value.timed, answer.value.untimed > 0), (0, true));
            let hint = answer.hint.expect("a hint");
            assert!(hint.contains("candela record"), "{hint}");
        },
    );
}

#[test]
fn a_chart_keeps_to_its_budget() {
    both_ways(
        || vec![recording()],
        |engine| {
            let mut query = between(0, 10_000);
            query.budget.max_memory = 1000;
            let error = engine.chart(&query, &ChartOptions::default());
            let error = error.expect_err("too little memory");
            assert!(
                matches!(error, QueryError::BudgetExceeded { .. }),
                "{error}"
            );
        },
    );
}
