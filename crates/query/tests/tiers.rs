//! Sums answer in the place of profiles, and nobody sees a difference where they are exact.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use crate::common::CPU;
use crate::common::NOON_NS;
use crate::common::block_on;
use candela_model::Filter;
use candela_model::FilterKind;
use candela_model::Filters;
use candela_model::FlameTree;
use candela_model::FrameKind;
use candela_model::Labels;
use candela_model::Location;
use candela_model::Profile;
use candela_model::ProfileSeries;
use candela_model::Sample;
use candela_model::SampleLabel;
use candela_query::Aggregation;
use candela_query::Engine;
use candela_query::HeatmapOptions;
use candela_query::PointValue;
use candela_query::Query;
use candela_query::SeriesOptions;
use candela_query::SeriesTable;
use candela_store::ManualClock;
use candela_store::RetentionRule;
use candela_store::Store;
use candela_store::StoreOptions;
use candela_store::Tier;
use candela_store::TimeRange;

const MINUTE_NS: i64 = 60_000_000_000;
const HOUR_NS: i64 = 60 * MINUTE_NS;
const DAY_NS: i64 = 24 * HOUR_NS;
const INUSE: &str = "memory:inuse_space:bytes:space:bytes";
/// Two days and a bit, in steps that no bucket is a multiple of.
const STEP_NS: i64 = 7 * MINUTE_NS;
const STEPS: i64 = 450;

fn profile(service: &str, pod: &str, profile_type: &str, step: i64) -> Profile {
    let mut profile = Profile::default();
    let mut stack_of = |names: &[&str]| {
        let symbols = &mut profile.symbols;
        let locations = names.iter().rev().map(|name| {
            let function = symbols.intern_function(name, "", "main.c", 1);
            let place = Location::new(FrameKind::Native, 16);
            symbols.intern_location(&place, &[(function, 1, 0)])
        });
        let locations: Vec<_> = locations.collect();
        profile.stacks.intern(&locations)
    };
    let samples = vec![
        Sample::new(stack_of(&["main", "work"]), 1000 + step),
        Sample::new(stack_of(&["main", "work", "deep"]), 1 + step % 3),
        Sample::new(stack_of(&["main", "idle"]), 500),
    ];
    let labels = Labels::from_pairs([("service_name", service), ("pod", pod)]);
    let mut series = ProfileSeries::new(labels, profile_type.parse().expect("a type"));
    series.start_ns = NOON_NS + step * STEP_NS;
    series.duration_ns = 10_000_000_000;
    series.period = 1;
    series.samples = samples;
    profile.series.push(series);
    profile
}

/// A store of two days, flushed eight times a day, and nothing merged yet.
fn store(options: StoreOptions) -> Store {
    let store = Store::open(options).expect("opens");
    block_on(async {
        for step in 0..STEPS {
            for (service, pod) in [("api", "a"), ("api", "b"), ("web", "a")] {
                for profile_type in [CPU, INUSE] {
                    let profile = profile(service, pod, profile_type, step);
                    store.append("t", profile).await.expect("is stored");
                }
            }
            if step % 25 == 24 {
                store.flush().await.expect("is flushed");
            }
        }
    });
    store
}

fn options(directory: &std::path::Path, clock: &Arc<ManualClock>) -> StoreOptions {
    StoreOptions {
        clock: Arc::<ManualClock>::clone(clock),
        ..crate::common::options(directory)
    }
}

fn query(selector: &str, profile_type: &str, range: TimeRange) -> Query {
    Query {
        range,
        ..crate::common::query(selector, profile_type)
    }
}

/// By path its value.
fn values(tree: &FlameTree) -> BTreeMap<String, i64> {
    let mut values = BTreeMap::new();
    tree.for_each_stack(|frames, value| {
        let names: Vec<&str> = frames.iter().map(|&id| tree.frames.name(id)).collect();
        *values.entry(names.join(";")).or_default() += value;
    });
    values
}

/// The values of a tree, the samples that it is made of, and lines.
type Answers = (BTreeMap<String, i64>, Option<u64>, SeriesTable);

