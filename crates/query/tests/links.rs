//! Traces and spans: what is not read for them, and what sums have lost.

use std::sync::Arc;
use std::time::Duration;

use crate::common::CPU;
use crate::common::NOON_NS;
use crate::common::block_on;
use crate::common::engine;
use crate::common::options;
use crate::common::profile;
use crate::common::query;
use candela_model::Link;
use candela_model::Profile;
use candela_model::SampleLabel;
use candela_query::Engine;
use candela_query::ExemplarKind;
use candela_query::ExemplarOf;
use candela_query::LinkSelection;
use candela_query::PointValue;
use candela_query::Query;
use candela_query::QueryError;
use candela_query::SeriesOptions;
use candela_store::ManualClock;
use candela_store::Store;
use candela_store::StoreOptions;

const DAY_NS: i64 = 86_400_000_000_000;

fn linked(service: &str, trace: u8, span: u8) -> Profile {
    let mut profile = profile(service, CPU, 100);
    let link = profile.intern_link(Link {
        trace_id: [trace; 16],
        span_id: [span; 8],
    });
    profile.series[0].samples[0].link = link;
    profile
}

fn of_span(span: u8) -> Query {
    Query {
        links: LinkSelection {
            span_ids: vec![[span; 8]],
            ..LinkSelection::default()
        },
        ..query("{}", "cpu")
    }
}

fn of_trace(trace: u8) -> Query {
    Query {
        links: LinkSelection {
            trace_ids: vec![[trace; 16]],
            ..LinkSelection::default()
        },
        ..query("{}", "cpu")
    }
}

/// Of a selector, as a client writes it.
fn asked(selector: &str) -> Query {
    let (selector, links) = LinkSelection::taken_from(&selector.parse().expect("a selector"));
    Query {
        selector,
        links,
        ..query("{}", "cpu")
    }
}

#[test]
fn matchers_of_ids_are_those_of_labels() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    // What was pushed may have its ids in labels.
    let mut labelled = profile("d", CPU, 1000);
    let strings = &mut labelled.symbols.strings;
    let label = SampleLabel::text(strings.intern("trace_id"), strings.intern("abc"));
    labelled.series[0].samples[0].label_set = labelled.label_sets.intern(vec![label]);
    let profiles = vec![
        profile("a", CPU, 1),
        linked("b", 0x1f, 2),
        linked("c", 0x2f, 3),
        labelled,
    ];
    for is_flushed in [false, true] {
        let place = directory.path().join(is_flushed.to_string());
        let (engine, _store) = engine(&place, profiles.clone(), is_flushed);
        let id = "1f".repeat(16);
        for (matchers, total) in [
            (format!("trace_id=\"{id}\""), 100),
            (format!("trace_id!=\"{id}\""), 1101),
            ("trace_id=~\".*f\"".to_owned(), 200),
            ("trace_id!~\"1.*\"".to_owned(), 1101),
            ("trace_id!=\"\"".to_owned(), 1200),
            ("trace_id=\"\"".to_owned(), 1),
            ("trace_id=~\"abc|1f.*\"".to_owned(), 1100),
            ("trace_id=\"abc\"".to_owned(), 1000),
            ("span_id=\"\"".to_owned(), 1001),
            ("span_id=~\"02.*\", trace_id=~\"1.*\"".to_owned(), 100),
            ("span_id!=\"\", service_name!=\"b\"".to_owned(), 100),
        ] {
            let query = asked(&format!("{{{matchers}}}"));
            let tree = engine.flame_tree(&query).expect("a tree").value;
            assert_eq!(tree.root_total(), total, "{matchers} {is_flushed}");
            let lines = engine.series(&query, &SeriesOptions::default());
            let lines = lines.expect("lines").value.series;
            let points = lines.iter().flat_map(|line| &line.points);
            let values = points.map(|&(_, value)| value).collect::<Vec<_>>();
            assert_eq!(
                values,
                [PointValue::Whole(total)],
                "{matchers} {is_flushed}"
            );
        }
        let options = SeriesOptions {
            group_by: vec!["trace_id".to_owned()],
            ..SeriesOptions::default()
        };
        let lines = engine.series(&asked("{}"), &options).expect("lines").value;
        let lines = lines.series.into_iter().map(|line| {
            let id = line.labels.get("trace_id").unwrap_or("").to_owned();
            (id, line.points[0].1)
        });
        let wanted = [
            ("", 1),
            (&*id, 100),
            (&*"2f".repeat(16), 100),
            ("abc", 1000),
        ];
        let wanted = wanted.map(|(id, value)| (id.to_owned(), PointValue::Whole(value)));
        assert_eq!(lines.collect::<Vec<_>>(), wanted);
    }
}

