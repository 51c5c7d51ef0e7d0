//! Whatever is appended, flushed, merged and reopened in whatever order, each query equals what a naive
//! pass over the profiles gives.
#![expect(clippy::expect_used, reason = "a test says what went wrong by failing")]

use std::collections::BTreeMap;
use std::collections::BTreeSet;
use std::sync::Arc;

use crate::naive;
use crate::naive::Naive;
use crate::naive::StackText;
use candela_model::FlameTree;
use candela_model::Labels;
use candela_model::Profile;
use candela_query::Aggregation;
use candela_query::Engine;
use candela_query::LinkSelection;
use candela_query::PointValue;
use candela_query::Query;
use candela_query::QueryError;
use candela_query::SeriesOptions;
use candela_store::ManualClock;
use candela_store::Store;
use candela_store::StoreOptions;
use candela_store::SyncMode;
use candela_store::TimeRange;
use proptest::prelude::*;

/// Small enough that not everything stays in it.
const CACHE_BYTES: u64 = 200 << 10;

/// Series of both have the same labels.
const TENANTS: [&str; 2] = ["tenant", "other"];

/// Whose profiles queries are about, in turn.
const ASKED: [&[&str]; 4] = [
    &[TENANTS[0]],
    &TENANTS,
    &[TENANTS[1], "nobody"],
    &[TENANTS[1], TENANTS[0], TENANTS[1]],
];

/// What a test does to the store.
#[derive(Clone, Debug)]
enum Step {
    /// To the tenant of this number.
    Append(usize, Box<naive::Plain>),
    Flush,
    Compact,
    Reopen,
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        8 => (0..TENANTS.len(), naive::plain_profile())
            .prop_map(|(tenant, plain)| Step::Append(tenant, Box::new(plain))),
        1 => Just(Step::Flush),
        1 => Just(Step::Compact),
        1 => Just(Step::Reopen),
    ]
}

fn options(directory: &std::path::Path) -> StoreOptions {
    StoreOptions {
        sync: SyncMode::Os,
        segment_bytes: 1 << 20,
        max_age: None,
        // Blocks are merged when a step says so.
        compaction_cpu_percent: 0,
        clock: Arc::new(ManualClock::at(naive::START_NS)),
        ..StoreOptions::new(directory)
    }
}

fn query(tenants: &[&str], selector: &str, profile_type: &str, range: TimeRange) -> Query {
    Query {
        selector: selector.parse().expect("a selector"),
        profile_type: profile_type.to_owned(),
        range,
        ..Query::of_tenants(tenants.iter().map(ToString::to_string))
    }
}

fn stacks_of_tree(tree: &FlameTree) -> BTreeMap<StackText, i64> {
    let mut stacks = BTreeMap::new();
    tree.for_each_stack(|path, value| {
        let names = path.iter().map(|&frame| tree.frames.name(frame).to_owned());
        *stacks.entry(names.collect()).or_insert(0) += value;
    });
    let own = tree.self_value.first().copied().unwrap_or(0);
    if own != 0 {
        stacks.insert(Vec::new(), own);
    }
    stacks
}

fn stacks_of_profile(profile: &Profile) -> BTreeMap<StackText, i64> {
    let mut stacks = BTreeMap::new();
    for series in &profile.series {
        for sample in &series.samples {
            *stacks
                .entry(naive::stack_text(profile, sample.stack))
                .or_insert(0) += sample.value;
        }
    }
    stacks.retain(|_, value| *value != 0);
    stacks
}

/// Whole numbers must be equal, means rounded to the nearest. What is zero may be there or not.
fn assert_close<K: Ord + Clone + std::fmt::Debug, V: Copy + std::fmt::Debug + IntoFloat>(
    found: &BTreeMap<K, V>,
    expected: &BTreeMap<K, f64>,
    context: &str,
) {
    let keys: BTreeSet<&K> = found.keys().chain(expected.keys()).collect();
    for key in keys {
        let (found, expected) = (found.get(key), expected.get(key));
        let difference =
            found.map_or(0.0, |&it| it.into_float()) - expected.copied().unwrap_or(0.0);
        assert!(
            difference.abs() <= 0.500_001,
            "{context} {key:?}: {found:?} is not {expected:?}"
        );
    }
}

