//! Stacks of the threads that end waits.

use std::path::Path;
use std::process::Command;

use crate::support;
use crate::support::Stacks;
use candela_agent::DropReason;
use candela_agent::Kind;
use candela_agent::RecordOptions;
use candela_agent::RecordTargets;
use candela_agent::Recording;
use candela_agent::Wakers;

const ROUNDS: u64 = 60;

/// The frame between the stack that waited and that of who ended the wait.
const SEPARATOR: &str = "--";

fn record_wakes(directory: &Path, wakers: Wakers) -> Recording {
    let program = directory.join("wakes");
    let flags = ["-O2", "-g", "-fomit-frame-pointer", "-pthread", "-o"];
    let files = [program.clone(), support::source("wakes.c")];
    support::run("gcc", flags.map(Into::into).into_iter().chain(files));
    let mut command = Command::new(program);
    command.arg(ROUNDS.to_string());
    let mut options = RecordOptions {
        // Each wait is longer than the sampling period, so that there is no chance in it.
        rate_hz: 499,
        kinds: [Kind::OffCpu].into(),
        ..RecordOptions::new(RecordTargets::Command(command))
    };
    options.agent.wakers = wakers;
    candela_agent::record(options, || {}).unwrap_or_else(|error| panic!("{error}"))
}

/// Whether these follow one another in a stack, innermost first, whatever lies between them.
fn has_in_order(names: &[String], wanted: &[&str]) -> bool {
    let mut names = names.iter();
    wanted.iter().all(|wanted| names.any(|name| name == wanted))
}

#[test]
fn a_wait_has_the_stack_that_ended_it_behind_its_own() {
    if support::cannot_sample_off_cpu() || support::lacks("gcc") {
        return;
    }
    let directory = tempfile::tempdir().expect("a temporary directory");
    let recording = record_wakes(directory.path(), Wakers::Stacks);
    let stacks = Stacks::of(&recording.profile, |series| {
        series.profile_type == Kind::OffCpu.profile_type()
    });
    // From the outermost frame: the wait down to its system call, the separator, and the waker from the wake-up up to
    // where it began.
    for (wait, wake) in [
        ("wait_for_byte", "send_byte"),
        ("wait_for_turn", "give_turn"),
    ] {
        let waits = stacks.with(wait);
        assert!(waits >= ROUNDS, "{wait}: {waits}\n{}", stacks.sketch());
        let wanted = [
            "_start",
            "main",
            "end_waits",
            wake,
            "try_to_wake_up",
            SEPARATOR,
            wait,
            "waiter",
        ];
        let told = stacks.count(|names| has_in_order(names, &wanted));
        // The first ones are from before there were unwind tables.
        assert!(
            told * 4 >= waits * 3,
            "{wait}: {told} of {waits}\n{}",
            stacks.sketch()
        );
        let others = stacks.count(|names| has_in_order(names, &[wait, SEPARATOR]));
        assert_eq!(others, 0, "a waker below the wait");
    }
    // The clock ends these.
    let slept = stacks.with("rest");
    let of_clock = stacks.count(|names| has_in_order(names, &[SEPARATOR, "rest"]));
    assert!(slept >= ROUNDS, "{slept}");
    assert_eq!(of_clock, 0);
    let lost = recording.report.count(DropReason::WakerStackLost);
    assert_eq!(lost, 0);
}

#[test]
fn names_alone_add_no_frames() {
    if support::cannot_sample_off_cpu() || support::lacks("gcc") {
        return;
    }
    let directory = tempfile::tempdir().expect("a temporary directory");
    let recording = record_wakes(directory.path(), Wakers::Names);
    let stacks = Stacks::all(&recording.profile);
    assert!(stacks.with("wait_for_byte") >= ROUNDS);
    assert_eq!(stacks.with(SEPARATOR), 0);
}