#[test]
fn conditions_read_no_block_in_which_all_samples_are_alike() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let (engine, _store) = engine(directory.path(), vec![profile("a", CPU, 7)], true);
    for (selector, total) in [
        (r#"{trace_id!="00000000000000000000000000000001"}"#, 7),
        (r#"{trace_id=~".+"}"#, 0),
    ] {
        let mut query = asked(selector);
        query.budget.max_bytes = 0;
        let options = SeriesOptions::default();
        let lines = engine.series(&query, &options).expect("lines").value.series;
        let values = lines.iter().flat_map(|line| &line.points);
        let sum: i64 = values
            .map(|(_, value)| match value {
                PointValue::Whole(value) => *value,
                PointValue::Fraction(_) => panic!("a sum"),
            })
            .sum();
        assert_eq!(sum, total, "{selector}");
    }
}

#[test]
fn blocks_without_links_cost_nothing() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let profiles = vec![profile("a", CPU, 1), linked("b", 1, 2), linked("c", 0, 3)];
    let (engine, _store) = engine(directory.path(), profiles, true);
    let mut by_trace = of_trace(7);
    by_trace.budget.max_bytes = 0;
    let answer = engine.flame_tree(&by_trace).expect("nothing is read");
    assert!(answer.value.is_empty() && answer.matched_series == 0);
    let hint = answer.hint.expect("a hint");
    assert!(hint.contains("none is of these traces and spans"), "{hint}");
    let mut by_span = of_span(2);
    by_span.selector = r#"{service_name="a"}"#.parse().expect("a selector");
    by_span.budget.max_bytes = 0;
    engine.flame_tree(&by_span).expect("nothing is read");
    by_span.selector = "{}".parse().expect("a selector");
    let error = engine
        .flame_tree(&by_span)
        .expect_err("rows have to be read");
    assert!(
        matches!(error, QueryError::BudgetExceeded { .. }),
        "{error}"
    );
}

#[test]
fn a_span_may_have_no_trace() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let profiles = vec![linked("b", 1, 2), linked("c", 0, 3)];
    for is_flushed in [false, true] {
        let place = directory.path().join(is_flushed.to_string());
        let (engine, _store) = engine(&place, profiles.clone(), is_flushed);
        let answer = engine.flame_tree(&of_span(3)).expect("a tree");
        assert_eq!((answer.value.root_total(), answer.matched_series), (100, 1));
        assert_eq!(answer.samples, Some(10));
        let merged = engine.profile(&of_trace(1)).expect("a profile").value;
        assert_eq!(merged.series[0].labels.get("service_name"), Some("b"));
        let spans = engine.exemplars(
            &query("{}", "cpu"),
            &SeriesOptions {
                group_by: vec!["service_name".to_owned()],
                ..SeriesOptions::default()
            },
            ExemplarKind::Span,
        );
        assert_eq!(spans.expect("exemplars").value.series.len(), 2);
    }
}

