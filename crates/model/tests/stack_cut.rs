//! Cut stacks keep every value, and as much of themselves as was asked for.
#![expect(clippy::expect_used, reason = "a test says what went wrong by failing")]

use std::collections::BTreeMap;
use std::collections::BTreeSet;

use candela_model::FrameKind;
use candela_model::Labels;
use candela_model::Location;
use candela_model::PgoOptions;
use candela_model::Profile;
use candela_model::ProfileSeries;
use candela_model::Sample;
use candela_model::StackId;
use proptest::prelude::*;

/// Function and line of each location, root first, and the value.
type Plain = (Vec<(u8, u32)>, i64);

fn profile_of(samples: &[Plain]) -> Profile {
    let mut profile = Profile::default();
    let profile_type = "process_cpu:cpu:nanoseconds:cpu:nanoseconds"
        .parse()
        .expect("five parts");
    let mut series = ProfileSeries::new(Labels::default(), profile_type);
    for (frames, value) in samples {
        let leaf_first = frames.iter().rev().map(|&(function, line)| {
            let symbols = &mut profile.symbols;
            let name = format!("f{function}");
            let id = symbols.intern_function(&name, "", "", 1);
            let place = Location::new(FrameKind::Go, 0x1000 + u64::from(line));
            symbols.intern_location(&place, &[(id, line, 0)])
        });
        let leaf_first: Vec<_> = leaf_first.collect();
        let stack = profile.stacks.intern(&leaf_first);
        series.samples.push(Sample::new(stack, *value));
    }
    profile.series.push(series);
    profile
}

/// Names and lines, root first.
fn frames(profile: &Profile, stack: StackId) -> Vec<(String, u32)> {
    let locations = profile.stacks.get(stack).iter().rev();
    let lines = locations.flat_map(|&location| profile.symbols.lines(location));
    lines
        .map(|line| {
            let name = profile.symbols.function(line.function).name;
            (profile.symbols.strings.get(name).to_owned(), line.line)
        })
        .collect()
}

fn stacks(profile: &Profile) -> BTreeMap<Vec<(String, u32)>, i64> {
    let samples = &profile.series[0].samples;
    let stacks = samples
        .iter()
        .map(|sample| (frames(profile, sample.stack), sample.value));
    let found: BTreeMap<_, _> = stacks.collect();
    assert_eq!(found.len(), samples.len(), "equal samples are added up");
    found
}

fn nodes(profile: &Profile) -> BTreeSet<Vec<(String, u32)>> {
    let samples = profile.series[0].samples.iter();
    let stacks = samples.map(|sample| frames(profile, sample.stack));
    let paths = stacks.flat_map(|stack| {
        let ends = 1..=stack.len();
        ends.map(move |end| stack[..end].to_vec())
    });
    paths.collect()
}

fn samples() -> impl Strategy<Value = Vec<Plain>> {
    let frames = prop::collection::vec((0_u8..4, 1_u32..4), 0..6);
    prop::collection::vec((frames, -20_i64..1000), 0..40)
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn pruning_loses_no_value(samples in samples(), max_nodes in 0_usize..40) {
        let whole = profile_of(&samples);
        let mut pruned = whole.clone();
        let cut = pruned.prune_stacks(max_nodes);
        prop_assert_eq!(pruned.validate(), Ok(()));
        prop_assert_eq!(pruned.series[0].total(), whole.series[0].total());
        let before = nodes(&whole);
        let after = nodes(&pruned);
        let kept = after.iter().filter(|path| path.last().is_some_and(|(name, _)| name != "other")).count();
        prop_assert_eq!(kept, before.len() - cut);
        prop_assert_eq!(cut, if max_nodes == 0 { 0 } else { before.len().saturating_sub(max_nodes) });
        // What stays weighs no less than what goes.
        let weight = |path: &Vec<(String, u32)>| -> u64 {
            let below = whole.series[0].samples.iter();
            let below = below.filter(|sample| frames(&whole, sample.stack).starts_with(path));
            below.map(|sample| sample.value.unsigned_abs()).sum()
        };
        let heaviest_cut = before.difference(&after).map(weight).max().unwrap_or(0);
        let lightest_kept = before.intersection(&after).map(weight).min().unwrap_or(u64::MAX);
        prop_assert!(heaviest_cut <= lightest_kept);
    }

    #[test]
    fn compilers_get_the_leaf_side(samples in samples(), keep_locations in 0_usize..4, aggregate_callees: bool) {
        let mut expected: BTreeMap<Vec<(String, u32)>, i64> = BTreeMap::new();
        for (frames, value) in &samples {
            let keep = if keep_locations == 0 { frames.len() } else { keep_locations.min(frames.len()) };
            let kept = frames[frames.len() - keep..].iter();
            let mut kept: Vec<(String, u32)> = kept.map(|&(function, line)| (format!("f{function}"), line)).collect();
            if let Some(leaf) = kept.last_mut().filter(|_| aggregate_callees) {
                leaf.1 = 0;
            }
            *expected.entry(kept).or_default() += value;
        }
        let mut reduced = profile_of(&samples);
        reduced.reduce_for_pgo(&PgoOptions { keep_locations, aggregate_callees });
        prop_assert_eq!(reduced.validate(), Ok(()));
        prop_assert_eq!(stacks(&reduced), expected);
    }
}

#[test]
fn what_is_cut_is_other() {
    let mut profile = profile_of(&[
        (vec![(0, 1), (1, 1)], 100),
        (vec![(0, 1), (2, 1)], 3),
        (vec![(0, 1), (3, 1), (1, 1)], 4),
        (vec![(3, 1)], 5),
    ]);
    assert_eq!(profile.prune_stacks(2), 4);
    let frame = |name: &str, line| (name.to_owned(), line);
    let expected = [
        (vec![frame("f0", 1), frame("f1", 1)], 100),
        (vec![frame("f0", 1), frame("other", 0)], 7),
        (vec![frame("other", 0)], 5),
    ];
    assert_eq!(stacks(&profile), expected.into());
}

#[test]
fn an_address_without_symbols_stays() {
    let mut profile = profile_of(&[(vec![(0, 1)], 1)]);
    let bare = profile
        .symbols
        .intern_location(&Location::new(FrameKind::Native, 0x42), &[]);
    let stack = profile.stacks.intern(&[bare]);
    profile.series[0].samples.push(Sample::new(stack, 2));
    profile.reduce_for_pgo(&PgoOptions {
        keep_locations: 1,
        aggregate_callees: true,
    });
    assert_eq!(profile.series[0].samples[1].stack, stack);
}