trait IntoFloat {
    fn into_float(self) -> f64;
}

impl IntoFloat for i64 {
    fn into_float(self) -> f64 {
        self as f64
    }
}

impl IntoFloat for f64 {
    fn into_float(self) -> f64 {
        self
    }
}

/// Means are rounded so that what is below any frame is right, not each stack by itself.
fn assert_subtrees_close(
    found: &BTreeMap<StackText, i64>,
    expected: &BTreeMap<StackText, f64>,
    context: &str,
) {
    let mut totals: BTreeMap<&[String], (f64, f64)> = BTreeMap::new();
    for (stack, &value) in found {
        for depth in 0..=stack.len() {
            totals.entry(&stack[..depth]).or_default().0 += value as f64;
        }
    }
    for (stack, &value) in expected {
        for depth in 0..=stack.len() {
            totals.entry(&stack[..depth]).or_default().1 += value;
        }
    }
    for (path, (found, expected)) in totals {
        let limit = if path.is_empty() {
            0.500_001
        } else {
            1.000_001
        };
        assert!(
            (found - expected).abs() <= limit,
            "{context} {path:?}: {found} is not {expected}"
        );
    }
}

const SELECTORS: [&str; 7] = [
    "{}",
    r#"{service_name="api"}"#,
    r#"{service_name!="api", pod=~"p-.*"}"#,
    r#"{thread_name="worker"}"#,
    r#"{thread_name!="worker"}"#,
    r#"{service_name=~"api|web", thread_name=~".*"}"#,
    r#"{pod="worker"}"#,
];

fn ranges() -> Vec<TimeRange> {
    let day = naive::START_NS;
    vec![
        TimeRange::ALL,
        TimeRange {
            from_ns: day + 10 * naive::STEP_NS,
            to_ns: day + 40 * naive::STEP_NS,
        },
        TimeRange {
            from_ns: day,
            to_ns: day + 1,
        },
    ]
}

fn conditions(selector: &str) -> LinkSelection {
    let selector = selector.parse().expect("a selector");
    let (others, links) = LinkSelection::taken_from(&selector);
    assert!(others.matchers().is_empty());
    links
}

fn links() -> Vec<LinkSelection> {
    let links = |traces: &[usize], spans: &[usize]| LinkSelection {
        trace_ids: traces.iter().map(|&it| naive::LINKS[it].trace_id).collect(),
        span_ids: spans.iter().map(|&it| naive::LINKS[it].span_id).collect(),
        ..LinkSelection::default()
    };
    vec![
        links(&[2], &[]),
        links(&[], &[1]),
        links(&[2, 4], &[]),
        links(&[], &[3, 4]),
        links(&[2], &[4]),
        LinkSelection {
            trace_ids: vec![[9; 16]],
            ..LinkSelection::default()
        },
        conditions("{trace_id!=\"\"}"),
        conditions(&format!("{{span_id!=\"{}\"}}", naive::span_text(2))),
        conditions("{trace_id=~\".*[0-7]\", span_id!~\"00.*\"}"),
        conditions("{trace_id=\"\"}"),
    ]
}