#[test]
fn a_key_names_a_profile_of_one_tenant() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    for is_flushed in [false, true] {
        let place = directory.path().join(is_flushed.to_string());
        // Two tenants have profiles that differ in nothing but the value.
        let (engine, store) = engine(&place, vec![profile("a", CPU, 1)], is_flushed);
        block_on(async {
            let heavier = profile("a", CPU, 5);
            store.append("u", heavier).await.expect("appends");
            if is_flushed {
                store.flush().await.expect("flushes");
            }
        });
        let both = Query {
            tenants: vec!["t".to_owned(), "u".to_owned()],
            ..query("{}", "cpu")
        };
        let key_of = |query: &Query| {
            let lines = SeriesOptions::default();
            let answer = engine.exemplars(query, &lines, ExemplarKind::Profile);
            let series = answer.expect("exemplars").value.series;
            let (_, exemplar) = series[0].exemplars[0].clone();
            let ExemplarOf::Profile(key) = exemplar.of else {
                panic!("a profile is asked for");
            };
            (key, exemplar.value)
        };
        let (of_one, of_all) = (key_of(&query("{}", "cpu")), key_of(&both));
        assert_eq!((of_one.1, of_all.1), (1, 5), "parts of tenants stay apart");
        assert_ne!(of_one.0, of_all.0);
        for (query, keys, total) in [
            (&both, vec![of_one.0], 1),
            (&both, vec![of_all.0], 5),
            (&both, vec![of_one.0, of_all.0], 6),
            (&query("{}", "cpu"), vec![of_all.0], 0),
        ] {
            let profiles = keys.clone();
            let chosen = Query {
                profiles,
                ..query.clone()
            };
            let tree = engine.flame_tree(&chosen).expect("a tree").value;
            assert_eq!(tree.root_total(), total, "{keys:?}");
        }
    }
}

#[test]
fn nothing_belongs_to_an_id_of_zeros() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let profiles = vec![profile("a", CPU, 1), linked("b", 0, 2)];
    for is_flushed in [false, true] {
        let place = directory.path().join(is_flushed.to_string());
        let (engine, _store) = engine(&place, profiles.clone(), is_flushed);
        for question in [of_trace(0), of_span(0)] {
            assert!(
                engine
                    .flame_tree(&question)
                    .expect("a tree")
                    .value
                    .is_empty()
            );
        }
    }
}

#[test]
fn sums_have_lost_traces_and_single_profiles_and_answers_say_so() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let clock = Arc::new(ManualClock::at(NOON_NS));
    let mut options = StoreOptions {
        clock: Arc::clone(&clock) as Arc<dyn candela_store::Clock>,
        ..options(directory.path())
    };
    options.max_age = Some(Duration::from_secs(3 * 86_400));
    options.ten_minutes_max_age = Some(Duration::from_secs(90 * 86_400));
    options.max_bytes = None;
    options.max_volume_percent = None;
    let store = Store::open(options).expect("opens");
    block_on(async {
        store.append("t", linked("b", 1, 2)).await.expect("appends");
        store.flush().await.expect("flushes");
    });
    store.compact().expect("merges");
    let engine = Engine::new(store.clone());
    let lines = SeriesOptions::default();
    let all = query("{}", "cpu");
    let exemplars = |query: &Query| engine.exemplars(query, &lines, ExemplarKind::Profile);
    let before = exemplars(&all).expect("exemplars");
    assert_eq!((before.value.series.len(), before.partial), (1, None));
    let exemplar = before.value.series[0].exemplars[0].1.clone();
    let ExemplarOf::Profile(key) = exemplar.of else {
        panic!("a profile is asked for");
    };
    let of_profile = Query {
        profiles: vec![key],
        ..all.clone()
    };
    for (question, total) in [(&of_span(2), 100), (&of_profile, 100), (&of_span(9), 0)] {
        let answer = engine.flame_tree(question).expect("a tree");
        assert_eq!((answer.value.root_total(), answer.partial), (total, None));
    }

    clock.advance(5 * DAY_NS);
    store.compact_due().expect("applies the rule");
    store.apply_retention().expect("deletes");
    assert_eq!(
        engine.flame_tree(&all).expect("sums").value.root_total(),
        100
    );
    for (question, lost) in [
        (&of_span(2), "traces and spans"),
        (&of_profile, "single profiles"),
    ] {
        let answer = engine.flame_tree(question).expect("an empty tree");
        assert!(answer.value.is_empty());
        let partial = answer.partial.expect("a reason");
        assert!(
            partial.contains(&format!("sums without {lost} are left")),
            "{partial}"
        );
    }
    let after = exemplars(&all).expect("no exemplars");
    assert!(
        after
            .value
            .series
            .iter()
            .all(|line| line.exemplars.is_empty())
    );
    let partial = after.partial.expect("a reason");
    assert!(partial.contains("in which no single profile"), "{partial}");
}
