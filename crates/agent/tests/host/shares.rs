//! Programs with known shares and depths: stacks are complete and the shares are those of the truth
//! (targets A5 and A7, which `measure::truth` asks for).

use std::process::Command;

use crate::bounds::Bounds;
use crate::bounds::expect_complete_recording;
use crate::support;
use crate::support::Stacks;

#[test]
fn stripped_c_without_frame_pointers() {
    check_stripped_c(Bounds::Wide);
}

pub(crate) fn check_stripped_c(bounds: Bounds) {
    if support::cannot_sample() || support::lacks("gcc") || support::lacks("objcopy") {
        return;
    }
    let _turn = support::turn();
    let directory = tempfile::tempdir().expect("a temporary directory");
    let program = directory.path().join("shares");
    let source = support::source("shares.c");
    let flags = ["-O2", "-g", "-fomit-frame-pointer", "-o"];
    support::run(
        "gcc",
        flags
            .map(Into::into)
            .into_iter()
            .chain([program.clone(), source]),
    );
    support::split_debug(&program);
    let mut command = Command::new(&program);
    let seconds = bounds.choose("0.6", "2");
    command.arg(seconds).stdout(std::process::Stdio::null());
    let recording = support::record_command(command);
    assert!(recording.exit_status.is_some_and(|status| status.success()));

    let stacks = Stacks::of(&recording.profile, |series| {
        series.labels.get("service_name") == Some("shares")
    });
    let in_functions = |names: &[String]| names[0].starts_with("burn_");
    let burned = stacks.count(in_functions);
    let complete = stacks.count(|names| {
        let depth = names.iter().filter(|name| *name == "descend").count();
        let bottom = &names[names.len().saturating_sub(4)..];
        in_functions(names)
            && depth == 60
            && bottom.first().is_some_and(|name| name == "main")
            && bottom.last().is_some_and(|name| name == "_start")
    });
    let what = "share of complete stacks";
    bounds.expect_complete(what, complete, burned, &recording.report, stacks.sketch());
    let functions = ["burn_fifty", "burn_thirty", "burn_twenty"];
    let innermost = |function: &str| stacks.count(|names| names[0] == function);
    let samples = functions.map(|function| (function, innermost(function)));
    bounds.assert_shares(samples, bounds.choose(100, 300));
    if bounds == Bounds::Sharp {
        expect_complete_recording(&recording.report);
    }
}
