//! What programs count between scrapes is what is left of their totals.

use std::collections::BTreeMap;

use candela_model::FrameKind;
use candela_model::Labels;
use candela_model::Location;
use candela_model::Mapping;
use candela_model::ProfileSeries;
use candela_model::SampleLabel;
use proptest::prelude::*;

use super::*;

/// Totals by function, and whether the stack has a label.
type Counts = BTreeMap<(u8, bool), i64>;

const ALLOCATED: [&str; 5] = ["memory", "alloc_space", "bytes", "space", "bytes"];
const LIVE: [&str; 5] = ["memory", "inuse_space", "bytes", "space", "bytes"];

/// A heap profile; every other sample is written in two parts, and functions in an order that
/// depends on `salt`, so that ids say nothing.
fn heap(counts: &Counts, program: u64, salt: u8) -> Profile {
    let mut profile = Profile::default();
    let file = profile.symbols.strings.intern("/bin/shop");
    let mapping = profile.symbols.intern_mapping(Mapping {
        memory_start: program,
        file,
        ..Mapping::default()
    });
    let key = profile.symbols.strings.intern("size");
    let value = profile.symbols.strings.intern("large");
    let labelled = profile
        .label_sets
        .intern(vec![SampleLabel::text(key, value)]);
    let mut rows: Vec<(&(u8, bool), &i64)> = counts.iter().collect();
    rows.sort_by_key(|((function, _), _)| function ^ salt);
    let new = |parts: [&str; 5]| {
        let [name, sample, unit, period, period_unit] = parts;
        let profile_type = ProfileType::new(name, sample, unit, period, period_unit);
        ProfileSeries::new(Labels::default(), profile_type)
    };
    let mut series = [new(ALLOCATED), new(LIVE)];
    for (&(function, has_label), &total) in rows {
        let id = profile
            .symbols
            .intern_function(&format!("f{function}"), "", "f.go", 1);
        let location = Location::new(FrameKind::Go, u64::from(function)).in_mapping(mapping);
        let location = profile.symbols.intern_location(&location, &[(id, 3, 0)]);
        let mut sample = Sample::new(profile.stacks.intern(&[location]), total);
        if has_label {
            sample.label_set = labelled;
        }
        let parts = match function % 2 {
            0 => vec![total],
            _ => vec![total / 3, total - total / 3],
        };
        for value in parts {
            for series in &mut series {
                series.samples.push(Sample { value, ..sample });
            }
        }
    }
    profile.series.extend(series);
    profile
}

/// What a column has, by function and label.
fn column(profile: &Profile, position: usize) -> Counts {
    let mut counts = Counts::new();
    for sample in &profile.series[position].samples {
        let location = profile.stacks.get(sample.stack)[0];
        let function = profile.symbols.lines(location)[0].function;
        let name = profile
            .symbols
            .strings
            .get(profile.symbols.function(function).name);
        let number = name[1..].parse().expect("a number");
        let has_label = !profile.label_sets.get(sample.label_set).is_empty();
        *counts.entry((number, has_label)).or_default() += sample.value;
    }
    counts
}

fn without_zeros(counts: &Counts) -> Counts {
    let counts = counts.iter().filter(|(_, value)| **value != 0);
    counts.map(|(key, value)| (*key, *value)).collect()
}

#[test]
fn the_first_scrape_says_nothing_but_states() {
    let counts = Counts::from([((1, false), 10), ((2, true), 20)]);
    let mut cumulative = Cumulative::default();
    let mut profile = heap(&counts, 1, 0);
    assert_eq!(cumulative.subtract(&mut profile), Ok(Subtracted::First));
    assert!(profile.series[0].samples.is_empty());
    assert_eq!(column(&profile, 1), counts);
    assert_eq!(cumulative.len(), 2);
}

#[test]
fn a_stack_that_is_gone_is_a_restart() {
    let mut cumulative = Cumulative::default();
    let before = Counts::from([((1, false), 10), ((2, false), 1)]);
    let after = Counts::from([((1, false), 500), ((3, false), 500)]);
    assert_eq!(
        cumulative.subtract(&mut heap(&before, 1, 0)),
        Ok(Subtracted::First)
    );
    let mut profile = heap(&after, 1, 0);
    assert_eq!(cumulative.subtract(&mut profile), Ok(Subtracted::Restarted));
    assert!(profile.series[0].samples.is_empty());
    assert_eq!(column(&profile, 1), after, "states stay");
}

#[test]
fn another_program_is_a_restart_although_all_has_grown() {
    let mut cumulative = Cumulative::default();
    let counts = Counts::from([((1, false), 10)]);
    assert_eq!(
        cumulative.subtract(&mut heap(&counts, 1, 0)),
        Ok(Subtracted::First)
    );
    assert_eq!(
        cumulative.subtract(&mut heap(&counts, 2, 0)),
        Ok(Subtracted::Restarted)
    );
    assert_eq!(
        cumulative.subtract(&mut heap(&counts, 2, 0)),
        Ok(Subtracted::Added)
    );
}

