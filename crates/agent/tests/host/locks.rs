//! Waits for locks: how often, how long, for which lock and who held it.

use std::path::Path;
use std::path::PathBuf;
use std::process::Command;

use crate::support;
use candela_agent::Kind;
use candela_agent::RecordOptions;
use candela_agent::RecordTargets;
use candela_agent::Wakers;
use candela_model::LabelValue;
use candela_model::Profile;
use candela_model::Sample;
use candela_testing::expect_within;

const CONTENTIONS: &str = "mutex:contentions:count:contentions:count";
const DELAY: &str = "mutex:delay:nanoseconds:contentions:count";
const OFF_CPU: &str = "off_cpu:off_cpu:nanoseconds:off_cpu:nanoseconds";
const ROUNDS: i64 = 50;

fn build(directory: &Path) -> PathBuf {
    let program = directory.join("locks");
    let flags = ["-O2", "-g", "-fomit-frame-pointer", "-pthread", "-o"];
    let files = [program.clone(), support::source("locks.c")];
    support::run("gcc", flags.map(Into::into).into_iter().chain(files));
    program
}

fn samples_of<'a>(profile: &'a Profile, profile_type: &'a str) -> impl Iterator<Item = &'a Sample> {
    let of_type = profile
        .series
        .iter()
        .filter(move |series| series.profile_type.to_string() == profile_type);
    of_type.flat_map(|series| &series.samples)
}

fn functions(profile: &Profile, sample: &Sample) -> impl Iterator<Item = String> {
    let locations = profile.stacks.get(sample.stack).iter();
    locations.flat_map(|&location| support::names_of(profile, location))
}

fn label<'a>(profile: &'a Profile, sample: &Sample, key: &str) -> Option<&'a str> {
    let strings = &profile.symbols.strings;
    let labels = profile.label_sets.get(sample.label_set).iter();
    let mut found = labels.filter(|label| strings.get(label.key) == key);
    found.next().map(|label| match label.value {
        LabelValue::Text(text) => strings.get(text),
        LabelValue::Number { .. } => panic!("{key} is a text"),
    })
}

#[test]
fn waits_for_a_mutex_are_told_with_its_address_and_who_held_it() {
    check_waits_of_main(&[]);
}

#[test]
fn waits_for_a_mutex_with_priority_inheritance_are_told_alike() {
    check_waits_of_main(&["inherit"]);
}

/// Waits for a mutex of the sort that the program is told to make.
fn check_waits_of_main(sort: &[&str]) {
    if support::cannot_sample_off_cpu() || support::lacks("gcc") {
        return;
    }
    let directory = tempfile::tempdir().expect("a temporary directory");
    let truth = directory.path().join("truth");
    let mut command = Command::new(build(directory.path()));
    command.arg(ROUNDS.to_string()).arg(&truth).args(sort);
    let options = RecordOptions {
        // Each wait is longer than the sampling period, so that there is no chance in it.
        rate_hz: 499,
        kinds: [Kind::Lock].into(),
        ..RecordOptions::new(RecordTargets::Command(command))
    };
    let recording = candela_agent::record(options, || {}).unwrap_or_else(|error| panic!("{error}"));
    let profile = &recording.profile;

    let truth = std::fs::read_to_string(truth).expect("it wrote the truth");
    let mut truth = truth.split_whitespace();
    let mut word = || truth.next().expect("four words");
    let (rounds, seen_ns, waited_ns, address) = (word(), word(), word(), word());
    // The thread that keeps the lock may have to wait for a moment, too.
    let is_of_main = |sample: &&Sample| {
        label(profile, sample, "lock_address") == Some(address)
            && !functions(profile, sample).any(|name| name == "keep")
    };
    let sum = |profile_type| -> i64 {
        let samples = samples_of(profile, profile_type).filter(is_of_main);
        samples.map(|sample| sample.value).sum()
    };
    assert_eq!(sum(CONTENTIONS).to_string(), rounds);
    // No more than by its own clock around the call, and no less than it was seen to wait.
    let number = |text: &str| -> i64 { text.parse().expect("a number") };
    let told_ns = sum(DELAY);
    assert!(
        (number(seen_ns)..=number(waited_ns)).contains(&told_ns),
        "{told_ns} ns, not {seen_ns} to {waited_ns}"
    );
    for sample in samples_of(profile, DELAY) {
        let has = |function: &str| functions(profile, sample).any(|name| name == function);
        assert!(!has("rest"), "sleep is no wait for a lock");
        if has("contend") {
            assert_eq!(label(profile, sample, "lock_address"), Some(address));
            assert_eq!(label(profile, sample, "lock_holder"), Some("keeper"));
            assert_eq!(label(profile, sample, "waker"), None, "nobody asked");
        }
    }
}

#[test]
fn who_ended_a_wait_is_told() {
    // The first ones may be from before there were unwind tables.
    check_who_ended(ROUNDS, 1);
}

/// With `least` waits or more whose stacks have the function that waits.
pub(crate) fn check_who_ended(rounds: i64, least: i32) {
    if support::cannot_sample_off_cpu() || support::lacks("gcc") {
        return;
    }
    let directory = tempfile::tempdir().expect("a temporary directory");
    let mut command = Command::new(build(directory.path()));
    command.arg(rounds.to_string()).arg("/dev/null");
    let mut options = RecordOptions {
        rate_hz: 499,
        kinds: [Kind::OffCpu, Kind::Lock].into(),
        ..RecordOptions::new(RecordTargets::Command(command))
    };
    options.agent.wakers = Wakers::Names;
    let recording = candela_agent::record(options, || {}).unwrap_or_else(|error| panic!("{error}"));
    let profile = &recording.profile;
    for profile_type in [DELAY, OFF_CPU] {
        let (mut contended, mut rested) = (0, 0);
        for sample in samples_of(profile, profile_type) {
            let has = |function: &str| functions(profile, sample).any(|name| name == function);
            let is_preempted = label(profile, sample, "off_cpu_reason") == Some("preempted");
            if has("contend") && !is_preempted {
                contended += 1;
                assert_eq!(label(profile, sample, "waker"), Some("keeper"));
            }
            // The clock ends it, by an interrupt of whatever runs.
            if has("rest") {
                rested += 1;
                assert_eq!(label(profile, sample, "waker"), None);
            }
        }
        let what = format!("waits of {profile_type} with their stack");
        expect_within(&what, f64::from(contended), f64::from(least).., "");
        assert!(profile_type == DELAY || rested > 0, "no rest");
    }
}
