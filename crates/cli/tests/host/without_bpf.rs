//! What is left to users who may not load BPF, and on kernels that lack something.

use std::path::Path;
use std::process::Command;

use crate::support;
use crate::support::Running;
use crate::users;
use crate::users::OTHER;
use crate::users::Place;
use crate::users::RECORDER;
use crate::users::burn;
use crate::users::candela;
use crate::users::cannot_run;
use crate::users::run;
use candela_testing::expect_within;

/// The functions of the recorded program and their shares of its time.
const SHARES: [(&str, f64); 3] = [
    ("burn_fifty", 0.5),
    ("burn_thirty", 0.3),
    ("burn_twenty", 0.2),
];

/// The share of samples whose innermost function is `name`.
fn share(folded: &str, name: &str) -> f64 {
    let mut of_name = 0.0;
    let mut total = 0.0;
    for line in folded.lines() {
        // The program writes a number of its own.
        let Some((stack, count)) = line.rsplit_once(' ') else {
            continue;
        };
        let count: f64 = count.parse().unwrap();
        total += count;
        if stack.rsplit(';').next() == Some(name) {
            of_name += count;
        }
    }
    of_name / total
}

/// Each function has its share, but for `tolerance` of it.
#[track_caller]
pub(crate) fn expect_shares(folded: &str, tolerance: impl Fn(f64) -> f64) {
    for (name, expected) in SHARES {
        let found = share(folded, name);
        let off_by = tolerance(expected);
        let what = format!("share of {name}");
        expect_within(&what, found, expected - off_by..=expected + off_by, folded);
    }
}

#[test]
fn an_ordinary_user_records_a_command_of_his_own() {
    let test = "an_ordinary_user_records_a_command_of_his_own";
    if cannot_run(test) || forbids_own_processes(test) {
        return;
    }
    let place = Place::new();
    let program = support::compile_shares(place.folder.path());
    let program = program.to_str().unwrap();
    let arguments = ["record", "-F", "499", "--to", "folded", "--"];
    let mut command = candela(&[], &arguments);
    let output = command.args([program, "0.6"]).output().unwrap();
    support::expect_code(&output, 0);
    let stderr = support::stderr(&output);
    assert_eq!(stderr.matches("without BPF").count(), 1, "{stderr}");
    assert!(stderr.contains("CAP_BPF is missing"), "{stderr}");
    let folded = support::stdout(&output);
    let samples = samples_of(&stderr);
    // By its CPU time these are 300, of which a hypervisor may take some.
    assert!((150.0..=600.0).contains(&samples), "{stderr}");
    expect_shares(&folded, |share| support::tolerance(share, samples));
    // Sixty deep, from the thread's entry on.
    assert!(folded.contains("_start"), "{folded}");
    assert!(
        folded
            .lines()
            .any(|line| line.matches("descend").count() == 60),
        "{folded}"
    );
}

#[test]
fn an_ordinary_user_records_what_runs_of_his_own_and_of_nobody_else() {
    let test = "an_ordinary_user_records_what_runs_of_his_own_and_of_nobody_else";
    if cannot_run(test) || forbids_own_processes(test) {
        return;
    }
    let place = Place::new();
    let program = support::compile_shares(place.folder.path());
    let own = burn(&program, RECORDER);
    let pid = own.pid().to_string();
    let of = |pid: &str, kinds: &str| {
        let arguments = [
            "record", "-p", pid, "-d", "1s", "-F", "499", "-e", kinds, "--to", "folded",
        ];
        run(&[], &arguments)
    };
    let output = of(&pid, "cpu");
    support::expect_code(&output, 0);
    let samples = samples_of(&support::stderr(&output));
    expect_shares(&support::stdout(&output), |share| {
        support::tolerance(share, samples)
    });

    // What is of BPF alone is left out and told, or refused where it was all.
    let output = of(&pid, "off-cpu");
    support::expect_code(&output, 6);
    assert!(support::stderr(&output).contains("CAP_BPF is missing"));
    let arguments = ["record", "-p", &pid, "-d", "500ms", "-e", "cpu,off-cpu"];
    let output = run(&[], &arguments);
    support::expect_code(&output, 0);
    let stderr = support::stderr(&output);
    assert_eq!(stderr.matches("without off-cpu: ").count(), 1, "{stderr}");
    assert!(support::stdout(&output).contains("burn_fifty"));

    let other = burn(&program, OTHER);
    let output = of(&other.pid().to_string(), "cpu");
    support::expect_code(&output, 6);
    let stderr = support::stderr(&output);
    assert!(
        stderr.contains("CAP_BPF is missing") && stderr.contains("another user's"),
        "{stderr}"
    );
    let output = run(&[], &["record", "-a", "-d", "1s"]);
    support::expect_code(&output, 6);
}