/// Every selector, range and type without filters, some of them with traces, spans and keys; every
/// chain of filters with some of them.
fn check_all(engine: &Engine, naive: &mut Naive) {
    let mut aggregations = Aggregation::ALL.into_iter().cycle();
    let mut next_aggregation = || aggregations.next().expect("there are some");
    let mut asked = ASKED.into_iter().cycle();
    let mut next_asked = || asked.next().expect("there are some");
    naive.filters.clear();
    for selector in SELECTORS {
        for range in ranges() {
            for profile_type in naive::TYPES {
                let query = query(next_asked(), selector, profile_type, range);
                check(engine, naive, &query, next_aggregation());
            }
        }
    }
    for (links, selector) in links().into_iter().zip(SELECTORS) {
        for profile_type in naive::TYPES {
            let query = Query {
                links: links.clone(),
                ..query(next_asked(), selector, profile_type, ranges()[1])
            };
            check(engine, naive, &query, next_aggregation());
        }
    }
    // Whether a count is derived depends on the range, which keys narrow.
    for profile_type in [naive::TYPES[0], naive::TYPES[2]] {
        let query = Query {
            profiles: naive.some_keys(profile_type),
            ..query(next_asked(), SELECTORS[2], profile_type, TimeRange::ALL)
        };
        check(engine, naive, &query, next_aggregation());
    }
    let selectors = SELECTORS.into_iter().cycle();
    for (chain, selector) in naive::filters::chains().into_iter().zip(selectors) {
        for profile_type in naive::TYPES {
            for range in [TimeRange::ALL, ranges()[1]] {
                let query = Query {
                    filters: naive::filters::parsed(&chain),
                    ..query(next_asked(), selector, profile_type, range)
                };
                naive.filters.clone_from(&chain);
                check(engine, naive, &query, next_aggregation());
            }
        }
    }
}

fn check(engine: &Engine, naive: &Naive, query: &Query, aggregation: Aggregation) {
    let context = || {
        let filters: Vec<_> = naive.filters.iter().map(|it| (it.kind, it.text)).collect();
        format!(
            "{:?} {} {} {:?} {filters:?} {:?} {:?}",
            query.tenants,
            query.selector,
            query.profile_type,
            query.range,
            query.links,
            query.profiles
        )
    };
    check_stacks(engine, naive, query, &context);
    check_stacks(
        engine,
        naive,
        &Query {
            aggregation: Some(aggregation),
            ..query.clone()
        },
        &|| format!("{aggregation:?} {}", context()),
    );
    check_series(engine, naive, query, aggregation, &context);
    naive.check_parts(engine, query, &context());
    let expected = naive.labels(query);
    let labels = engine.labels(query).expect("labels");
    let names: Vec<&String> = expected.keys().collect();
    assert_eq!(
        labels.value.iter().collect::<Vec<_>>(),
        names,
        "{}",
        context()
    );
    assert_eq!(labels.hint.is_some(), names.is_empty(), "{}", context());
    for name in ["service_name", "pod", "thread_name", "nothing"] {
        let values = engine.label_values(query, name).expect("values").value;
        let wanted = expected.get(name).cloned().unwrap_or_default();
        assert_eq!(
            values.into_iter().collect::<BTreeSet<_>>(),
            wanted,
            "{name} {}",
            context()
        );
    }
    let services = engine.services(query);
    if query.range != TimeRange::ALL {
        let services = services.expect("services").value.services;
        for service in services {
            let (total, previous) = naive.service_totals(query, &service.service);
            let found = [("total", service.total), ("before", service.previous_total)];
            let expected = [("total", total), ("before", previous)];
            let context = format!("{} {}", service.service, context());
            assert_close(&found.into(), &expected.into(), &context);
            if !naive.is_mean(query) && !naive.asks_for_samples(query) {
                let starts = naive.profiled_starts(query, Some(&service.service));
                let profiled_ns = starts.len() as i64 * naive::STEP_NS;
                assert_eq!(service.profiled_ns.unwrap_or(0), profiled_ns, "{context}");
            }
        }
    }
}

