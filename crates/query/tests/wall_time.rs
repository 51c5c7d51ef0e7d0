//! Wall time is what the time on CPUs and off them is together, however it is asked for, and what is
//! stored as wall time is not counted once more.

use std::collections::BTreeMap;

use crate::common::CPU;
use crate::common::NOON_NS;
use crate::common::block_on;
use crate::common::options;
use crate::common::profile;
use crate::common::query;
use candela_model::FlameTree;
use candela_model::FrameKind;
use candela_model::Labels;
use candela_model::Link;
use candela_model::Location;
use candela_model::Profile;
use candela_model::ProfileSeries;
use candela_model::ProfileType;
use candela_model::Sample;
use candela_model::SampleLabel;
use candela_query::Aggregation;
use candela_query::Engine;
use candela_query::ExemplarKind;
use candela_query::HeatmapLinesOptions;
use candela_query::HeatmapOptions;
use candela_query::LinkSelection;
use candela_query::PointValue;
use candela_query::Query;
use candela_query::SeriesOptions;
use candela_store::Store;
use candela_store::TimeRange;

const OFF_CPU: &str = "off_cpu:off_cpu:nanoseconds:off_cpu:nanoseconds";
const WALL: &str = "wall:wall:nanoseconds:wall:nanoseconds";
const WINDOW_NS: i64 = 10_000_000_000;
const WINDOWS: i64 = 12;
const TRACE: [u8; 16] = [7; 16];

/// `main` → `work` of thread `a`, `main` → `wait` of thread `b`, by number of the window.
fn window(host: &str, profile_type: &str, number: i64) -> Profile {
    let mut profile = Profile::default();
    let mut stack_of = |names: &[&str]| {
        let locations = names.iter().rev().map(|name| {
            let function = profile.symbols.intern_function(name, "", "main.c", 1);
            let place = Location::new(FrameKind::Native, 16);
            profile.symbols.intern_location(&place, &[(function, 1, 0)])
        });
        let locations: Vec<_> = locations.collect();
        profile.stacks.intern(&locations)
    };
    let stacks = [stack_of(&["main", "work"]), stack_of(&["main", "wait"])];
    let is_cpu = profile_type == CPU;
    let link = profile.intern_link(Link {
        trace_id: TRACE,
        span_id: [number as u8 + 1; 8],
    });
    let labels = Labels::from_pairs([("service_name", "shop"), ("host", host)]);
    let mut series = ProfileSeries::new(labels, profile_type.parse().expect("a type"));
    series.start_ns = NOON_NS + number * WINDOW_NS;
    series.duration_ns = WINDOW_NS;
    series.period = if is_cpu { 10 } else { 0 };
    for (position, stack) in stacks.into_iter().enumerate() {
        let strings = &mut profile.symbols.strings;
        let name = ["a", "b"][position];
        let thread = SampleLabel::text(strings.intern("thread_name"), strings.intern(name));
        let of_stack = 1 + position as i64;
        let value = if is_cpu {
            10 * (number + of_stack)
        } else {
            1000 * of_stack + 7 * number
        };
        series.samples.push(Sample {
            label_set: profile.label_sets.intern(vec![thread]),
            link: if position == 0 {
                link
            } else {
                Default::default()
            },
            ..Sample::new(stack, value)
        });
    }
    profile.series.push(series);
    profile
}

/// What an agent of two hosts stores; one of them had nothing to do in every third window.
fn windows() -> Vec<Profile> {
    let mut profiles = Vec::new();
    for number in 0..WINDOWS {
        for host in ["h1", "h2"] {
            profiles.push(window(host, OFF_CPU, number));
            if host == "h1" || number % 3 != 0 {
                profiles.push(window(host, CPU, number));
            }
        }
    }
    profiles
}

/// Engines over these profiles: of a head, of a block for each, of blocks and a head.
fn engines(directory: &std::path::Path, profiles: &[Profile]) -> Vec<Engine> {
    let engines = [usize::MAX, 1, 7].map(|flushed_after| {
        let place = directory.join(flushed_after.to_string());
        let store = Store::open(options(&place)).expect("opens");
        block_on(async {
            for (number, profile) in profiles.iter().enumerate() {
                store.append("t", profile.clone()).await.expect("appends");
                if number % flushed_after == flushed_after - 1 {
                    store.flush().await.expect("flushes");
                }
            }
        });
        Engine::new(store)
    });
    engines.into()
}