/// What waits is not seen: that is said, and no figure is made up for it.
#[test]
fn what_waits_is_not_said_to_be_nothing() {
    let test = "what_waits_is_not_said_to_be_nothing";
    if cannot_run(test) || forbids_own_processes(test) {
        return;
    }
    let place = Place::new();
    let program = support::compile_shares(place.folder.path());
    let busy = burn(&program, RECORDER);
    let busy_pid = busy.pid().to_string();
    let sleep = std::fs::canonicalize("/bin/sleep").unwrap();
    let user = RECORDER.to_string();
    let mut command = support::in_clean_environment("setpriv");
    command.args(["--reuid", &user, "--regid", &user, "--clear-groups"]);
    command.args(["--inh-caps=-all", "--bounding-set=-all"]);
    let sleeper = users::started(command.arg(&sleep).arg("1000"), &sleep);

    let output = run(&[], &["top", "-p", &busy_pid, "-d", "1s"]);
    support::expect_code(&output, 0);
    let stderr = support::stderr(&output);
    assert!(stderr.contains("no off-CPU time: "), "{stderr}");
    assert!(stderr.contains("CAP_BPF is missing"), "{stderr}");
    let report = support::stdout(&output);
    let row = report
        .lines()
        .find(|line| line.trim_start().starts_with(&busy_pid));
    let columns: Vec<&str> = row
        .unwrap_or_else(|| panic!("{report}"))
        .split_whitespace()
        .collect();
    assert!(columns[1].ends_with('%') && columns[2] == "-", "{report}");

    let pid = sleeper.pid().to_string();
    let output = run(&[], &["top", "-p", &pid, "-d", "1s"]);
    support::expect_code(&output, 5);
    let stderr = support::stderr(&output);
    assert!(stderr.contains("what waits is not seen"), "{stderr}");

    let output = run(&[], &["doctor", "-p", &pid]);
    support::expect_code(&output, 0);
    let report = support::stdout(&output);
    assert!(
        report.contains("warn  samples") && report.contains("its waits are not seen"),
        "{report}"
    );
    assert!(!report.contains("0 of 0"), "{report}");
}

/// Programs that a command starts are recorded, too, and threads that a process starts later.
#[test]
fn forks_and_threads_of_own_processes_are_followed() {
    let test = "forks_and_threads_of_own_processes_are_followed";
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
    let samples = samples_of(&support::stderr(&output));
    // By their CPU time 250 of each: more than one of them can have.
    assert!(
        (300.0..=1000.0).contains(&samples),
        "{}",
        support::stderr(&output)
    );
    assert!(support::stdout(&output).contains("burn_twenty"));
}

/// Whether this kernel keeps perf events from ordinary users altogether.
#[expect(clippy::print_stdout, reason = "a test that skips says why")]
pub(crate) fn forbids_own_processes(test: &str) -> bool {
    let level = std::fs::read_to_string("/proc/sys/kernel/perf_event_paranoid").unwrap_or_default();
    let level = level.trim();
    let is_allowed = level.parse().is_ok_and(|level: i32| level <= 2);
    if !is_allowed {
        println!("SKIP {test}: kernel.perf_event_paranoid is {level}");
    }
    !is_allowed
}

