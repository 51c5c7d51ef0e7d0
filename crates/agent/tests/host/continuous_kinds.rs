//! The continuous agent with all kinds: what waits all the time is in every window.

use std::io::Write;
use std::ops::Range;
use std::process::Child;
use std::process::Command;
use std::process::Stdio;
use std::time::Duration;

use crate::support;
use crate::support::PATIENCE;
use candela_agent::AgentOptions;
use candela_agent::AgentTargets;
use candela_agent::ExplicitEvent;
use candela_agent::Kind;
use candela_model::Profile;
use candela_testing::expect_within;

const OFF_CPU: &str = "off_cpu:off_cpu:nanoseconds:off_cpu:nanoseconds";
const DELAY: &str = "mutex:delay:nanoseconds:contentions:count";

/// A program that ends with the test.
struct Waiting(Child);

impl Drop for Waiting {
    fn drop(&mut self) {
        // Should it have ended, there is nothing left to do.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// The part of the window that samples with the function in their stack make up.
fn part_of_window(profile: &Profile, profile_type: &str, function: &str) -> f64 {
    let mut of_type = profile
        .series
        .iter()
        .filter(|series| series.profile_type.to_string() == profile_type);
    let series = of_type.next().expect("one process has one series");
    let has_function = |sample: &&candela_model::Sample| {
        let locations = profile.stacks.get(sample.stack).iter();
        let mut names = locations.flat_map(|&location| support::names_of(profile, location));
        names.any(|name| name == function)
    };
    let samples = series.samples.iter().filter(has_function);
    let sum: i64 = samples.map(|sample| sample.value).sum();
    sum as f64 / series.duration_ns as f64
}

/// One configuration is for many hosts: an event that this one does not have is told, and the others go on.
#[test]
fn events_that_are_named_fill_windows_and_those_of_no_host_are_told() {
    if support::cannot_sample() {
        return;
    }
    let script = "read go; exec dd if=/dev/zero of=/dev/null bs=1 count=200 status=none";
    let child = Command::new("sh")
        .args(["-c", script])
        .stdin(Stdio::piped())
        .spawn();
    let mut child = Waiting(child.expect("it starts"));
    let event = |name: &str| -> ExplicitEvent { name.parse().expect("an event") };
    let absent = [
        "tracepoint:sched:no_such_tracepoint",
        "uprobe:/nonexistent:work",
    ];
    let options = AgentOptions {
        kinds: [Kind::Cpu].into(),
        events: ["tracepoint:syscalls:sys_enter_write", absent[0], absent[1]]
            .map(event)
            .to_vec(),
        targets: AgentTargets::Pids(vec![child.0.id()]),
        window: Duration::from_secs(1),
        first_window: Duration::from_millis(100),
        ..AgentOptions::default()
    };
    let (agent, profiles) = support::start_agent(options);
    let missing = agent.status().missing;
    let names: Vec<&str> = missing.iter().map(|it| it.what.as_str()).collect();
    assert_eq!(names, absent);
    assert!(
        missing[1].reason.contains("there is no file"),
        "{missing:?}"
    );
    support::wait_for(&agent, "the agent samples", |status| status.source.cpus > 0);
    let mut stdin = child.0.stdin.take().expect("piped");
    stdin.write_all(b"go\n").expect("it waits for it");
    assert!(child.0.wait().expect("it ends").success());
    let status = agent.stop().expect("it stops");
    let profiles: Vec<Profile> = profiles.try_iter().collect();
    let of_event = profiles.iter().flat_map(|profile| {
        let series = profile.series.iter();
        let is_of = |name: String| name == "event:sys_enter_write:count:sys_enter_write:count";
        series.filter(move |series| is_of(series.profile_type.to_string()))
    });
    let samples = of_event.flat_map(|series| &series.samples);
    let calls: i64 = samples.map(|sample| sample.value).sum();
    assert_eq!(calls, 200, "one byte each: {status:?}");
}

#[test]
fn what_waits_all_the_time_is_in_every_window() {
    if support::cannot_sample_off_cpu() || support::lacks("gcc") {
        return;
    }
    // Windows of the kinds end one after the other.
    check_windows(Duration::from_secs(1), 0.5..2.0);
}

/// Whether a wait is such a part of each window.
pub(crate) fn check_windows(window: Duration, bounds: Range<f64>) {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let program = directory.path().join("waits");
    let flags = ["-O2", "-g", "-fomit-frame-pointer", "-pthread", "-o"];
    let files = [program.clone(), support::source("waits.c")];
    support::run("gcc", flags.map(Into::into).into_iter().chain(files));
    let (child, line) = support::start(Command::new(program).arg("ways"));
    let child = Waiting(child);
    assert_eq!(line, "ready\n");

    let options = AgentOptions {
        kinds: Kind::ALL.into_iter().collect(),
        targets: AgentTargets::Pids(vec![child.0.id()]),
        window,
        first_window: Duration::from_secs(1),
        ..AgentOptions::default()
    };
    let (agent, profiles) = support::start_agent(options);
    let (mut waits, mut locks) = (0, 0);
    // Windows are of one kind each; nothing runs and nothing faults here.
    while waits < 4 || locks < 4 {
        let profile = profiles.recv_timeout(PATIENCE).expect("a window in time");
        assert_eq!(profile.validate(), Ok(()));
        let is_of = |name: &str| {
            let mut series = profile.series.iter();
            series.any(|series| series.profile_type.to_string() == name)
        };
        if is_of(OFF_CPU) {
            waits += 1;
            // The second one is short, so that there is chance in it, and what waits for unwind tables comes a
            // window later.
            if waits <= 2 {
                continue;
            }
            for function in ["wait_for_time", "wait_for_futex", "wait_for_socket"] {
                let part = part_of_window(&profile, OFF_CPU, function);
                let what = format!("share of a window that {function} waits");
                expect_within(&what, part, bounds.clone(), "");
            }
        }
        if is_of(DELAY) {
            locks += 1;
            if locks <= 2 {
                continue;
            }
            let part = part_of_window(&profile, DELAY, "wait_for_futex");
            let what = "share of a window that wait_for_futex is delayed";
            expect_within(what, part, bounds.clone(), "");
            assert!(part_of_window(&profile, DELAY, "wait_for_socket") == 0.0);
        }
    }
    agent.stop().expect("it stops");
}