fn check_stacks(engine: &Engine, naive: &Naive, query: &Query, context: &dyn Fn() -> String) {
    let is_of_lines = matches!(
        query.aggregation,
        Some(Aggregation::Minimum | Aggregation::Maximum | Aggregation::Rate)
    );
    if is_of_lines {
        let answers = [
            engine.flame_tree(query).map(drop),
            engine.profile(query).map(drop),
        ];
        for answer in answers {
            assert!(
                matches!(answer, Err(QueryError::BadRequest(_))),
                "{answer:?}"
            );
        }
        return;
    }
    let expected = naive.stacks(query);
    let tree = engine.flame_tree(query).expect("a tree");
    assert_eq!(tree.partial, None, "{}", context());
    let profile = engine.profile(query).expect("a profile");
    for found in [
        stacks_of_tree(&tree.value),
        stacks_of_profile(&profile.value),
    ] {
        // Means are rounded before frames are taken out, and each stack moves for itself.
        let is_rounded_twice = !query.filters.keeps_stacks();
        if naive.is_mean(query) && is_rounded_twice {
            let (found, expected) = (found.values().sum::<i64>(), expected.values().sum::<f64>());
            let limit = 1.0 + naive.sample_count() as f64;
            assert!((found as f64 - expected).abs() < limit, "{}", context());
        } else if naive.is_mean(query) {
            assert_subtrees_close(&found, &expected, &context());
        } else {
            assert_close(&found, &expected, &context());
        }
    }
    if expected.is_empty() {
        assert!(tree.value.is_empty(), "{}", context());
        assert!(tree.hint.is_some(), "{}", context());
        assert!(profile.hint.is_some(), "{}", context());
    }
    assert_eq!(profile.value.validate(), Ok(()), "{}", context());
}

fn check_series(
    engine: &Engine,
    naive: &Naive,
    query: &Query,
    aggregation: Aggregation,
    context: &dyn Fn() -> String,
) {
    for group_by in [
        vec![],
        vec!["service_name"],
        vec!["thread_name"],
        vec!["pod", "thread_name"],
    ] {
        let group_by: Vec<String> = group_by.into_iter().map(str::to_owned).collect();
        for aggregation in [None, Some(aggregation)] {
            let query = Query {
                aggregation,
                ..query.clone()
            };
            if aggregation == Some(Aggregation::Rate) && naive.asks_for_samples(&query) {
                continue;
            }
            let options = SeriesOptions {
                step_ns: Some(7 * naive::STEP_NS),
                group_by: group_by.clone(),
                // Some profiles start at such a point.
                origin_ns: aggregation.map(|_| naive::START_NS + 3 * naive::STEP_NS),
            };
            let answer = engine.series(&query, &options).expect("series");
            let found: BTreeMap<(Labels, i64), f64> = answer
                .value
                .series
                .into_iter()
                .flat_map(|line| {
                    let points = line.points.into_iter();
                    points.map(move |(step, value)| ((line.labels.clone(), step), number(value)))
                })
                .collect();
            let expected = naive.series(&query, &options);
            let context = format!("{aggregation:?} {options:?} {}", context());
            assert_close(&found, &expected, &context);
        }
    }
}

fn number(value: PointValue) -> f64 {
    match value {
        PointValue::Whole(value) => value as f64,
        PointValue::Fraction(value) => value,
    }
}

async fn run(steps: Vec<Step>) {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let mut store = Store::open(options(directory.path())).expect("opens");
    let mut cached = Engine::with_cache(store.clone(), CACHE_BYTES);
    let mut naive = Naive::default();
    for step in steps {
        match step {
            Step::Append(tenant, plain) => {
                let (tenant, profile) = (TENANTS[tenant], plain.profile());
                naive.add(tenant, &profile);
                store.append(tenant, profile).await.expect("appends");
            }
            Step::Flush => store.flush().await.expect("flushes"),
            Step::Compact => store.compact().expect("merges"),
            Step::Reopen => {
                drop((store, cached));
                store = Store::open(options(directory.path())).expect("reopens");
                cached = Engine::with_cache(store.clone(), CACHE_BYTES);
            }
        }
        // What is kept of now must be right later.
        for profile_type in naive::TYPES {
            let query = query(&TENANTS, SELECTORS[3], profile_type, TimeRange::ALL);
            check_stacks(&cached, &naive, &query, &|| "on the way".to_owned());
        }
    }
    check_all(&cached, &mut naive);
    store.flush().await.expect("flushes");
    check_all(&cached, &mut naive);
    check_all(&Engine::new(store.clone()), &mut naive);
    store.compact().expect("merges");
    check_all(&cached, &mut naive);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 16, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn queries_equal_a_naive_model(steps in prop::collection::vec(step(), 1..24)) {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .build()
            .expect("a runtime");
        runtime.block_on(run(steps));
    }
}
