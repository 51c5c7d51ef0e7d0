//! Samples of two selections by function and cluster: what statistics of a comparison are made of.

use crate::common::CPU;
use crate::common::NOON_NS;
use crate::common::engine;
use crate::common::query;
use candela_model::FilterKind;
use candela_model::Filters;
use candela_model::FlameDiff;
use candela_model::FrameId;
use candela_model::FrameKind;
use candela_model::Labels;
use candela_model::Location;
use candela_model::NodePlaces;
use candela_model::Profile;
use candela_model::ProfileSeries;
use candela_model::Sample;
use candela_query::ClusterKind;
use candela_query::ComparedSamples;
use candela_query::FunctionSamples;
use candela_query::Query;
use candela_store::TimeRange;

const SECOND_NS: i64 = 1_000_000_000;
const HOUR_NS: i64 = 3600 * SECOND_NS;
/// The period of every profile.
const PERIOD: i64 = 10;

/// Stacks root first with how many samples they have.
type Stacks<'a> = &'a [(&'a [&'a str], i64)];

fn profile(labels: &[(&str, &str)], profile_type: &str, start_ns: i64, stacks: Stacks) -> Profile {
    let mut profile = Profile::default();
    let labels = Labels::from_pairs(labels.iter().copied());
    let mut series = ProfileSeries::new(labels, profile_type.parse().expect("five parts"));
    series.start_ns = start_ns;
    series.duration_ns = 10 * SECOND_NS;
    series.period = PERIOD;
    for (names, samples) in stacks {
        let leaf_first = names.iter().rev().map(|name| {
            let symbols = &mut profile.symbols;
            let function = symbols.intern_function(name, "", "", 0);
            let place = Location::new(FrameKind::Go, 0);
            symbols.intern_location(&place, &[(function, 1, 0)])
        });
        let leaf_first: Vec<_> = leaf_first.collect();
        let stack = profile.stacks.intern(&leaf_first);
        series.samples.push(Sample::new(stack, samples * PERIOD));
    }
    profile.series.push(series);
    profile
}

fn of_host(host: &str, start_ns: i64, stacks: Stacks) -> Profile {
    profile(
        &[("service_name", "shop"), ("host", host)],
        CPU,
        start_ns,
        stacks,
    )
}

/// The hour from noon compared with the hour before.
fn sides(selector: &str, profile_type: &str) -> [Query; 2] {
    [-HOUR_NS, 0].map(|offset_ns| Query {
        range: TimeRange {
            from_ns: NOON_NS + offset_ns,
            to_ns: NOON_NS + offset_ns + HOUR_NS - 1,
        },
        ..query(selector, profile_type)
    })
}

fn compared(profiles: Vec<Profile>, is_flushed: bool, sides: &[Query; 2]) -> ComparedSamples {
    let directory = tempfile::tempdir().expect("a directory");
    let (engine, _store) = engine(directory.path(), profiles, is_flushed);
    let [before, after] = sides
        .each_ref()
        .map(|side| engine.flame_tree(side).expect("a tree").value);
    let union = FlameDiff::new(&before, &after, 0);
    let places = NodePlaces::of(&union, 100);
    let samples = engine.compared_samples(&sides[0], &sides[1], true, &places);
    let samples = samples.expect("samples");
    if samples.unsampled.is_none() {
        nodes_have_what_the_tree_has(&samples, &union);
    }
    samples
}

/// Whatever is filtered, and wherever it is stored.
fn nodes_have_what_the_tree_has(samples: &ComparedSamples, union: &FlameDiff) {
    for (side, values) in [&union.before, &union.after].into_iter().enumerate() {
        let nodes = samples.sides[side].nodes.iter();
        let sums: Vec<f64> = nodes.map(|node| node.by_cluster.iter().sum()).collect();
        let totals: Vec<f64> = values.iter().map(|value| value.total as f64).collect();
        assert_eq!(sums, totals, "side {side} of {union:?}");
    }
}

