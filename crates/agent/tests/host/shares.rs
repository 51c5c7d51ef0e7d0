//! Programs with known shares and depths: stacks are complete and the shares are those of the truth
//! (targets A5 and A7).

use std::process::Command;

use crate::support;
use crate::support::Stacks;

fn assert_shares(stacks: &Stacks, functions: [&str; 3]) {
    let burned = stacks.count(|names| functions.contains(&names[0].as_str()));
    assert!(
        burned > 300,
        "{burned} samples in the functions\n{}",
        stacks.sketch()
    );
    for (function, share) in functions.into_iter().zip([0.5, 0.3, 0.2]) {
        let samples = stacks.count(|names| names[0] == function);
        let measured = samples as f64 / burned as f64;
        let tolerance = support::three_standard_errors(share, burned);
        assert!(
            (measured - share).abs() <= tolerance,
            "{function}: {measured:.3} instead of {share} ± {tolerance:.3} ({burned} samples)"
        );
    }
}

#[test]
fn stripped_c_without_frame_pointers() {
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
    command.arg("2").stdout(std::process::Stdio::null());
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
    assert!(
        complete as f64 >= 0.995 * burned as f64,
        "{complete} of {burned} stacks are complete; {:?}\n{}",
        recording.report,
        stacks.sketch()
    );
    assert_shares(&stacks, ["burn_fifty", "burn_thirty", "burn_twenty"]);
    assert!(
        recording.report.quality.complete_share() >= 0.995,
        "{:?}",
        recording.report
    );
}
