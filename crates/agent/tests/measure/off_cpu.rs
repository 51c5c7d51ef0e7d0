//! Time off CPU: as long as it was, by what waited and for what.

use std::path::Path;
use std::path::PathBuf;
use std::process::Child;
use std::process::Command;
use std::time::Duration;

use crate::support;
use candela_agent::DropReason;
use candela_agent::Kind;
use candela_agent::Kinds;
use candela_agent::RecordOptions;
use candela_agent::RecordTargets;
use candela_agent::Recording;
use candela_model::LabelValue;
use candela_model::Profile;
use candela_testing::expect_within;

const CPU: &str = "process_cpu:cpu:nanoseconds:cpu:nanoseconds";
const OFF_CPU: &str = "off_cpu:off_cpu:nanoseconds:off_cpu:nanoseconds";
const SWITCHES: &str = "off_cpu:switches:count:off_cpu:nanoseconds";

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

fn record(
    targets: RecordTargets,
    kinds: impl Into<Kinds>,
    duration: Option<Duration>,
) -> Recording {
    let options = RecordOptions {
        rate_hz: 499,
        kinds: kinds.into(),
        duration,
        ..RecordOptions::new(targets)
    };
    candela_agent::record(options, || {}).unwrap_or_else(|error| panic!("{error}"))
}

const BOTH: [Kind; 2] = [Kind::Cpu, Kind::OffCpu];

const ONLY_OFF_CPU: [Kind; 1] = [Kind::OffCpu];

#[test]
fn the_duty_cycle_of_a_program_is_told_and_both_kinds_make_up_its_time() {
    if support::cannot_sample_off_cpu() || support::lacks("gcc") {
        return;
    }
    let _turn = support::turn();
    let directory = tempfile::tempdir().expect("a temporary directory");
    let truth = directory.path().join("truth");
    let mut command = Command::new(build(directory.path()));
    command.args(["duty", "4000"]).arg(&truth);
    let stolen_before_ns = stolen_ns();
    let recording = record(RecordTargets::Command(command), BOTH, None);
    assert!(recording.exit_status.is_some_and(|status| status.success()));

    let truth = std::fs::read_to_string(truth).expect("it wrote the truth");
    let numbers = truth.split_whitespace().map(str::parse);
    let numbers: Vec<f64> = numbers.collect::<Result<_, _>>().expect("three numbers");
    let (elapsed_ns, asleep_ns, naps) = (numbers[0], numbers[1], numbers[2]);
    let off_cpu = rows(&recording.profile, OFF_CPU);
    // The truth is by the program's clock around each sleep; what preempts it in user space is not in it.
    let preempted_ns = total(&off_cpu, |row| row.reason == "preempted");
    let waited_ns = total(&off_cpu, |_| true);
    let report = &recording.report;
    let all = waited_ns / asleep_ns;
    expect_within(
        "time off CPU / time asleep",
        all,
        0.98..,
        format_args!("{report:?}"),
    );
    let slept = (waited_ns - preempted_ns) / asleep_ns;
    let what = "time off CPU that is not preempted / time asleep";
    expect_within(what, slept, ..=1.02, format_args!("{report:?}"));

    let cpu = rows(&recording.profile, CPU);
    let both_off_by = (waited_ns + total(&cpu, |_| true)) / elapsed_ns - 1.0;
    let stolen = (stolen_ns() - stolen_before_ns) / elapsed_ns;
    let what = "error of time on and off CPU / time that has passed";
    expect_within(what, both_off_by, -0.02 - stolen..0.02, stolen);

    // What preempts the program on its way to sleep or back counts with it.
    let is_asleep = |row: &Row| row.reason == "sleep" && has(row, "rest");
    let with_reason = total(&off_cpu, is_asleep) / asleep_ns;
    expect_within(
        "time with the reason sleep / time asleep",
        with_reason,
        0.9..,
        "",
    );
    let switches = total(&rows(&recording.profile, SWITCHES), is_asleep);
    expect_within("switches of sleep / naps", switches / naps, 0.9..1.2, naps);
}

/// The time that the hypervisor took from this machine since it started.
fn stolen_ns() -> f64 {
    let stat = std::fs::read_to_string("/proc/stat").expect("procfs");
    let ticks = stat.split_whitespace().nth(8);
    let ticks: f64 = ticks.and_then(|text| text.parse().ok()).unwrap_or_default();
    ticks * 10e6
}