fn asked(selector: &str) -> [Query; 3] {
    ["wall", "cpu", "off_cpu"].map(|it| query(selector, it))
}

fn values(tree: &FlameTree) -> BTreeMap<String, i64> {
    let mut values = BTreeMap::new();
    tree.for_each_stack(|frames, value| {
        let names: Vec<&str> = frames.iter().map(|&id| tree.frames.name(id)).collect();
        *values.entry(names.join(";")).or_default() += value;
    });
    values
}

fn sum<K: Ord>(parts: [BTreeMap<K, i64>; 2]) -> BTreeMap<K, i64> {
    let [mut sums, other] = parts;
    for (key, value) in other {
        *sums.entry(key).or_default() += value;
    }
    sums
}

#[track_caller]
fn assert_is_sum<K: Ord + std::fmt::Debug>(
    asked: &[Query; 3],
    mut answer: impl FnMut(&Query) -> BTreeMap<K, i64>,
) {
    let [wall, on, off] = asked;
    let wanted = sum([answer(on), answer(off)]);
    assert!(!wanted.is_empty());
    assert_eq!(answer(wall), wanted, "{}", wall.selector);
}

fn tree(engine: &Engine) -> impl Fn(&Query) -> BTreeMap<String, i64> {
    |query| values(&engine.flame_tree(query).expect("a tree").value)
}

fn total(engine: &Engine, query: &Query) -> i64 {
    let answer = engine.flame_tree(query).expect("a tree");
    answer.value.root_total()
}

const SELECTORS: [&str; 4] = [
    "{}",
    r#"{host="h2"}"#,
    r#"{thread_name="b"}"#,
    r#"{host="h1", thread_name!="b"}"#,
];

#[test]
fn stacks_are_those_of_both_parts() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    for engine in engines(directory.path(), &windows()) {
        for selector in SELECTORS {
            let mut asked = asked(selector);
            assert_is_sum(&asked, tree(&engine));
            assert_is_sum(&asked, |query| {
                let merged = engine.profile(query).expect("a profile").value;
                assert_eq!(merged.validate(), Ok(()));
                let samples = merged.series.iter().flat_map(|series| &series.samples);
                let label_of = |set| format!("{:?}", merged.label_sets.get(set).len());
                let mut sums = BTreeMap::new();
                for sample in samples {
                    let leaf = merged.stacks.get(sample.stack)[0];
                    let line = merged.symbols.lines(leaf)[0];
                    let name = merged.symbols.function(line.function).name;
                    let name = merged.symbols.strings.get(name).to_owned();
                    *sums.entry((name, label_of(sample.label_set))).or_default() += sample.value;
                }
                sums
            });
            for query in &mut asked {
                query.links = LinkSelection {
                    trace_ids: vec![TRACE],
                    ..LinkSelection::default()
                };
            }
            if selector != SELECTORS[2] {
                assert_is_sum(&asked, tree(&engine));
            }
            for query in &mut asked {
                query.links = LinkSelection::default();
                query.aggregation = Some(Aggregation::Last);
            }
            assert_is_sum(&asked, tree(&engine));
        }
    }
}

