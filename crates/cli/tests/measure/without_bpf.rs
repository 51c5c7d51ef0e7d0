//! How many samples there are without BPF, how many of their stacks are complete, and how long waits are on older kernels.

use std::process::Command;

use crate::host::without_bpf::expect_shares;
use crate::host::without_bpf::forbids_own_processes;
use crate::host::without_bpf::samples_of;
use crate::host::without_bpf::with_kernel_that_lacks;
use crate::measure::shares::three_standard_errors;
use crate::support;
use crate::users::Place;
use crate::users::RECORDER;
use crate::users::burn;
use crate::users::candela;
use crate::users::cannot_run;
use crate::users::run;
use candela_testing::expect_within;

#[track_caller]
fn expect_complete(stderr: &str) {
    let (before, _) = stderr.split_once(" % of stacks complete").unwrap();
    let percent: f64 = before.rsplit(' ').next().unwrap().parse().unwrap();
    expect_within("percent of stacks complete", percent, 99.5.., stderr);
}

#[test]
fn a_command_of_an_ordinary_user_has_all_samples_and_complete_stacks() {
    let test = "a_command_of_an_ordinary_user_has_all_samples_and_complete_stacks";
    if cannot_run(test) || forbids_own_processes(test) {
        return;
    }
    let place = Place::new();
    let program = support::compile_shares(place.folder.path());
    let arguments = ["record", "-F", "499", "--to", "folded", "--"];
    let mut command = candela(&[], &arguments);
    let output = command.arg(program).arg("3").output().unwrap();
    support::expect_code(&output, 0);
    let stderr = support::stderr(&output);
    expect_complete(&stderr);
    let samples = samples_of(&stderr);
    // Three seconds of CPU time, less what the kernel took of it.
    expect_within(
        "samples of three seconds",
        samples,
        1200.0..=1600.0,
        &stderr,
    );
    expect_shares(&support::stdout(&output), |share| {
        three_standard_errors(share, samples)
    });
}

#[test]
fn what_runs_of_an_ordinary_user_has_complete_stacks() {
    let test = "what_runs_of_an_ordinary_user_has_complete_stacks";
    if cannot_run(test) || forbids_own_processes(test) {
        return;
    }
    let place = Place::new();
    let program = support::compile_shares(place.folder.path());
    let own = burn(&program, RECORDER);
    let pid = own.pid().to_string();
    let arguments = [
        "record", "-p", &pid, "-d", "2s", "-F", "199", "--to", "folded",
    ];
    let output = run(&[], &arguments);
    support::expect_code(&output, 0);
    let stderr = support::stderr(&output);
    expect_complete(&stderr);
    let samples = samples_of(&stderr);
    expect_shares(&support::stdout(&output), |share| {
        three_standard_errors(share, samples)
    });
}

#[test]
fn forks_of_own_processes_have_all_samples() {
    let test = "forks_of_own_processes_have_all_samples";
    if cannot_run(test) || forbids_own_processes(test) {
        return;
    }
    let place = Place::new();
    let program = support::compile_shares(place.folder.path());
    let script = format!("{0} 0.5 & {0} 0.5; wait", program.display());
    let arguments = ["record", "-F", "499", "--to", "folded"];
    let mut command = candela(&[], &arguments);
    let output = command.args(["--", "sh", "-c", &script]).output().unwrap();
    support::expect_code(&output, 0);
    let stderr = support::stderr(&output);
    let samples = samples_of(&stderr);
    expect_within(
        "samples of two half seconds",
        samples,
        400.0..=600.0,
        &stderr,
    );
}

/// Before Linux 6.18 the kernel does not call when a thread returns to user space.
#[test]
fn waits_are_as_long_where_the_kernel_does_not_call_back() {
    let test = "waits_are_as_long_where_the_kernel_does_not_call_back";
    if cannot_run(test) {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let source = folder.path().join("wait.c");
    let code = "#include <unistd.h>\n\
                __attribute__((noinline)) void waits_here(void) { usleep(10000); __asm__ volatile(\"\"); }\n\
                int main(void) { for (int i = 0; i < 60; i++) waits_here(); return 0; }";
    std::fs::write(&source, code).unwrap();
    let program = folder.path().join("wait");
    let mut gcc = Command::new("gcc");
    gcc.args(["-O2", "-g", "-fomit-frame-pointer", "-o"]);
    assert!(gcc.arg(&program).arg(&source).status().unwrap().success());
    let mut command = with_kernel_that_lacks(folder.path(), "bpf_task_work_schedule_resume_impl");
    command.args([
        "record", "-F", "499", "-e", "off-cpu", "--to", "folded", "--",
    ]);
    let output = command.arg(&program).output().unwrap();
    support::expect_code(&output, 0);
    let folded = support::stdout(&output);
    let waits = folded
        .lines()
        .filter(|line| line.contains("main;waits_here;") && line.contains("nanosleep"));
    let counts = waits.filter_map(|line| line.rsplit(' ').next()?.parse::<f64>().ok());
    let waited_ns: f64 = counts.sum();
    // Half a second is asked for, after the first waits, which a busy host may take before there are unwind tables;
    // that it takes longer is the scheduler's business.
    expect_within(
        "seconds of 60 waits of 10 ms",
        waited_ns / 1e9,
        0.5..1.2,
        &folded,
    );
}
