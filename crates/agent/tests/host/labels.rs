//! Samples have the labels that programs give the work of their threads: by custom-labels, and as attributes of the
//! OpenTelemetry thread context (OTEP 4947).

use std::collections::BTreeMap;
use std::path::Path;
use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;

use crate::support;
use candela_agent::DropReason;
use candela_agent::Kind;
use candela_agent::RecordOptions;
use candela_agent::RecordTargets;
use candela_agent::Recording;
use candela_model::LabelValue;
use candela_model::Profile;
use candela_model::Sample;

/// Labels that are not of the program.
const OURS: [&str; 4] = ["pid", "thread_id", "thread_name", "off_cpu_reason"];

fn record(directory: &Path, flags: &[&str]) -> Recording {
    let program = directory.join("labelled");
    let common = ["-O2", "-g", "-pthread", "-rdynamic"];
    let flags = common.iter().chain(flags).map(PathBuf::from);
    let files = ["-o".into(), program.clone(), support::source("labelled.c")];
    let arguments = flags.chain(files);
    support::run("gcc", arguments);
    let (mut child, line) = support::start(&mut Command::new(program));
    let options = RecordOptions {
        rate_hz: 499,
        kinds: [Kind::Cpu, Kind::OffCpu].into(),
        duration: Some(Duration::from_secs(1)),
        ..RecordOptions::new(RecordTargets::Pids(vec![child.id()]))
    };
    let recording = candela_agent::record(options, || {});
    child.kill().expect("it runs until it is killed");
    child.wait().expect("it is our child");
    assert_eq!(line, "ready\n");
    recording.unwrap_or_else(|error| panic!("{error}"))
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

fn assert_labels(recording: &Recording) {
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
    assert!(users * 4 > first, "{users} of {first} samples have a user");
    assert!(recording.report.count(DropReason::LabelsCut) > 0);
}

#[test]
fn attributes_of_the_thread_context_have_the_names_that_the_process_publishes() {
    if support::cannot_sample_off_cpu() || support::lacks("gcc") {
        return;
    }
    let _turn = support::turn();
    let directory = tempfile::tempdir().expect("a temporary directory");
    assert_labels(&record(directory.path(), &[]));
}

#[test]
fn custom_labels_are_labels_of_samples() {
    if support::cannot_sample_off_cpu() || support::lacks("gcc") {
        return;
    }
    let _turn = support::turn();
    let directory = tempfile::tempdir().expect("a temporary directory");
    let recording = record(directory.path(), &["-DCUSTOM_LABELS"]);
    assert_labels(&recording);
}