fn function<'a>(samples: &'a ComparedSamples, side: usize, name: &str) -> &'a FunctionSamples {
    let frames = &samples.frames;
    let ids = (0..frames.frames().len() as u32).map(FrameId);
    let mut named = ids.filter(|&id| frames.name(id) == name);
    let id = named.next().expect("a function of this name");
    samples.sides[side].of(id).expect("it has samples")
}

#[test]
fn functions_are_summed_by_instance_in_blocks_and_in_the_head() {
    let profiles = || {
        vec![
            of_host(
                "a",
                NOON_NS - HOUR_NS,
                &[(&["main", "parse"], 3), (&["main"], 1)],
            ),
            of_host("b", NOON_NS - HOUR_NS, &[(&["main", "parse", "main"], 5)]),
            of_host("b", NOON_NS - HOUR_NS / 2, &[(&["main"], 2)]),
            of_host("a", NOON_NS, &[(&["main", "parse"], 7)]),
            of_host("b", NOON_NS, &[(&["idle"], 11)]),
        ]
    };
    for is_flushed in [false, true] {
        let samples = compared(profiles(), is_flushed, &sides("{}", "cpu"));
        assert_eq!(samples.clusters, ClusterKind::Instances);
        assert!(samples.is_paired);
        assert_eq!(samples.unsampled, None);
        assert_eq!(samples.sides[0].all.by_cluster, [40.0, 70.0]);
        // A sample weighs its period.
        assert_eq!(samples.sides[0].all.squares, 1100.0);
        let main = function(&samples, 0, "main");
        // Recursion counts once in the total.
        assert_eq!(main.total.by_cluster, [40.0, 70.0]);
        assert_eq!(main.own.by_cluster, [10.0, 70.0]);
        let parse = function(&samples, 0, "parse");
        assert_eq!(parse.own.by_cluster, [30.0, 0.0]);
        assert_eq!(parse.total.by_cluster, [30.0, 50.0]);
        assert_eq!(function(&samples, 1, "idle").own.by_cluster, [0.0, 110.0]);
        let exposures = samples.sides[0].exposure_ns.clone();
        let half_an_hour = (HOUR_NS / 2 + 10 * SECOND_NS) as f64;
        assert_eq!(exposures, [10.0 * SECOND_NS as f64, half_an_hour]);
    }
}

#[test]
fn filters_are_those_of_trees() {
    let profiles = vec![
        of_host(
            "a",
            NOON_NS,
            &[(&["main", "parse", "alloc"], 3), (&["main", "gc"], 4)],
        ),
        of_host("b", NOON_NS, &[(&["main", "parse", "alloc"], 5)]),
        of_host("a", NOON_NS - HOUR_NS, &[(&["main", "parse"], 1)]),
        of_host("b", NOON_NS - HOUR_NS, &[(&["main", "parse"], 1)]),
    ];
    let filters = [
        (FilterKind::Ignore, "^gc$"),
        (FilterKind::Hide, "fn:^alloc$"),
    ];
    let sides = sides("{}", "cpu").map(|side| Query {
        filters: Filters::parse(&filters).expect("patterns"),
        ..side
    });
    let samples = compared(profiles, true, &sides);
    assert_eq!(samples.sides[1].all.by_cluster, [30.0, 50.0]);
    // What a hidden function had is its caller's.
    assert_eq!(function(&samples, 1, "parse").own.by_cluster, [30.0, 50.0]);
    let names: Vec<&str> = (0..samples.frames.frames().len() as u32)
        .map(FrameId)
        .filter(|&id| samples.sides[1].of(id).is_some())
        .map(|id| samples.frames.name(id))
        .collect();
    assert!(
        !names.contains(&"alloc") && !names.contains(&"gc"),
        "{names:?}"
    );
}