#[test]
fn totals_below_zero_are_refused_and_forgotten() {
    let mut cumulative = Cumulative::default();
    let counts = Counts::from([((2, false), 10)]);
    let broken = Counts::from([((2, false), -1)]);
    assert_eq!(
        cumulative.subtract(&mut heap(&counts, 1, 0)),
        Ok(Subtracted::First)
    );
    let error = cumulative
        .subtract(&mut heap(&broken, 1, 0))
        .expect_err("negative");
    assert_eq!(error.to_string(), "a total of alloc_space is negative");
    assert_eq!(
        cumulative.subtract(&mut heap(&counts, 1, 0)),
        Ok(Subtracted::First)
    );
}

#[test]
fn more_stacks_than_are_remembered_are_refused() {
    let mut profile = Profile::default();
    let [name, sample, unit, period, period_unit] = ALLOCATED;
    let profile_type = ProfileType::new(name, sample, unit, period, period_unit);
    let mut series = ProfileSeries::new(Labels::default(), profile_type);
    for address in 0..=MOST_TOTALS as u64 {
        let location = Location::new(FrameKind::Go, address + 1);
        let location = profile.symbols.intern_location(&location, &[]);
        series
            .samples
            .push(Sample::new(profile.stacks.intern(&[location]), 1));
    }
    profile.series.push(series);
    let mut cumulative = Cumulative::default();
    let limit = MOST_TOTALS;
    assert_eq!(
        cumulative.subtract(&mut profile),
        Err(DeltaError::TooMany { limit })
    );
    assert!(cumulative.is_empty());
}

#[test]
fn only_what_is_known_to_be_a_total_is_subtracted() {
    let mut cumulative = Cumulative::default();
    let counts = Counts::from([((2, false), 10)]);
    let renamed = |sample_type: &str| {
        let mut profile = heap(&counts, 1, 0);
        sample_type.clone_into(&mut profile.series[0].profile_type.sample_type);
        profile
    };
    for (sample_type, is_subtracted) in [
        ("alloc_objects", true),
        ("contentions", true),
        ("delay", true),
        ("objects", false),
        ("space", false),
        ("inuse_objects", false),
    ] {
        for _ in 0..2 {
            let mut profile = renamed(sample_type);
            assert!(cumulative.subtract(&mut profile).is_ok());
            let left = column(&profile, 0);
            assert_eq!(left.is_empty(), is_subtracted, "{sample_type}");
        }
    }
}

/// What a program does between two scrapes.
#[derive(Clone, Debug)]
enum Step {
    Grow(Vec<(u8, bool, i64)>),
    /// It starts again, and grows before it is asked.
    Restart(Vec<(u8, bool, i64)>),
}

fn step() -> impl Strategy<Value = Step> {
    let growth = || prop::collection::vec((0..6_u8, any::<bool>(), 0..1000_i64), 0..8);
    prop_oneof![
        4 => growth().prop_map(Step::Grow),
        1 => growth().prop_map(Step::Restart),
    ]
}

proptest! {
    /// For each stack the sums of what was added are what its totals have grown by, in every life of
    /// the program of which the restart can be seen; nothing is ever negative.
    #[test]
    fn sums_of_what_was_added_are_the_growth(
        steps in prop::collection::vec(step(), 1..12),
        moves_in_memory in any::<bool>(),
    ) {
        let mut cumulative = Cumulative::default();
        let mut totals = Counts::new();
        let mut expected = Counts::new();
        let mut sums = Counts::new();
        let mut previous: Option<Counts> = None;
        let mut program = 1;
        for (position, step) in steps.into_iter().enumerate() {
            let growth = match step {
                Step::Grow(growth) => growth,
                Step::Restart(growth) => {
                    totals.clear();
                    program += u64::from(moves_in_memory);
                    // What moved cannot be taken for the same; without a sign the model decides as
                    // anybody would have to, by what went down.
                    if moves_in_memory {
                        previous = None;
                    }
                    growth
                }
            };
            for (function, has_label, value) in growth {
                *totals.entry((function, has_label)).or_default() += value;
            }
            let has_gone_down = previous.as_ref().is_some_and(|previous| {
                previous.iter().any(|(key, value)| totals.get(key).copied().unwrap_or(0) < *value)
            });
            let mut profile = heap(&totals, program, position as u8);
            let outcome = cumulative.subtract(&mut profile).expect("nothing is negative");
            let added = column(&profile, 0);
            prop_assert!(profile.series[0].samples.iter().all(|sample| sample.value > 0));
            prop_assert_eq!(without_zeros(&column(&profile, 1)), without_zeros(&totals));
            prop_assert_eq!(profile.validate(), Ok(()));
            let is_comparable = previous.is_some() && !has_gone_down;
            prop_assert_eq!(outcome == Subtracted::Added, is_comparable);
            if let (true, Some(previous)) = (is_comparable, &previous) {
                for (key, total) in &totals {
                    let before = previous.get(key).copied().unwrap_or(0);
                    *expected.entry(*key).or_default() += total - before;
                }
            }
            for (key, value) in added {
                *sums.entry(key).or_default() += value;
            }
            previous = Some(totals.clone());
        }
        prop_assert_eq!(without_zeros(&sums), without_zeros(&expected));
    }
}