/// Means of states may be rounded the other way: they are added up in another order.
fn assert_same(after: &[Answers], before: &[Answers]) {
    assert_eq!(after.len(), before.len());
    for (after, before) in after.iter().zip(before) {
        assert_eq!(after.1, before.1);
        let limit = if before.1.is_none() { 1 } else { 0 };
        let (keys, wanted) = (after.0.keys(), before.0.keys());
        assert_eq!(keys.collect::<Vec<_>>(), wanted.collect::<Vec<_>>());
        for (name, value) in &after.0 {
            let wanted = before.0[name];
            assert!((value - wanted).abs() <= limit, "{name}: {value}, {wanted}");
        }
        assert_eq!(after.2.series.len(), before.2.series.len());
        for (line, wanted) in after.2.series.iter().zip(&before.2.series) {
            assert_eq!(line.labels, wanted.labels);
            assert_eq!(line.points.len(), wanted.points.len());
            for (point, wanted) in line.points.iter().zip(&wanted.points) {
                let is_same = match (point.1, wanted.1) {
                    (PointValue::Whole(value), PointValue::Whole(wanted)) => {
                        (value - wanted).abs() <= limit
                    }
                    _ => false,
                };
                assert!(point.0 == wanted.0 && is_same, "{point:?}, {wanted:?}");
            }
        }
    }
}

fn ranges() -> Vec<TimeRange> {
    let end_ns = NOON_NS + STEPS * STEP_NS;
    let range = |from_ns: i64, to_ns: i64| TimeRange { from_ns, to_ns };
    vec![
        TimeRange::ALL,
        range(NOON_NS, end_ns),
        range(NOON_NS + 3 * MINUTE_NS + 1, end_ns - 13 * MINUTE_NS),
        range(NOON_NS + 5 * HOUR_NS, NOON_NS + 29 * HOUR_NS),
        range(NOON_NS + 5 * HOUR_NS, NOON_NS + 6 * HOUR_NS),
    ]
}

#[test]
fn sums_over_ten_minutes_are_what_profiles_are() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let clock = Arc::new(ManualClock::at(NOON_NS));
    let store = store(options(directory.path(), &clock));
    let engine = Engine::new(store.clone());
    let answers = || {
        let mut answers = Vec::new();
        for range in ranges() {
            for selector in ["{}", r#"{service_name="api"}"#, r#"{pod="a"}"#] {
                for profile_type in ["cpu", "inuse"] {
                    let query = query(selector, profile_type, range);
                    let tree = engine.flame_tree(&query).expect("a tree");
                    let options = SeriesOptions {
                        step_ns: Some(HOUR_NS),
                        group_by: vec!["service_name".to_owned()],
                        ..SeriesOptions::default()
                    };
                    let lines = engine.series(&query, &options).expect("lines");
                    answers.push((values(&tree.value), tree.samples, lines.value));
                }
            }
        }
        answers
    };
    let before = answers();
    store.compact().expect("merges");
    assert_same(&answers(), &before);
    // What came since is not in any sum yet.
    let late = profile("api", "c", CPU, 3);
    block_on(store.append("t", late)).expect("is stored");
    let query = query("{}", "cpu", TimeRange::ALL);
    let total = |engine: &Engine| {
        engine
            .flame_tree(&query)
            .expect("a tree")
            .value
            .root_total()
    };
    let grown = total(&engine);
    let first: i64 = before[0].0.values().sum();
    assert_eq!(grown, first + 1003 + 1 + 500);
    block_on(store.flush()).expect("is flushed");
    assert_eq!(total(&engine), grown);
    store.compact().expect("merges");
    assert_eq!(total(&engine), grown);
}

#[test]
fn a_long_range_reads_sums_and_few_bytes() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let clock = Arc::new(ManualClock::at(NOON_NS));
    let store = store(options(directory.path(), &clock));
    store.compact().expect("merges");
    let mut query = query(r#"{service_name="api"}"#, "cpu", TimeRange::ALL);
    let engine = Engine::new(store);
    let cost = |query: &Query| {
        let mut least = query.clone();
        let mut max_bytes = 1 << 10;
        loop {
            least.budget.max_bytes = max_bytes;
            match engine.flame_tree(&least) {
                Ok(_) => return max_bytes,
                Err(_) => max_bytes *= 2,
            }
        }
    };
    let of_sums = cost(&query);
    query.selector = r#"{service_name="api", pod=~".+"}"#.parse().expect("a selector");
    let of_profiles = cost(&query);
    assert!(of_sums < of_profiles, "{of_sums} against {of_profiles}");
}