/// The summary's number before ` samples in`.
pub(crate) fn samples_of(stderr: &str) -> f64 {
    let (before, _) = stderr
        .split_once(" samples in ")
        .unwrap_or_else(|| panic!("{stderr}"));
    before.rsplit(['\n', ' ']).next().unwrap().parse().unwrap()
}

/// The kernel as a mount namespace shows it, without one of its functions or tracepoints: what this host's kernel
/// would be without it, as far as can be seen.
pub(crate) fn with_kernel_that_lacks(folder: &Path, name: &str) -> Command {
    let mut types = std::fs::read("/sys/kernel/btf/vmlinux").unwrap();
    let text = [b"\0", name.as_bytes(), b"\0"].concat();
    let place = types.windows(text.len()).position(|window| window == text);
    let place = place.unwrap_or_else(|| panic!("this kernel has no {name}"));
    types[place + 1..place + 4].copy_from_slice(b"not");
    let file = folder.join(format!("without-{name}"));
    std::fs::write(&file, types).unwrap();
    let mut command = support::in_clean_environment("unshare");
    let script = "mount --bind \"$0\" /sys/kernel/btf/vmlinux && exec \"$@\"";
    command.args(["--mount", "sh", "-c", script]).arg(file);
    command.arg(env!("CARGO_BIN_EXE_candela"));
    command
}