#[test]
fn one_instance_is_windows_of_time_or_nothing() {
    let of_hour = |count: i64| {
        let starts = [-HOUR_NS, 0].into_iter().flat_map(move |hour_ns| {
            (0..count).map(move |number| NOON_NS + hour_ns + number * 60 * SECOND_NS)
        });
        starts
            .map(|start_ns| of_host("a", start_ns, &[(&["main"], 2)]))
            .collect()
    };
    let samples = compared(of_hour(40), true, &sides("{}", "cpu"));
    assert_eq!(samples.clusters, ClusterKind::Windows);
    assert!(!samples.is_paired);
    let windows = &samples.sides[1].all.by_cluster;
    assert_eq!((windows.len(), windows.iter().sum::<f64>()), (30, 800.0));
    let exposure: f64 = samples.sides[1].exposure_ns.iter().sum();
    assert!(
        (exposure - (39 * 60 + 10) as f64 * 1e9).abs() < 1e3,
        "{exposure}"
    );
    let samples = compared(of_hour(3), true, &sides("{}", "cpu"));
    assert_eq!(samples.clusters, ClusterKind::One);
    assert_eq!(samples.sides[1].all.by_cluster, [60.0]);
}

#[test]
fn services_that_share_hosts_are_not_their_instances() {
    let both = |host: &str, start_ns: i64| {
        ["web", "db"].map(|service| {
            let labels = [("service_name", service), ("host", host), ("pod", service)];
            profile(&labels, CPU, start_ns, &[(&["main"], 1)])
        })
    };
    let profiles = || {
        let starts = [NOON_NS - HOUR_NS, NOON_NS];
        let hosts = starts
            .into_iter()
            .flat_map(|start_ns| ["a", "b", "c"].map(|it| (it, start_ns)));
        hosts
            .flat_map(|(host, start_ns)| both(host, start_ns))
            .collect()
    };
    let samples = compared(profiles(), true, &sides("{}", "cpu"));
    assert_eq!(samples.sides[0].all.by_cluster, [20.0; 3]);
    let one = compared(profiles(), true, &sides("{service_name=\"web\"}", "cpu"));
    assert_eq!(one.sides[0].all.by_cluster, [10.0; 3]);
    assert!(one.is_paired);
}

#[test]
fn many_instances_are_grouped_alike_on_both_sides() {
    let starts = [NOON_NS - HOUR_NS, NOON_NS];
    let profiles = starts.into_iter().flat_map(|start_ns| {
        (0..70).map(move |number| {
            let host = format!("host-{number:02}");
            of_host(&host, start_ns, &[(&["main"], number)])
        })
    });
    let samples = compared(profiles.collect(), false, &sides("{}", "cpu"));
    assert!(samples.is_paired);
    assert_eq!(samples.sides[0].all.by_cluster.len(), 32);
    assert_eq!(
        samples.sides[0].all.by_cluster,
        samples.sides[1].all.by_cluster
    );
    let sum: f64 = samples.sides[0].all.by_cluster.iter().sum();
    assert_eq!(sum, (0..70).sum::<i64>() as f64 * 10.0);
}

#[test]
fn rows_of_bytes_are_samples_of_their_own_weight() {
    let bytes = "memory:alloc_space:bytes:space:bytes";
    let profiles = [NOON_NS - HOUR_NS, NOON_NS]
        .into_iter()
        .flat_map(|start_ns| {
            ["a", "b"].map(|host| {
                let labels = [("service_name", "shop"), ("host", host)];
                profile(
                    &labels,
                    bytes,
                    start_ns,
                    &[(&["main", "f"], 3), (&["main", "g"], 4)],
                )
            })
        });
    let samples = compared(profiles.collect(), true, &sides("{}", "alloc"));
    assert_eq!(samples.unsampled, None);
    let main = function(&samples, 0, "main");
    assert_eq!(main.total.by_cluster, [70.0, 70.0]);
    assert_eq!(main.total.squares, 2.0 * (900.0 + 1600.0));
}

#[test]
fn states_are_no_samples() {
    let state = "memory:inuse_space:bytes:space:bytes";
    let labels = [("service_name", "shop"), ("host", "a")];
    let profiles = vec![profile(&labels, state, NOON_NS, &[(&["main"], 3)])];
    let samples = compared(profiles, true, &sides("{}", "inuse"));
    let reason = samples.unsampled.expect("a reason");
    assert!(reason.contains("states"), "{reason}");
}
