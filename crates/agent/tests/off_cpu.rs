//! Time off CPU: as long as it was, by what waited and for what.

mod support;

use std::io::BufRead;
use std::io::BufReader;
use std::path::Path;
use std::path::PathBuf;
use std::process::Command;
use std::process::Stdio;
use std::time::Duration;

use candela_agent::Kinds;
use candela_agent::RecordOptions;
use candela_agent::RecordTargets;
use candela_agent::Recording;
use candela_model::LabelValue;
use candela_model::Profile;

const CPU: &str = "process_cpu:cpu:nanoseconds:cpu:nanoseconds";
const OFF_CPU: &str = "off_cpu:off_cpu:nanoseconds:off_cpu:nanoseconds";
const SWITCHES: &str = "off_cpu:switches:count:off_cpu:nanoseconds";

/// Why a test is skipped here, unless it can run.
fn cannot_sample_off_cpu() -> bool {
    if support::cannot_sample() || support::lacks("gcc") {
        return true;
    }
    let checks = candela_agent::capabilities();
    let missing = checks
        .iter()
        .find(|check| check.name == "off_cpu" && !check.ok);
    if let Some(check) = missing {
        eprintln!("skipped: {}", check.detail);
    }
    missing.is_some()
}

fn build(directory: &Path) -> PathBuf {
    let program = directory.join("waits");
    let flags = ["-O2", "-g", "-fomit-frame-pointer", "-pthread", "-o"];
    let files = [program.clone(), support::source("waits.c")];
    support::run("gcc", flags.map(Into::into).into_iter().chain(files));
    program
}

/// One value of a profile.
struct Row {
    names: Vec<String>,
    reason: String,
    value: i64,
}

fn rows(profile: &Profile, profile_type: &str) -> Vec<Row> {
    let of_type = profile
        .series
        .iter()
        .filter(|series| series.profile_type.to_string() == profile_type);
    let samples = of_type.flat_map(|series| &series.samples);
    let strings = &profile.symbols.strings;
    let row = |sample: &candela_model::Sample| {
        let locations = profile.stacks.get(sample.stack).iter();
        let labels = profile.label_sets.get(sample.label_set).iter();
        let mut reasons = labels.filter(|label| strings.get(label.key) == "off_cpu_reason");
        let reason = reasons.next().map(|label| match label.value {
            LabelValue::Text(text) => strings.get(text).to_owned(),
            LabelValue::Number { .. } => panic!("a reason is a word"),
        });
        Row {
            names: locations
                .flat_map(|&location| support::names_of(profile, location))
                .collect(),
            reason: reason.unwrap_or_default(),
            value: sample.value,
        }
    };
    samples.map(row).collect()
}

fn total(rows: &[Row], is_wanted: impl Fn(&Row) -> bool) -> f64 {
    let wanted = rows.iter().filter(|row| is_wanted(row));
    wanted.map(|row| row.value as f64).sum()
}

fn has(row: &Row, function: &str) -> bool {
    row.names.iter().any(|name| name == function)
}

fn record(targets: RecordTargets, kinds: Kinds, duration: Option<Duration>) -> Recording {
    let options = RecordOptions {
        rate_hz: 499,
        kinds,
        duration,
        ..RecordOptions::new(targets)
    };
    candela_agent::record(options, || {}).unwrap_or_else(|error| panic!("{error}"))
}

const BOTH: Kinds = Kinds {
    cpu: true,
    off_cpu: true,
};

const ONLY_OFF_CPU: Kinds = Kinds {
    cpu: false,
    off_cpu: true,
};

#[test]
fn the_duty_cycle_of_a_program_is_told_and_both_kinds_make_up_its_time() {
    if cannot_sample_off_cpu() {
        return;
    }
    let _turn = support::turn();
    let directory = tempfile::tempdir().expect("a temporary directory");
    let truth = directory.path().join("truth");
    let mut command = Command::new(build(directory.path()));
    command.args(["duty", "4000"]).arg(&truth);
    let recording = record(RecordTargets::Command(command), BOTH, None);
    assert!(recording.exit_status.is_some_and(|status| status.success()));

    let truth = std::fs::read_to_string(truth).expect("it wrote the truth");
    let numbers = truth.split_whitespace().map(str::parse);
    let numbers: Vec<f64> = numbers.collect::<Result<_, _>>().expect("two numbers");
    let (elapsed_ns, burned_ns) = (numbers[0], numbers[1]);
    let off_cpu = rows(&recording.profile, OFF_CPU);
    let cpu = rows(&recording.profile, CPU);
    let of_main = |row: &Row| has(row, "main");
    let (waited_ns, ran_ns) = (total(&off_cpu, of_main), total(&cpu, of_main));
    let off_by = waited_ns / (elapsed_ns - burned_ns) - 1.0;
    assert!(
        off_by.abs() < 0.02,
        "off by {off_by:.4}; {:?}",
        recording.report
    );
    let both_off_by = (waited_ns + ran_ns) / elapsed_ns - 1.0;
    assert!(both_off_by.abs() < 0.04, "off by {both_off_by:.4}");

    let asleep_ns = total(&off_cpu, |row| row.reason == "sleep" && has(row, "rest"));
    let naps = total(&rows(&recording.profile, SWITCHES), |row| has(row, "rest"));
    assert!(
        asleep_ns > 0.9 * waited_ns,
        "{asleep_ns} of {waited_ns} asleep"
    );
    let expected_naps = (elapsed_ns / 40e6).floor();
    assert!(
        (naps - expected_naps).abs() <= 0.15 * expected_naps,
        "{naps} naps instead of about {expected_naps}"
    );
}

#[test]
fn what_waits_all_the_time_is_told_with_its_stack_and_reason() {
    if cannot_sample_off_cpu() {
        return;
    }
    let directory = tempfile::tempdir().expect("a temporary directory");
    let mut child = Command::new(build(directory.path()))
        .arg("ways")
        .stdout(Stdio::piped())
        .spawn()
        .expect("it was just built");
    let mut line = String::new();
    let stdout = child.stdout.take().expect("piped");
    BufReader::new(stdout).read_line(&mut line).expect("text");
    assert_eq!(line, "ready\n");
    let targets = RecordTargets::Pids(vec![child.id()]);
    let recording = record(targets, ONLY_OFF_CPU, Some(Duration::from_secs(1)));
    child.kill().expect("it waits");
    child.wait().expect("it is ours");

    assert!(rows(&recording.profile, CPU).is_empty());
    let off_cpu = rows(&recording.profile, OFF_CPU);
    let duration_ns = recording.report.duration_ns as f64;
    let ways = [
        ("wait_for_time", "sleep"),
        ("wait_for_futex", "futex"),
        ("wait_for_pipe", "pipe"),
        ("wait_for_socket", "network"),
        ("wait_for_poll", "poll"),
    ];
    for (function, reason) in ways {
        let waited_ns = total(&off_cpu, |row| has(row, function) && row.reason == reason);
        let off_by = waited_ns / duration_ns - 1.0;
        assert!(
            off_by.abs() < 0.02,
            "{function} waited {waited_ns} of {duration_ns} ns for {reason}: {:?}",
            off_cpu
                .iter()
                .map(|row| (&row.reason, row.value, &row.names))
                .collect::<Vec<_>>()
        );
    }
    let switches = total(&rows(&recording.profile, SWITCHES), |_| true);
    assert_eq!(switches, 6.0, "main and five threads wait once each");
}