#[test]
fn what_a_kernel_lacks_is_told_once_and_the_rest_is_kept() {
    let test = "what_a_kernel_lacks_is_told_once_and_the_rest_is_kept";
    if cannot_run(test) {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let program = support::compile_shares(folder.path());
    let program = program.to_str().unwrap();
    let record = |lacking: &str, kinds: &str| {
        let mut command = with_kernel_that_lacks(folder.path(), lacking);
        command.args(["record", "-F", "499", "-e", kinds, "--", program, "0.2"]);
        command.output().unwrap()
    };
    let output = record("btf_trace_sched_switch", "cpu,off-cpu,lock,growth");
    support::expect_code(&output, 0);
    let stderr = support::stderr(&output);
    for kind in ["off-cpu", "lock"] {
        let told = format!("without {kind}: this kernel has no tracepoint sched_switch");
        assert_eq!(stderr.matches(&told).count(), 1, "{stderr}");
    }
    let lines = stderr.lines().filter(|line| line.starts_with("without "));
    assert_eq!(lines.count(), 2, "{stderr}");
    assert!(stderr.contains("burn_fifty"), "cpu is kept: {stderr}");
    for alone in ["off-cpu", "wall"] {
        let output = record("btf_trace_sched_switch", alone);
        support::expect_code(&output, 6);
    }

    let output = record("btf_trace_block_io_start", "cpu,io");
    support::expect_code(&output, 0);
    let stderr = support::stderr(&output);
    assert_eq!(stderr.matches("without io: ").count(), 1, "{stderr}");
    assert!(
        stderr.contains("this kernel has no tracepoint block_io_start"),
        "{stderr}"
    );
    assert!(stderr.contains("burn_fifty"), "{stderr}");

    // Named events are as good as kinds.
    let arguments = [
        "record",
        "-e",
        "cpu,tracepoint:sched:no_such",
        "--",
        program,
        "0.2",
    ];
    let output = support::run(&arguments);
    support::expect_code(&output, 0);
    let stderr = support::stderr(&output);
    assert!(
        stderr.contains("without tracepoint:sched:no_such: "),
        "{stderr}"
    );
    assert!(stderr.contains("burn_fifty"), "{stderr}");
}

/// Before Linux 6.18 the kernel does not call when a thread returns to user space.
#[test]
fn waits_have_their_stacks_where_the_kernel_does_not_call_back() {
    let test = "waits_have_their_stacks_where_the_kernel_does_not_call_back";
    if cannot_run(test) {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let source = folder.path().join("wait.c");
    let code = "#include <unistd.h>\n\
                __attribute__((noinline)) void waits_here(void) { usleep(10000); __asm__ volatile(\"\"); }\n\
                int main(void) { for (;;) waits_here(); return 0; }";
    std::fs::write(&source, code).unwrap();
    let program = folder.path().join("wait");
    let mut gcc = Command::new("gcc");
    gcc.args(["-O2", "-g", "-fomit-frame-pointer", "-o"]);
    assert!(gcc.arg(&program).arg(&source).status().unwrap().success());
    // It runs already, so that there are unwind tables before the first wait that is recorded.
    let waiting = users::started(&mut Command::new(&program), &program);
    let pid = waiting.pid().to_string();
    let mut command = with_kernel_that_lacks(folder.path(), "bpf_task_work_schedule_resume_impl");
    let arguments = ["record", "-F", "499", "-e", "off-cpu", "--to", "folded"];
    let output = command
        .args(arguments)
        .args(["-d", "500ms", "-p", &pid])
        .output()
        .unwrap();
    support::expect_code(&output, 0);
    let stderr = support::stderr(&output);
    assert!(!stderr.contains("without off-cpu"), "{stderr}");
    let folded = support::stdout(&output);
    let waits: Vec<&str> = folded
        .lines()
        .filter(|line| line.contains("nanosleep"))
        .collect();
    assert!(!waits.is_empty(), "{folded}");
    for wait in waits {
        assert!(wait.contains("main;waits_here;"), "{folded}");
    }
}

#[test]
fn the_status_tells_what_the_agent_does_without() {
    let test = "the_status_tells_what_the_agent_does_without";
    if cannot_run(test) {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("data");
    let mut command = with_kernel_that_lacks(folder.path(), "btf_trace_sched_switch");
    command
        .args(["up", "--listen", "127.0.0.1:0", "--data-dir"])
        .arg(&data)
        .env("CANDELA_AGENT__KINDS", "cpu,off-cpu")
        .env("CANDELA_SERVER__OTLP_GRPC_LISTEN", "127.0.0.1:0")
        .env("CANDELA_SERVER__OTLP_HTTP_LISTEN", "127.0.0.1:0")
        .env("CANDELA_AGENT__ON_DEMAND__LISTEN", "127.0.0.1:0");
    let up = Running::launch(&mut command).unwrap();
    support::eventually("samples are there", || {
        let status = support::get_json(&up.url("/api/v1/status"));
        let samples = status["agent"]["source"]["kernel_samples"].as_u64()?;
        let missing = status["agent"]["missing"].as_array()?.clone();
        assert_eq!(missing.len(), 1, "{status:#}");
        assert_eq!(missing[0]["what"], "off-cpu");
        (samples > 0).then_some(())
    });
    assert_eq!(up.messages().matches("without off-cpu: ").count(), 1);
    let (_, metrics) = support::get(&up.url("/metrics"));
    let metrics = String::from_utf8_lossy(&metrics).into_owned();
    assert!(
        metrics.contains("candela_agent_missing{kind=\"off-cpu\"} 1"),
        "{metrics}"
    );
}

#[test]
fn processes_are_recorded_on_a_kernel_without_type_information() {
    let test = "processes_are_recorded_on_a_kernel_without_type_information";
    if cannot_run(test) {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let program = support::compile_shares(folder.path());
    let mut command = support::in_clean_environment("unshare");
    let script = "mount -t tmpfs none /sys/kernel/btf && exec \"$0\" \"$@\"";
    command.args(["--mount", "sh", "-c", script, env!("CARGO_BIN_EXE_candela")]);
    command
        .args(["record", "-F", "499", "--"])
        .arg(&program)
        .arg("0.2");
    let output = command.output().unwrap();
    support::expect_code(&output, 0);
    let stderr = support::stderr(&output);
    assert!(stderr.contains("without BPF: "), "{stderr}");
    assert!(stderr.contains("CONFIG_DEBUG_INFO_BTF=y"), "{stderr}");
    assert!(stderr.contains("burn_fifty"), "{stderr}");
}
