//! A program in pid and mount namespaces of its own: the host's agent names it by the host's pid.

use std::path::Path;
use std::path::PathBuf;
use std::process::Child;
use std::process::Command;
use std::time::Duration;
use std::time::Instant;

use crate::support;
use crate::support::Stacks;
use candela_model::LabelValue;
use candela_model::Profile;

const PATIENCE: Duration = Duration::from_secs(60);

/// `unshare` with a program behind it, as the first process of its namespace.
struct Namespaced(Child);

impl Namespaced {
    /// The program has a `/tmp` of its own, as in a container; it must lie elsewhere.
    fn start(program: &Path) -> Self {
        let mut command = Command::new("unshare");
        command.args(["--pid", "--fork", "--kill-child", "--mount-proc"]);
        let script = r#"mount -t tmpfs none /tmp && exec "$0" 600"#;
        command.args(["sh", "-c", script]).arg(program);
        Self(command.spawn().expect("unshare is in util-linux"))
    }

    /// The pid that the host knows the program by, once it runs.
    fn host_pid(&self, program: &Path) -> u32 {
        let parent = self.0.id();
        let deadline = Instant::now() + PATIENCE;
        while Instant::now() < deadline {
            let children = format!("/proc/{parent}/task/{parent}/children");
            let children = std::fs::read_to_string(children).expect("unshare runs");
            let runs = |pid: &u32| {
                std::fs::read_link(format!("/proc/{pid}/exe")).is_ok_and(|exe| exe == program)
            };
            let mut pids = children.split_whitespace().map(|pid| pid.parse());
            if let Some(Ok(pid)) = pids.next()
                && runs(&pid)
            {
                return pid;
            }
            std::thread::park_timeout(Duration::from_millis(5));
        }
        panic!("{program:?} does not start in a namespace");
    }
}

impl Drop for Namespaced {
    fn drop(&mut self) {
        // Its child dies with it.
        self.0.kill().expect("it is still running");
        self.0.wait().expect("it is our child");
    }
}

fn cannot_unshare() -> bool {
    let tried = Command::new("unshare")
        .args(["--pid", "--fork", "--mount-proc", "true"])
        .status();
    let can = tried.is_ok_and(|status| status.success());
    if !can {
        support::skipped("no namespaces can be made here");
    }
    !can
}

fn build(directory: &Path, source: &str, name: &str) -> PathBuf {
    let program = directory.join(name);
    let flags = ["-O2", "-g", "-fno-omit-frame-pointer", "-o"].map(Into::into);
    let paths = [program.clone(), support::source(source)];
    support::run("gcc", flags.into_iter().chain(paths));
    program.canonicalize().expect("it was just built")
}

/// The `pid` labels of all samples.
fn pids(profile: &Profile) -> Vec<i64> {
    let strings = &profile.symbols.strings;
    let mut pids = Vec::new();
    let samples = profile.series.iter().flat_map(|series| &series.samples);
    for sample in samples {
        let labels = profile.label_sets.get(sample.label_set).iter();
        pids.extend(labels.filter_map(|label| match label.value {
            LabelValue::Number { value, .. } if strings.get(label.key) == "pid" => Some(value),
            _ => None,
        }));
    }
    pids.sort_unstable();
    pids.dedup();
    pids
}

#[test]
fn programs_in_namespaces_have_names_and_the_pid_of_the_host() {
    if support::cannot_sample() || support::lacks("gcc") || cannot_unshare() {
        return;
    }
    let _turn = support::turn();
    // Not in /tmp, where the program finds another one.
    let directory =
        tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).expect("a temporary directory");
    for (source, name, functions) in [
        ("shares.c", "namespaced", ["burn_fifty", "work"]),
        ("jit.c", "compiling", ["compiled_code", "run_compiled"]),
    ] {
        let program = build(directory.path(), source, name);
        let namespaced = Namespaced::start(&program);
        let pid = namespaced.host_pid(&program);
        let status = std::fs::read_to_string(format!("/proc/{pid}/status")).expect("it runs");
        let inner = status.lines().find_map(|line| line.strip_prefix("NSpid:"));
        let inner = inner.and_then(|pids| pids.split_whitespace().last());
        assert_eq!(inner, Some("1"), "the program knows itself by another pid");

        // Worth 250 samples.
        let recording = support::record_work(pid, 499, Duration::from_millis(500));
        let stacks = Stacks::all(&recording.profile);
        for function in functions {
            assert!(
                stacks.with(function) > 50,
                "{function}:\n{}",
                stacks.sketch()
            );
        }
        let outermost = stacks.count(|names| names.last().is_some_and(|it| it == "_start"));
        assert!(outermost * 10 > stacks.total() * 9, "{}", stacks.sketch());
        assert_eq!(pids(&recording.profile), [i64::from(pid)]);
        for series in &recording.profile.series {
            let executable = series.labels.get("process_executable_name");
            assert_eq!(executable, Some(name));
            assert_eq!(series.labels.get("service_name"), Some(name));
        }
    }
}
