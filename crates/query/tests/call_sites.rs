//! Stacks that begin with the functions of a call site: in trees, merged profiles and lines alike.

use crate::common::CPU;
use crate::common::NOON_NS;
use crate::common::engine;
use crate::common::query;
use candela_model::Filter;
use candela_model::FilterKind;
use candela_model::Filters;
use candela_model::FrameKind;
use candela_model::Labels;
use candela_model::Location;
use candela_model::Profile;
use candela_model::ProfileSeries;
use candela_model::Sample;
use candela_query::PointValue;
use candela_query::Query;
use candela_query::SeriesOptions;

/// Stacks root first with their values.
const STACKS: [(&[&str], i64); 6] = [
    (&["main", "serve", "parse"], 1),
    (&["main", "serve", "parse", "serve"], 2),
    (&["main", "serve"], 4),
    (&["main", "parse"], 8),
    (&["serve", "main"], 16),
    (&["main"], 32),
];

fn profile() -> Profile {
    let mut profile = Profile::default();
    let labels = Labels::from_pairs([("service_name", "a")]);
    let mut series = ProfileSeries::new(labels, CPU.parse().expect("five parts"));
    series.start_ns = NOON_NS;
    for (names, value) in STACKS {
        let leaf_first = names.iter().rev().map(|name| {
            let symbols = &mut profile.symbols;
            let function = symbols.intern_function(name, "", "", 0);
            let place = Location::new(FrameKind::Go, 0);
            symbols.intern_location(&place, &[(function, 1, 0)])
        });
        let leaf_first: Vec<_> = leaf_first.collect();
        let stack = profile.stacks.intern(&leaf_first);
        series.samples.push(Sample::new(stack, value));
    }
    profile.series.push(series);
    profile
}

fn at(call_site: &[&str]) -> Query {
    let frames = call_site.iter();
    let frames = frames.map(|name| Filter::new(FilterKind::Path, name).expect("a frame"));
    Query {
        filters: Filters::new(frames.collect()).expect("few"),
        ..query("{}", "cpu")
    }
}

#[test]
fn the_subtree_of_a_call_site_is_the_same_everywhere() {
    for is_flushed in [false, true] {
        let directory = tempfile::tempdir().expect("a temporary directory");
        let (engine, _store) = engine(directory.path(), vec![profile()], is_flushed);
        for (call_site, total, leaves) in [
            (&["main"][..], 47, 5),
            (&["main", "serve"], 7, 4),
            (&["main", "serve", "parse"], 3, 4),
            (&["serve"], 16, 2),
            (&["parse"], 0, 0),
            (&[], 63, 7),
        ] {
            let question = at(call_site);
            let tree = engine.flame_tree(&question).expect("a tree").value;
            assert_eq!(tree.root_total(), total, "{call_site:?}");
            // The path to the subtree is shown, so that it stands where it stood.
            assert_eq!(tree.len().saturating_sub(1), leaves, "{call_site:?}");
            let merged = engine.profile(&question).expect("a profile").value;
            let merged = merged.series.iter().map(ProfileSeries::total);
            assert_eq!(merged.sum::<i64>(), total, "{call_site:?}");
            let lines = engine.series(&question, &SeriesOptions::default());
            let lines = lines.expect("lines").value.series;
            let points = lines.iter().flat_map(|line| &line.points);
            let points = points.map(|&(_, value)| match value {
                PointValue::Whole(value) => value,
                PointValue::Fraction(_) => panic!("sums are whole"),
            });
            assert_eq!(points.sum::<i64>(), total, "{call_site:?}");
        }
    }
}