/// The program at work in one of its ways, and the first line that it says.
fn start(directory: &Path, way: &str) -> (Child, String) {
    support::start(Command::new(build(directory)).arg(way))
}

#[test]
fn what_waits_all_the_time_is_told_with_its_stack_and_reason() {
    if support::cannot_sample_off_cpu() || support::lacks("gcc") {
        return;
    }
    let _turn = support::turn();
    let directory = tempfile::tempdir().expect("a temporary directory");
    let (mut child, line) = start(directory.path(), "ways");
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
        let told: Vec<_> = off_cpu
            .iter()
            .map(|row| (&row.reason, row.value, &row.names))
            .collect();
        let what = format!("error of the time that {function} waits");
        expect_within(&what, off_by.abs(), ..0.02, format_args!("{told:?}"));
    }
    let switches = total(&rows(&recording.profile, SWITCHES), |_| true);
    assert_eq!(switches, 6.0, "main and five threads wait once each");
}

#[test]
fn a_wait_for_memory_is_told_as_a_fault() {
    if support::cannot_sample_off_cpu() || support::lacks("gcc") {
        return;
    }
    let _turn = support::turn();
    let directory = tempfile::tempdir().expect("a temporary directory");
    let (mut child, line) = start(directory.path(), "fault");
    if line != "ready\n" {
        support::skipped(line.trim());
        child.wait().expect("it is ours");
        return;
    }
    let targets = RecordTargets::Pids(vec![child.id()]);
    let recording = record(targets, ONLY_OFF_CPU, Some(Duration::from_secs(1)));
    child.kill().expect("it waits");
    child.wait().expect("it is ours");
    let off_cpu = rows(&recording.profile, OFF_CPU);
    let is_right = |row: &Row| row.reason == "fault" && has(row, "wait_for_memory");
    let off_by = total(&off_cpu, is_right) / recording.report.duration_ns as f64 - 1.0;
    let told: Vec<_> = off_cpu
        .iter()
        .map(|row| (&row.reason, row.value, &row.names))
        .collect();
    let what = "error of the time that waits for memory";
    expect_within(what, off_by.abs(), ..0.02, format_args!("{told:?}"));
}

#[test]
fn waits_that_are_left_out_are_known_by_their_sum() {
    if support::cannot_sample_off_cpu() || support::lacks("gcc") {
        return;
    }
    // The kernel counts waits of all that this process starts.
    let _turn = support::turn();
    let directory = tempfile::tempdir().expect("a temporary directory");
    let truth = directory.path().join("truth");
    let mut command = Command::new(build(directory.path()));
    command.args(["duty", "2000"]).arg(&truth);
    let mut options = RecordOptions {
        rate_hz: 499,
        kinds: ONLY_OFF_CPU.into(),
        ..RecordOptions::new(RecordTargets::Command(command))
    };
    // Longer than any wait of the program.
    options.agent.min_block_time = Duration::from_secs(2);
    let recording = candela_agent::record(options, || {});
    let recording = recording.unwrap_or_else(|error| panic!("{error}"));

    let truth = std::fs::read_to_string(truth).expect("it wrote the truth");
    let numbers = truth.split_whitespace().map(str::parse);
    let numbers: Vec<f64> = numbers.collect::<Result<_, _>>().expect("three numbers");
    let (elapsed_ns, asleep_ns, naps) = (numbers[0], numbers[1], numbers[2]);
    assert!(rows(&recording.profile, OFF_CPU).is_empty());
    let report = &recording.report;
    let left_out = report.count(DropReason::ShortWait) as f64;
    let left_out_ns = report.count(DropReason::ShortWaitTime) as f64;
    expect_within(
        "waits that are left out / naps",
        left_out / naps,
        1.0..,
        naps,
    );
    // The rest of the time it burns.
    let of_sleep = left_out_ns / asleep_ns;
    let most = elapsed_ns / asleep_ns;
    expect_within(
        "time of waits that are left out / time asleep",
        of_sleep,
        0.98..most,
        asleep_ns,
    );
    assert_eq!(report.lost_samples(), 0, "{report:?}");
}
