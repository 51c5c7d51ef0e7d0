//! Samples have the labels that programs give the work of their threads: by custom-labels, and as attributes of the
//! OpenTelemetry thread context (OTEP 4947).

use std::collections::BTreeMap;
use std::io::Write;
use std::path::Path;
use std::path::PathBuf;
use std::process::Command;
use std::process::Stdio;
use std::time::Duration;
use std::time::Instant;

use crate::support;
use crate::support::Running;
use candela_agent::DropReason;
use candela_agent::Kind;
use candela_agent::RecordOptions;
use candela_agent::RecordTargets;
use candela_agent::Recording;
use candela_model::LabelValue;
use candela_model::Profile;
use candela_model::Sample;
use candela_testing::expect_within;
use candela_testing::more_than;

/// Labels that are not of the program.
const OURS: [&str; 4] = ["pid", "thread_id", "thread_name", "off_cpu_reason"];

fn record(directory: &Path, flags: &[&str]) -> Recording {
    let program = directory.join("labelled");
    let common = ["-O2", "-g", "-pthread", "-rdynamic"];
    let flags = common.iter().chain(flags).map(PathBuf::from);
    let files = ["-o".into(), program.clone(), support::source("labelled.c")];
    let arguments = flags.chain(files);
    support::run("gcc", arguments);
    let mut command = Command::new(program);
    let (child, line) = support::start(command.stdin(Stdio::piped()));
    let mut program = Running(child);
    assert_eq!(line, "ready\n");
    let options = RecordOptions {
        rate_hz: 499,
        kinds: [Kind::Cpu, Kind::OffCpu].into(),
        ..RecordOptions::new(RecordTargets::Pids(vec![program.pid()]))
    };
    support::record_while(options, || {
        let begun = Instant::now();
        support::wait_for_work(program.pid(), Duration::from_millis(150));
        let mut stdin = program.0.stdin.take().expect("piped");
        stdin.write_all(b"\n").expect("it reads");
        // A name that is not known is looked for again after twice the time each, so that it is found before this ends.
        let end = 3 * begun.elapsed();
        while begun.elapsed() < end {
            support::wait_for_work(program.pid(), Duration::from_millis(50));
        }
    })
}

/// The labels that the program gave the work that a sample is of.
fn labels_of(profile: &Profile, sample: &Sample) -> BTreeMap<String, String> {
    let text = |id| profile.symbols.strings.get(id).to_owned();
    let labels = profile.label_sets.get(sample.label_set).iter();
    let labels = labels.map(|label| {
        let value = match label.value {
            LabelValue::Text(value) => text(value),
            LabelValue::Number { value, .. } => value.to_string(),
        };
        (text(label.key), value)
    });
    labels
        .filter(|(key, _)| !OURS.contains(&key.as_str()))
        .collect()
}

/// With more than `share` of the first thread's samples under a name that may have been published late.
fn assert_labels(recording: &Recording, is_named_late: bool, share: f64) {
    let profile = &recording.profile;
    let unread = recording.report.count(DropReason::ContextUnread);
    assert_eq!(unread, 0, "labels that could not be read");
    let (mut first, mut users, mut second) = (0, 0, 0);
    let cut = format!("/second/{}", "x".repeat(56));
    for sample in profile.series.iter().flat_map(|series| &series.samples) {
        let locations = profile.stacks.get(sample.stack).iter();
        let names = locations.flat_map(|&location| support::names_of(profile, location));
        let names: Vec<String> = names.collect();
        let is_in = |function: &str| names.iter().any(|name| name == function);
        let labels = labels_of(profile, sample);
        let mut labels: BTreeMap<&str, &str> = labels
            .iter()
            .map(|(key, value)| (key.as_str(), value.as_str()))
            .collect();
        if is_in("serve_first") {
            // Until its name was published.
            if let Some(user) = labels.remove("user") {
                assert_eq!(user, "me");
                users += 1;
            }
            assert_eq!(labels, [("http_route", "/first")].into());
            first += 1;
        } else if is_in("serve_second") {
            assert_eq!(labels, [("http_route", &*cut)].into());
            second += 1;
        } else if is_in("serve_nobody") {
            assert_eq!(labels, BTreeMap::new());
        }
    }
    assert!(first > 0 && second > 0, "{first}, {second}");
    let named = f64::from(users) / f64::from(first);
    let what = "share of samples with a name that is published late";
    expect_within(what, named, more_than(share), first);
    assert_eq!(
        users < first,
        is_named_late,
        "{users} of {first} samples have a user"
    );
    assert!(recording.report.count(DropReason::LabelsCut) > 0);
}

#[test]
fn attributes_of_the_thread_context_have_the_names_that_the_process_publishes() {
    check_thread_context(0.0);
}

pub(crate) fn check_thread_context(share: f64) {
    if support::cannot_sample_off_cpu() || support::lacks("gcc") {
        return;
    }
    let _turn = support::turn();
    let directory = tempfile::tempdir().expect("a temporary directory");
    assert_labels(&record(directory.path(), &[]), true, share);
}

#[test]
fn custom_labels_are_labels_of_samples() {
    if support::cannot_sample_off_cpu() || support::lacks("gcc") {
        return;
    }
    let _turn = support::turn();
    let directory = tempfile::tempdir().expect("a temporary directory");
    let recording = record(directory.path(), &["-DCUSTOM_LABELS"]);
    assert_labels(&recording, false, 0.0);
}