#[test]
fn sums_stay_when_the_profiles_are_gone() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let clock = Arc::new(ManualClock::at(NOON_NS));
    let day = Duration::from_secs(24 * 3600);
    let store = store(StoreOptions {
        max_age: Some(14 * day),
        ten_minutes_max_age: Some(90 * day),
        hourly_max_age: Some(400 * day),
        max_volume_percent: None,
        ..options(directory.path(), &clock)
    });
    store.compact().expect("merges");
    let engine = Engine::new(store.clone());
    let short = TimeRange {
        from_ns: NOON_NS + 20 * HOUR_NS,
        to_ns: NOON_NS + 22 * HOUR_NS,
    };
    let ask = |selector: &str, range: TimeRange| {
        let answer = engine.flame_tree(&query(selector, "cpu", range));
        values(&answer.expect("a tree").value)
    };
    let all = ask("{}", TimeRange::ALL);
    let two_hours = ask(r#"{service_name="web"}"#, short);
    clock.advance(20 * DAY_NS);
    store.apply_retention().expect("deletes");
    assert_eq!(store.status().tiers[0].blocks, 0);
    assert_eq!(ask("{}", TimeRange::ALL), all);
    assert_eq!(ask(r#"{service_name="web"}"#, short), two_hours);
    assert_eq!(ask(r#"{pod="a"}"#, short), BTreeMap::new());
    clock.advance(80 * DAY_NS);
    store.apply_retention().expect("deletes");
    let tiers: Vec<(Tier, bool)> = (store.status().tiers.iter())
        .map(|status| (status.tier, status.blocks > 0))
        .collect();
    let expected = [
        (Tier::Raw, false),
        (Tier::TenMinutes, false),
        (Tier::Hourly, true),
    ];
    assert_eq!(tiers, expected);
    let hourly = ask(r#"{service_name="web"}"#, short);
    assert_eq!(
        hourly.values().sum::<i64>(),
        two_hours.values().sum::<i64>(),
        "{hourly:?}"
    );
}

/// A store in which only sums are left of `api`, and profiles of `web`.
fn store_with_a_longer_rule(directory: &std::path::Path) -> (Store, Arc<ManualClock>) {
    let clock = Arc::new(ManualClock::at(NOON_NS));
    let day = Duration::from_secs(24 * 3600);
    let rule = RetentionRule {
        tenant: None,
        selector: r#"{service_name="web"}"#.parse().expect("a selector"),
        profile_type: None,
        keep: 60 * day,
    };
    let store = store(StoreOptions {
        max_age: Some(14 * day),
        ten_minutes_max_age: Some(90 * day),
        hourly_max_age: Some(400 * day),
        max_volume_percent: None,
        retention_rules: vec![rule],
        ..options(directory, &clock)
    });
    store.compact().expect("merges");
    (store, clock)
}

#[test]
fn profiles_that_are_kept_longer_hide_no_sums_of_others() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let (store, clock) = store_with_a_longer_rule(directory.path());
    let engine = Engine::new(store.clone());
    let short = TimeRange {
        from_ns: NOON_NS + 20 * HOUR_NS,
        to_ns: NOON_NS + 22 * HOUR_NS,
    };
    let answers = || {
        let mut answers = Vec::new();
        for range in [TimeRange::ALL, short] {
            for selector in ["{}", r#"{service_name="api"}"#, r#"{service_name="web"}"#] {
                let query = query(selector, "cpu", range);
                let tree = engine.flame_tree(&query).expect("a tree");
                let merged = engine.profile(&query).expect("a profile");
                let samples = merged.value.series.iter().flat_map(|it| &it.samples);
                let services = engine.services(&query).expect("services");
                let services = services.value.services.into_iter();
                answers.push((
                    values(&tree.value),
                    samples.map(|sample| sample.value).sum::<i64>(),
                    services
                        .map(|service| (service.service, service.total, service.types))
                        .collect::<Vec<_>>(),
                ));
            }
        }
        answers
    };
    let before = answers();
    clock.advance(20 * DAY_NS);
    store.compact_due().expect("applies the rule");
    store.apply_retention().expect("deletes");
    assert!(store.status().tiers[0].blocks > 0, "web is left");
    assert_eq!(answers(), before);
    let web = engine.flame_tree(&query(r#"{pod="a"}"#, "cpu", TimeRange::ALL));
    assert_eq!(values(&web.expect("a tree").value), before[2].0);
}

#[test]
fn what_sums_cannot_answer_is_left_out_and_told() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let (store, clock) = store_with_a_longer_rule(directory.path());
    let engine = Engine::new(store.clone());
    clock.advance(20 * DAY_NS);
    store.compact_due().expect("applies the rule");
    store.apply_retention().expect("deletes");
    let ask = |selector: &str, filters: &[(FilterKind, &str)]| {
        let filters = filters.iter();
        let filters = filters.map(|&(kind, text)| Filter::new(kind, text).expect("a filter"));
        let query = Query {
            filters: Filters::new(filters.collect()).expect("few"),
            ..query(selector, "cpu", TimeRange::ALL)
        };
        let answer = engine.flame_tree(&query).expect("a tree");
        (answer.value.root_total(), answer.partial)
    };
    let (web, nothing_left_out) = ask(r#"{service_name="web"}"#, &[]);
    assert_eq!(nothing_left_out, None);
    let (api, as_sums) = ask(r#"{service_name="api"}"#, &[]);
    assert_eq!((api, as_sums), (2 * web, None));
    let of_web = ask(r#"{service_name="web", pod="a"}"#, &[]);
    assert_eq!(of_web, (web, None), "api is not asked for");
    let undecided = [
        (r#"{pod="a"}"#, web, "pod"),
        (r#"{pod!="a"}"#, 0, "pod"),
        (r#"{pod=~".*"}"#, web, "pod"),
    ];
    for (selector, total, lost) in undecided {
        let (found, reason) = ask(selector, &[]);
        let reason = reason.expect("a reason");
        assert_eq!(found, total, "{selector}");
        assert!(
            reason.contains(&format!("sums without {lost} are left")),
            "{reason}"
        );
    }
    let tags = [
        (FilterKind::TagIgnore, "pod=a", 0, Some("without pod")),
        (FilterKind::TagFocus, "pod=a", web, Some("without pod")),
        (
            FilterKind::TagIgnore,
            "nobody",
            web,
            Some("without labels of samples"),
        ),
        (FilterKind::TagFocus, "service_name=api", api, None),
    ];
    for (kind, text, total, reason) in tags {
        let (found, told) = ask("{}", &[(kind, text)]);
        assert_eq!(found, total, "{text}");
        match reason {
            Some(reason) => assert!(told.expect("a reason").contains(reason), "{text}"),
            None => assert_eq!(told, None, "{text}"),
        }
    }
}

#[test]
fn what_sums_answer_otherwise_is_told() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let (store, clock) = store_with_a_longer_rule(directory.path());
    let engine = Engine::new(store.clone());
    let reasons = |service: &str| {
        let mut query = query(
            &format!("{{service_name={service:?}}}"),
            "cpu",
            TimeRange::ALL,
        );
        let lines = |query: &Query, step_ns: i64, group_by: &str| {
            let options = SeriesOptions {
                step_ns: Some(step_ns),
                group_by: vec![group_by.to_owned()],
                ..SeriesOptions::default()
            };
            engine.series(query, &options).expect("lines").partial
        };
        let mut reasons = vec![
            engine.flame_tree(&query).expect("a tree").partial,
            engine.services(&query).expect("services").partial,
            engine.types(&query).expect("types").partial,
            engine
                .label_values(&query, "version")
                .expect("values")
                .partial,
            lines(&query, HOUR_NS, "service_name"),
        ];
        assert_eq!(reasons, [const { None }; 5], "sums have all of it");
        reasons = vec![
            engine.profile(&query).expect("a profile").partial,
            engine.labels(&query).expect("names").partial,
            engine.label_values(&query, "pod").expect("values").partial,
            engine
                .heatmap(&query, &HeatmapOptions::default())
                .expect("a heatmap")
                .partial,
            lines(&query, HOUR_NS, "pod"),
            lines(&query, MINUTE_NS, "service_name"),
        ];
        query.aggregation = Some(Aggregation::Maximum);
        reasons.push(lines(&query, HOUR_NS, "service_name"));
        query.aggregation = Some(Aggregation::Average);
        reasons.push(engine.flame_tree(&query).expect("a tree").partial);
        reasons
    };
    assert_eq!(reasons("api"), [const { None }; 8]);
    clock.advance(20 * DAY_NS);
    store.compact_due().expect("applies the rule");
    store.apply_retention().expect("deletes");
    assert_eq!(reasons("web"), [const { None }; 8]);
    let parts = [
        "without labels of samples",
        "without labels of samples",
        "without labels of samples",
        "each counts as one profile",
        "without pod",
        "last longer than a step",
        "each counts as one profile",
        "each counts as one profile",
    ];
    let told = reasons("api");
    for (reason, part) in told.iter().zip(parts) {
        let reason = reason.as_deref().expect(part);
        assert!(
            reason.starts_with("up to 2024-11-23 only sums are left"),
            "{reason}"
        );
        assert!(reason.contains(part), "{reason}");
    }
}

#[test]
fn names_that_samples_have_too_group_profiles() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let clock = Arc::new(ManualClock::at(NOON_NS));
    let store = Store::open(options(directory.path(), &clock)).expect("opens");
    block_on(async {
        for step in (0..STEPS / 2).step_by(5) {
            let mut profile = profile("api", "a", CPU, step);
            let strings = &mut profile.symbols.strings;
            let (key, text) = (strings.intern("version"), strings.intern("2"));
            let set = vec![SampleLabel::text(key, text)];
            profile.series[0].samples[0].label_set = profile.label_sets.intern(set);
            store.append("t", profile).await.expect("is stored");
        }
        store.flush().await.expect("is flushed");
    });
    let engine = Engine::new(store.clone());
    let lines = || {
        let options = SeriesOptions {
            step_ns: Some(HOUR_NS),
            group_by: vec!["version".to_owned()],
            ..SeriesOptions::default()
        };
        let query = query("{}", "cpu", TimeRange::ALL);
        engine.series(&query, &options).expect("lines").value
    };
    let before = lines();
    assert_eq!(before.series.len(), 2);
    store.compact().expect("merges");
    assert_eq!(lines(), before);
}

#[test]
fn rare_functions_are_looked_for_where_they_are() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let clock = Arc::new(ManualClock::at(NOON_NS));
    let store = Store::open(options(directory.path(), &clock)).expect("opens");
    block_on(async {
        for step in (0..2 * STEPS).step_by(30) {
            let mut profile = profile("api", "a", CPU, step);
            profile.series[0].samples[0].value = 100_000_000;
            store.append("t", profile).await.expect("is stored");
        }
        store.flush().await.expect("is flushed");
    });
    store.compact().expect("merges");
    let engine = Engine::new(store);
    let query = query("{}", "cpu", TimeRange::ALL);
    let tree = engine.flame_tree(&query).expect("a tree");
    assert!(
        !values(&tree.value).contains_key("main;work;deep"),
        "it is rare"
    );
    let tree = engine.flame_tree_with_rare_stacks(&query).expect("a tree");
    assert!(values(&tree.value).contains_key("main;work;deep"));
}

#[test]
fn a_bucket_that_starts_before_its_profiles_is_not_in_their_place() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let clock = Arc::new(ManualClock::at(NOON_NS));
    let store = Store::open(options(directory.path(), &clock)).expect("opens");
    block_on(async {
        let appended = store.append("t", profile("api", "a", CPU, 1)).await;
        appended.expect("is stored");
        store.flush().await.expect("is flushed");
    });
    store.compact().expect("merges");
    let engine = Engine::new(store);
    let ask = |from_ns: i64, to_ns: i64| {
        let range = TimeRange { from_ns, to_ns };
        let tree = engine.flame_tree(&query("{}", "cpu", range));
        tree.expect("a tree").value.root_total()
    };
    assert_eq!(ask(NOON_NS, NOON_NS + MINUTE_NS), 0);
    assert_eq!(ask(NOON_NS, NOON_NS + 10 * MINUTE_NS), 1001 + 2 + 500);
}
