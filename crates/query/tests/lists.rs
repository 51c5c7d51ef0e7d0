//! What is answered without samples: estimates, times, combinations of labels.

use crate::common;
use crate::common::CPU;
use crate::common::NOON_NS;
use crate::common::engine;
use crate::common::profile;
use crate::common::query;
use candela_model::Labels;
use candela_query::Estimate;
use candela_query::Query;
use candela_store::TimeRange;

const INUSE: &str = "memory:inuse_space:bytes:space:bytes";
const SAMPLES: &str = "process_cpu:samples:count:cpu:nanoseconds";

fn sets(pairs: &[&[(&str, &str)]]) -> Vec<Labels> {
    let sets = pairs
        .iter()
        .map(|pairs| Labels::from_pairs(pairs.iter().copied()));
    sets.collect()
}

#[test]
fn services_and_types_are_listed_without_reading_a_file() {
    let profiles = || {
        vec![
            profile("a", CPU, 1),
            profile("b", INUSE, 1),
            profile("b", INUSE, 2),
        ]
    };
    let names = ["service_name", "__profile_type__"];
    let expected = sets(&[
        &[("__profile_type__", INUSE), ("service_name", "b")],
        &[("__profile_type__", CPU), ("service_name", "a")],
        &[("__profile_type__", SAMPLES), ("service_name", "a")],
    ]);
    for is_flushed in [false, true] {
        let directory = tempfile::tempdir().expect("a temporary directory");
        let (engine, store) = engine(directory.path(), profiles(), is_flushed);
        let answer = engine.label_sets(&query("{}", ""), &names).expect("sets");
        assert_eq!((answer.value, answer.partial), (expected.clone(), None));
        let some = query(r#"{service_name="b"}"#, "");
        let answer = engine
            .label_sets(&some, &["service_name", "__unit__"])
            .expect("sets");
        assert_eq!(
            answer.value,
            sets(&[&[("__unit__", "bytes"), ("service_name", "b")]])
        );
        let by_label = query(r#"{request_bytes="512"}"#, "");
        let answer = engine
            .label_sets(&by_label, &["host", "service_name"])
            .expect("sets");
        let both = sets(&[
            &[("host", "h1"), ("service_name", "a")],
            &[("host", "h1"), ("service_name", "b")],
        ]);
        assert_eq!(answer.value, both, "labels of samples choose series");
        let whole = engine.label_sets(&some, &[]).expect("sets").value;
        let all = [
            ("__profile_type__", INUSE),
            ("host", "h1"),
            ("service_name", "b"),
        ];
        assert_eq!(whole, sets(&[&all]));
        let nothing = query(r#"{service_name="c"}"#, "");
        let answer = engine.label_sets(&nothing, &names).expect("no sets");
        assert!(answer.value.is_empty() && answer.hint.is_some());
        if is_flushed {
            // Nothing was read if what cannot be read makes no difference.
            drop((engine, store));
            let store = candela_store::Store::open(common::options(directory.path()));
            let store = store.expect("opens");
            remove_tables(directory.path());
            let engine = candela_query::Engine::new(store);
            let answer = engine.label_sets(&query("{}", ""), &names).expect("sets");
            assert_eq!((answer.value, answer.partial), (expected.clone(), None));
            let part = Query {
                range: TimeRange {
                    from_ns: NOON_NS,
                    to_ns: NOON_NS,
                },
                ..query("{}", "")
            };
            let answer = engine.label_sets(&part, &names).expect("no sets");
            assert!(answer.value.is_empty());
        }
    }
}

fn remove_tables(directory: &std::path::Path) {
    let blocks = directory.join("blocks/v1");
    for folder in std::fs::read_dir(blocks).expect("blocks") {
        let path = folder.expect("a folder").path();
        let is_table = path.file_name().is_some_and(|name| name != "_blocks");
        if is_table && path.is_dir() {
            std::fs::remove_dir_all(path).expect("is removed");
        }
    }
}

#[test]
fn an_estimate_counts_what_a_tree_would_read() {
    let profiles = vec![
        profile("a", CPU, 1),
        profile("b", CPU, 2),
        profile("b", INUSE, 3),
    ];
    for is_flushed in [false, true] {
        let directory = tempfile::tempdir().expect("a temporary directory");
        let (engine, store) = engine(directory.path(), profiles.clone(), is_flushed);
        let ask = |selector: &str, profile_type: &str| {
            engine
                .estimate(&query(selector, profile_type))
                .expect("an estimate")
                .value
        };
        let all = ask("{}", "");
        assert_eq!((all.series, all.profiles, all.samples), (2, 3, 3));
        let one = ask(r#"{service_name="b"}"#, "cpu");
        assert_eq!((one.series, one.profiles, one.samples), (1, 1, 1));
        assert_eq!(one.range_bytes, all.range_bytes);
        if is_flushed {
            assert_eq!((all.blocks, all.heads, one.blocks), (3, 0, 1));
            let snapshot = store.snapshot("t", TimeRange::ALL).expect("a snapshot");
            let bytes: u64 = snapshot.blocks.iter().map(|block| block.meta().bytes).sum();
            assert_eq!(all.range_bytes, bytes);
            assert_eq!(all.index_bytes + all.sample_bytes + all.symbol_bytes, bytes);
        } else {
            assert_eq!((all.blocks, all.heads), (0, 1));
        }
        assert!(one.sample_bytes > 0 && one.sample_bytes < all.sample_bytes);
        assert!(one.index_bytes > 0 && one.symbol_bytes > 0);
        assert_eq!(ask(r#"{service_name="c"}"#, "cpu").profiles, 0);
    }
}

#[test]
fn what_several_tenants_have_is_added_up() {
    for is_flushed in [false, true] {
        let directory = tempfile::tempdir().expect("a temporary directory");
        let (engine, store) = engine(directory.path(), vec![profile("a", CPU, 1)], is_flushed);
        common::block_on(async {
            for service in ["a", "b"] {
                let profile = profile(service, CPU, 5);
                store.append("u", profile).await.expect("appends");
            }
            if is_flushed {
                store.flush().await.expect("flushes");
            }
        });
        let of = |tenants: &[&str]| Query {
            tenants: tenants.iter().map(ToString::to_string).collect(),
            ..query("{}", "cpu")
        };
        let estimate = |tenants| engine.estimate(&of(tenants)).expect("an estimate");
        let (one, other) = (estimate(&["t"]).value, estimate(&["u"]).value);
        // One is named twice, and one has nothing.
        let both = estimate(&["u", "t", "u", "nobody"]);
        assert_eq!(both.matched_series, 3, "series of two tenants are two");
        let both = both.value;
        assert_eq!((one.series, other.series, both.series), (1, 2, 3));
        for part in [
            |it: &Estimate| it.blocks,
            |it: &Estimate| it.heads,
            |it: &Estimate| it.profiles,
            |it: &Estimate| it.samples,
            |it: &Estimate| it.index_bytes,
            |it: &Estimate| it.sample_bytes,
            |it: &Estimate| it.symbol_bytes,
            |it: &Estimate| it.range_bytes,
        ] {
            assert_eq!(part(&both), part(&one) + part(&other));
        }
        let services = |tenants| {
            let sets = engine.label_sets(&of(tenants), &["service_name"]);
            sets.expect("sets").value
        };
        let (a, b) = ([("service_name", "a")], [("service_name", "b")]);
        assert_eq!(services(&["t"]), sets(&[&a]));
        assert_eq!(services(&["t", "nobody", "u"]), sets(&[&a, &b]));
        let hosts = engine.label_sets(&of(&["t", "u"]), &["host", "service_name"]);
        assert_eq!(hosts.expect("sets").value.len(), 2, "not in manifests");
    }
}

#[test]
fn times_are_those_of_blocks_and_heads() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let mut later = profile("a", CPU, 1);
    later.series[0].start_ns = NOON_NS + 7;
    let (engine, store) = engine(directory.path(), vec![profile("a", CPU, 1)], true);
    let stats = engine.stats("t").expect("times");
    assert_eq!(
        (stats.oldest_ns, stats.newest_ns),
        (Some(NOON_NS), Some(NOON_NS))
    );
    common::block_on(store.append("t", later)).expect("appends");
    let stats = engine.stats("t").expect("times");
    assert_eq!(
        (stats.oldest_ns, stats.newest_ns),
        (Some(NOON_NS), Some(NOON_NS + 7))
    );
    assert_eq!(engine.stats("nobody").expect("times").oldest_ns, None);
}
