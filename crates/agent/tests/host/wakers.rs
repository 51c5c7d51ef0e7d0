//! Stacks of the threads that end waits.

use std::path::Path;
use std::process::Command;

use crate::memory::Service;
use crate::support;
use crate::support::Stacks;
use candela_agent::DropReason;
use candela_agent::Kind;
use candela_agent::RecordOptions;
use candela_agent::RecordTargets;
use candela_agent::Recording;
use candela_agent::Wakers;
use candela_model::LabelValue;
use candela_model::Profile;
use candela_model::Sample;

const ROUNDS: u64 = 30;

/// The frame between the stack that waited and that of who ended the wait.
const SEPARATOR: &str = "--";

fn record_wakes(directory: &Path, wakers: Wakers) -> Recording {
    let program = directory.join("wakes");
    let flags = ["-O2", "-g", "-fomit-frame-pointer", "-pthread", "-o"];
    let files = [program.clone(), support::source("wakes.c")];
    support::run("gcc", flags.map(Into::into).into_iter().chain(files));
    let mut command = Command::new(program);
    command.arg(ROUNDS.to_string());
    let mut service = Service::start(command);
    service.expect("ready\n");
    // It runs already, so that there are unwind tables from the first wait on.
    let mut options = RecordOptions {
        // Each wait is longer than the sampling period, so that there is no chance in it.
        rate_hz: 499,
        kinds: [Kind::OffCpu].into(),
        ..RecordOptions::new(RecordTargets::Pids(vec![service.pid()]))
    };
    options.agent.wakers = wakers;
    support::record_while(options, || service.go_on())
}

/// Waits that somebody else ends: a thread that loses its CPU waits for nobody.
fn waits_of(profile: &Profile) -> Stacks {
    let strings = &profile.symbols.strings;
    let is_preempted = |sample: &Sample| {
        let mut labels = profile.label_sets.get(sample.label_set).iter();
        labels.any(|label| match label.value {
            LabelValue::Text(text) => strings.get(text) == "preempted",
            LabelValue::Number { .. } => false,
        })
    };
    let mut waits = profile.clone();
    waits
        .series
        .retain(|series| series.profile_type == Kind::OffCpu.profile_type());
    for series in &mut waits.series {
        series.samples.retain(|sample| !is_preempted(sample));
    }
    Stacks::all(&waits)
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
    let stacks = waits_of(&recording.profile);
    let mut without = 0;
    // From the outermost frame: the wait down to its system call, the separator, and the waker from the wake-up up to
    // where it began.
    for (wait, wake) in [
        ("wait_for_byte", "send_byte"),
        ("wait_for_turn", "give_turn"),
    ] {
        let waits = stacks.with(wait);
        assert!(waits > 0, "{}", stacks.sketch());
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
        assert!(told > 0, "{wait}: 0 of {waits}\n{}", stacks.sketch());
        without += waits - told;
        let others = stacks.count(|names| has_in_order(names, &[wait, SEPARATOR]));
        assert_eq!(others, 0, "a waker below the wait");
    }
    // The clock ends these.
    let slept = stacks.with("rest");
    let of_clock = stacks.count(|names| has_in_order(names, &[SEPARATOR, "rest"]));
    assert!(slept > 0, "{}", stacks.sketch());
    assert_eq!(of_clock, 0);
    let lost = recording.report.count(DropReason::WakerStackLost);
    assert_eq!(without, lost, "{}", stacks.sketch());
}

#[test]
fn names_alone_add_no_frames() {
    if support::cannot_sample_off_cpu() || support::lacks("gcc") {
        return;
    }
    let directory = tempfile::tempdir().expect("a temporary directory");
    let recording = record_wakes(directory.path(), Wakers::Names);
    let stacks = Stacks::all(&recording.profile);
    assert!(stacks.with("wait_for_byte") > 0);
    assert_eq!(stacks.with(SEPARATOR), 0);
}