#[test]
fn lines_are_those_of_both_parts_however_their_profiles_combine() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    for engine in engines(directory.path(), &windows()) {
        for aggregation in Aggregation::ALL {
            for group_by in [vec![], vec!["host"], vec!["thread_name"]] {
                let mut asked = asked("{}");
                for query in &mut asked {
                    query.aggregation = Some(aggregation);
                }
                let options = SeriesOptions {
                    step_ns: Some(2 * WINDOW_NS),
                    group_by: group_by.into_iter().map(str::to_owned).collect(),
                    ..SeriesOptions::default()
                };
                let lines = |query: &Query| {
                    let table = engine.series(query, &options).expect("lines").value;
                    let lines = table.series.into_iter().flat_map(|line| {
                        let labels = line.labels;
                        let points = line.points.into_iter();
                        points.map(move |(at, value)| ((labels.to_string(), at), value))
                    });
                    let lines = lines.map(|(key, value)| match value {
                        PointValue::Whole(value) => (key, value),
                        PointValue::Fraction(value) => (key, (value * 20.0).round() as i64),
                    });
                    lines.collect::<BTreeMap<_, _>>()
                };
                let [wall, on, off] = &asked;
                let (wall, wanted) = (lines(wall), sum([lines(on), lines(off)]));
                assert_eq!(wall.len(), wanted.len());
                // Means are rounded once for wall time, and once for each of its parts.
                let limit = i64::from(aggregation == Aggregation::Average);
                for (key, value) in wall {
                    let difference = (value - wanted[&key]).abs();
                    assert!(difference <= limit, "{aggregation:?} {key:?}: {difference}");
                }
            }
        }
    }
}

#[test]
fn single_profiles_and_spans_are_those_of_both_parts() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    for engine in engines(directory.path(), &windows()) {
        let asked = asked("{}");
        assert_is_sum(&asked, |query| {
            let options = HeatmapOptions {
                step_ns: Some(WINDOW_NS),
                buckets: Some(1),
            };
            let heatmap = engine.heatmap(query, &options).expect("a heatmap").value;
            let columns = heatmap.columns.into_iter();
            let counts = columns.map(|column| (column.start_ns, i64::from(column.counts[0])));
            counts.collect()
        });
        for kind in [ExemplarKind::Profile, ExemplarKind::Span] {
            assert_is_sum(&asked, |query| {
                let options = HeatmapLinesOptions {
                    kind,
                    buckets: Some(1),
                    ..HeatmapLinesOptions::default()
                };
                let lines = engine.heatmap_lines(query, &options).expect("lines").value;
                let totals = lines.lines.into_iter();
                totals
                    .map(|line| (line.labels.to_string(), line.total))
                    .collect()
            });
        }
        let [wall, ..] = asked;
        let options = SeriesOptions::default();
        let answer = engine.exemplars(&wall, &options, ExemplarKind::Profile);
        let exemplar = answer.expect("exemplars").value.series[0].exemplars[0]
            .1
            .clone();
        let candela_query::ExemplarOf::Profile(key) = exemplar.of else {
            panic!("a profile");
        };
        let of_one = Query {
            profiles: vec![key],
            ..wall
        };
        assert_eq!(
            total(&engine, &of_one),
            exemplar.value,
            "its key is one of wall time"
        );
    }
}

#[test]
fn lists_have_wall_time_where_they_have_both_parts() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let mut profiles = windows();
    profiles.push(profile("till", CPU, 5));
    profiles.push(profile("idle", OFF_CPU, 6));
    for engine in engines(directory.path(), &profiles) {
        let types = |selector: &str| {
            let types = engine.types(&query(selector, "")).expect("types").value;
            let ids = types.iter().map(ToString::to_string);
            ids.filter(|id| id == WALL).count()
        };
        assert_eq!(types("{}"), 1);
        assert_eq!(types(r#"{host="h2"}"#), 1);
        assert_eq!(types(r#"{service_name="till"}"#), 0);
        assert_eq!(types(r#"{service_name="idle"}"#), 0);
        for names in [&["service_name", "__profile_type__"][..], &[]] {
            let sets = engine
                .label_sets(&query("{}", ""), names)
                .expect("sets")
                .value;
            let of_wall = sets
                .iter()
                .filter(|set| set.get("__profile_type__") == Some(WALL));
            let services: Vec<_> = of_wall.map(|set| set.get("service_name")).collect();
            let times = if names.is_empty() { 2 } else { 1 };
            assert_eq!(services, vec![Some("shop"); times], "{names:?}");
        }
        let services = engine
            .services(&query("{}", "wall"))
            .expect("services")
            .value;
        let has_wall: Vec<(&str, bool, i64)> = services
            .services
            .iter()
            .map(|it| {
                let has_wall = it.types.contains(&ProfileType::wall());
                (it.service.as_str(), has_wall, it.total)
            })
            .collect();
        let shop = total(&engine, &query(r#"{service_name="shop"}"#, "wall"));
        assert_eq!(
            has_wall,
            [("shop", true, shop), ("idle", false, 6), ("till", false, 5)]
        );
        // What only waited is listed without it, and has it.
        assert_eq!(
            total(&engine, &query(r#"{service_name="idle"}"#, "wall")),
            6
        );
        let nothing = engine.flame_tree(&query(r#"{service_name="till"}"#, "wall"));
        let hint = nothing.expect("an answer").hint.expect("a hint");
        assert_eq!(hint, "no profiles of type wall here; there are cpu");
    }
}

#[test]
fn answers_count_series_and_tell_no_samples() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    for engine in engines(directory.path(), &windows()) {
        let [wall, on, off] = asked("{}").map(|query| {
            let answer = engine.flame_tree(&query).expect("a tree");
            (answer.matched_series, answer.samples, answer.profile_type)
        });
        assert_eq!(
            (wall.0, on.0, off.0),
            (2, 2, 2),
            "the series of both parts are the same"
        );
        assert!(on.1.is_some() && wall.1.is_none() && off.1.is_none());
        assert_eq!(wall.2, Some(ProfileType::wall()));
    }
}

#[test]
fn stored_wall_time_counts_once() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let mut profiles = windows();
    // What `record -e wall` makes of the third window of a host, and what a library sends of all hosts.
    let mut recorded = window("h1", CPU, 3);
    recorded.series[0].profile_type = ProfileType::wall();
    let of_record: i64 = recorded.series[0].total();
    profiles.push(recorded);
    let mut sent = window("h1", CPU, 5);
    sent.series[0].profile_type = ProfileType::wall();
    sent.series[0].labels = Labels::from_pairs([("service_name", "shop")]);
    let of_library: i64 = sent.series[0].total();
    profiles.push(sent);
    for engine in engines(directory.path(), &profiles) {
        let at = |selector: &str, number: i64| {
            let range = TimeRange {
                from_ns: NOON_NS + number * WINDOW_NS,
                to_ns: NOON_NS + (number + 1) * WINDOW_NS,
            };
            asked(selector).map(|query| total(&engine, &Query { range, ..query }))
        };
        for selector in [r#"{host="h1"}"#, r#"{host="h2"}"#] {
            for number in 0..WINDOWS {
                let [wall, on, off] = at(selector, number);
                let is_recorded = number == 3 && selector.contains("h1");
                let wanted = if is_recorded { of_record } else { on + off };
                assert_eq!(wall, wanted, "{selector} {number}");
            }
        }
        // The selection has what the library sent, which stands for both hosts.
        assert_eq!(at("{}", 5)[0], of_library);
        let [wall, on, off] = asked("{}").map(|query| total(&engine, &query));
        let [_, on_3, off_3] = at(r#"{host="h1"}"#, 3);
        let [_, on_5, off_5] = at("{}", 5);
        let covered = on_3 + off_3 + on_5 + off_5;
        assert_eq!(wall, on + off - covered + of_record + of_library);
        // What is not in the answer covers nothing.
        let mut by_trace = asked(r#"{host="h2"}"#);
        for query in &mut by_trace {
            query.links.trace_ids = vec![TRACE];
        }
        assert_is_sum(&by_trace, tree(&engine));
    }
}

/// Wall time of a program that knows no threads and no spans.
fn bare_wall(number: i64) -> Profile {
    let mut profile = window("h1", OFF_CPU, number);
    let series = &mut profile.series[0];
    series.profile_type = ProfileType::wall();
    let samples = series.samples.iter();
    series.samples = samples
        .map(|sample| Sample::new(sample.stack, sample.value))
        .collect();
    profile
}

/// Wall time of thread `a` alone, which is that of the trace.
fn wall_of_thread(number: i64) -> Profile {
    let mut profile = window("h1", OFF_CPU, number);
    profile.series[0].profile_type = ProfileType::wall();
    profile.series[0].samples.truncate(1);
    profile
}

#[track_caller]
fn assert_covered_by_own_samples(engine: &Engine) {
    let of_bare = bare_wall(1).series[0].total();
    let of_thread = wall_of_thread(2).series[0].total();
    for number in 0..3 {
        let at = |selector: &str, trace_ids: &[[u8; 16]]| {
            asked(selector).map(|mut query| {
                query.range = TimeRange {
                    from_ns: NOON_NS + number * WINDOW_NS,
                    to_ns: NOON_NS + (number + 1) * WINDOW_NS,
                };
                query.links.trace_ids = trace_ids.to_vec();
                total(engine, &query)
            })
        };
        let [wall, on, off] = at("{}", &[]);
        let wanted = [on + off, of_bare, of_thread][number as usize];
        assert_eq!(wall, wanted, "{number}");
        let [wall, on, off] = at(r#"{thread_name="b"}"#, &[]);
        assert_eq!(wall, on + off, "{number}: nothing stored has the thread");
        for (selector, trace_ids) in [(r#"{thread_name="a"}"#, &[][..]), ("{}", &[TRACE][..])] {
            let [wall, on, off] = at(selector, trace_ids);
            assert!(on > 0 && off > 0);
            let wanted = if number == 2 { of_thread } else { on + off };
            assert_eq!(wall, wanted, "{number} {selector}");
        }
    }
}

#[test]
fn stored_wall_time_covers_by_its_own_samples_however_blocks_are_cut() {
    for is_cut in [false, true] {
        let directory = tempfile::tempdir().expect("a temporary directory");
        let store = Store::open(options(directory.path())).expect("opens");
        let engine = Engine::new(store.clone());
        let parts = (0..3).flat_map(|number| [CPU, OFF_CPU].map(|it| window("h1", it, number)));
        block_on(async {
            for profile in parts.chain([bare_wall(1), wall_of_thread(2)]) {
                store.append("t", profile).await.expect("appends");
                if is_cut {
                    store.flush().await.expect("flushes");
                }
            }
        });
        assert_covered_by_own_samples(&engine);
        block_on(store.flush()).expect("flushes");
        assert_covered_by_own_samples(&engine);
        store.compact().expect("merges");
        assert_covered_by_own_samples(&engine);
    }
}

#[test]
fn sums_over_long_times_are_those_of_both_parts() {
    const STEP_NS: i64 = 2 * 60_000_000_000;
    const STEPS: i64 = 900;
    let directory = tempfile::tempdir().expect("a temporary directory");
    let store = Store::open(options(directory.path())).expect("opens");
    let at = |profile_type: &str, step: i64| {
        let mut profile = window("h1", profile_type, step % 50);
        profile.series[0].start_ns = NOON_NS + step * STEP_NS;
        profile
    };
    block_on(async {
        for step in 0..STEPS {
            for profile_type in [CPU, OFF_CPU] {
                let stored = store.append("t", at(profile_type, step)).await;
                stored.expect("is stored");
            }
            if step % 50 == 49 {
                store.flush().await.expect("is flushed");
            }
        }
    });
    let engine = Engine::new(store.clone());
    let before = asked(r#"{service_name="shop"}"#).map(|query| tree(&engine)(&query));
    store.compact().expect("merges");
    let asked = asked(r#"{service_name="shop"}"#);
    assert_is_sum(&asked, tree(&engine));
    let after = asked.clone().map(|query| tree(&engine)(&query));
    assert_eq!(after, before);
    let cost_of = |query: &Query| {
        let mut least = query.clone();
        least.budget.max_bytes = 1 << 10;
        while engine.flame_tree(&least).is_err() {
            least.budget.max_bytes *= 2;
        }
        least.budget.max_bytes
    };
    let of_sums = cost_of(&asked[0]);
    // A stored profile of ten seconds does not take ten minutes out of the parts.
    let mut recorded = at(CPU, 200);
    recorded.series[0].profile_type = ProfileType::wall();
    block_on(store.append("t", recorded)).expect("is stored");
    assert!(cost_of(&asked[0]) > of_sums, "profiles are read");
    let waited = at(OFF_CPU, 200).series[0].total();
    let whole: i64 = before[0].values().sum();
    assert_eq!(total(&engine, &asked[0]), whole - waited);
    block_on(store.flush()).expect("is flushed");
    store.compact().expect("merges");
    assert_eq!(total(&engine, &asked[0]), whole - waited);
}
