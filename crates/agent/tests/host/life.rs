//! Processes that come, change and go while they are sampled.

use std::fs::DirEntry;
use std::path::Path;
use std::path::PathBuf;
use std::process::Command;
use std::process::Stdio;
use std::sync::Arc;
use std::sync::Mutex;
use std::time::Duration;

use crate::support;
use crate::support::Running;
use crate::support::Stacks;
use candela_agent::Agent;
use candela_agent::AgentOptions;
use candela_agent::AgentStatus;
use candela_agent::InProcess;
use candela_agent::RecordOptions;
use candela_agent::RecordTargets;
use candela_agent::Recording;

fn gcc(directory: &Path, flags: &[&str], source: &str, name: &str) -> PathBuf {
    let program = directory.join(name);
    let paths = [
        PathBuf::from("-o"),
        program.clone(),
        support::source(source),
    ];
    let flags = flags.iter().map(PathBuf::from);
    support::run(
        "gcc",
        [PathBuf::from("-O2"), PathBuf::from("-fomit-frame-pointer")]
            .into_iter()
            .chain(flags)
            .chain(paths),
    );
    program
}

#[test]
fn a_library_loaded_later() {
    if support::cannot_sample() || support::lacks("gcc") {
        return;
    }
    let _turn = support::turn();
    let directory = tempfile::tempdir().expect("a temporary directory");
    let plugin = gcc(
        directory.path(),
        &["-shared", "-fPIC"],
        "plugin.c",
        "plugin.so",
    );
    let loader = gcc(directory.path(), &[], "loader.c", "loader");
    let mut command = Command::new(loader);
    // Each function is worth 150 samples.
    command.arg(plugin).arg("0.6");
    let recording = support::record_command(command);
    assert!(recording.exit_status.is_some_and(|status| status.success()));
    for function in ["burn_before", "burn_in_plugin"] {
        assert_complete(&recording, function, |names| {
            names.last().is_some_and(|name| name == "_start")
        });
    }
}

/// There are stacks with a function, all of which are complete but for those that the agent has given up.
fn assert_complete(recording: &Recording, function: &str, is_complete: impl Fn(&[String]) -> bool) {
    let stacks = Stacks::all(&recording.profile);
    let has_function = |names: &[String]| names.iter().any(|name| name == function);
    let samples = stacks.count(has_function);
    assert!(samples > 20, "{function}: {samples}\n{}", stacks.sketch());
    let short = |names: &[String]| has_function(names) && !is_complete(names);
    let given_up = support::stacks_given_up(&recording.report);
    assert!(
        stacks.count(short) <= given_up.min(samples / 2),
        "{function}: of {samples} samples, of which {given_up} may be short:\n{}",
        stacks.sketch_of(short)
    );
}

#[test]
fn a_binary_deleted_while_it_runs() {
    if support::cannot_sample() || support::lacks("gcc") {
        return;
    }
    let _turn = support::turn();
    let directory = tempfile::tempdir().expect("a temporary directory");
    let program = gcc(directory.path(), &[], "shares.c", "deleted");
    let mut command = Command::new("/bin/sh");
    // It is deleted when it runs, not before the shell's child became it.
    let script =
        r#"$0 0.6 & until [ "$(readlink /proc/$!/exe)" = "$0" ]; do :; done; rm "$0"; wait"#;
    command.arg("-c").arg(script).arg(&program);
    command.stdout(Stdio::null());
    let recording = support::record_command(command);
    let stacks = Stacks::of(&recording.profile, |series| {
        series.labels.get("process_executable_name") == Some("deleted")
    });
    let burned = stacks.count(|names| names[0].starts_with("burn_"));
    assert!(
        burned > 100,
        "{burned} of {} samples have names\n{}",
        stacks.total(),
        stacks.sketch()
    );
}

#[test]
fn stacks_through_signal_frames() {
    if support::cannot_sample() || support::lacks("gcc") {
        return;
    }
    let _turn = support::turn();
    let directory = tempfile::tempdir().expect("a temporary directory");
    let program = gcc(directory.path(), &[], "signals.c", "signals");
    let mut command = Command::new(program);
    command.arg("0.6");
    let recording = support::record_command(command);
    assert_complete(&recording, "burn_in_handler", |names| {
        names.iter().filter(|name| *name == "descend").count() == 20
            && names.last().is_some_and(|name| name == "_start")
    });
}

#[test]
fn a_published_service_name() {
    if support::cannot_sample() || support::lacks("gcc") {
        return;
    }
    let _turn = support::turn();
    let directory = tempfile::tempdir().expect("a temporary directory");
    let program = gcc(directory.path(), &[], "published.c", "published");
    let mut command = Command::new(program);
    command.arg("600");
    // Nothing announces a context. A sample before `main` would find none, and the next look is five seconds later.
    let recording = support::record_running(command, 499, Duration::from_millis(200));
    let stacks = Stacks::of(&recording.profile, |_| true);
    assert!(stacks.total() > 20, "{}", stacks.total());
    for series in &recording.profile.series {
        let name = series.labels.get("service_name");
        assert_eq!(name, Some("checkout-published"));
    }
}

#[test]
fn a_recording_of_a_process_has_times_and_threads() {
    if support::cannot_sample() || support::lacks("gcc") {
        return;
    }
    let _turn = support::turn();
    let directory = tempfile::tempdir().expect("a temporary directory");
    let program = gcc(directory.path(), &[], "shares.c", "timed");
    let child = Command::new(program)
        .arg("600")
        .stdout(Stdio::null())
        .spawn()
        .expect("it starts");
    let timed = Running(child);
    let profile = support::record_work(timed.pid(), 499, Duration::from_millis(200)).profile;
    assert_eq!(profile.validate(), Ok(()));
    assert_eq!(profile.series.len(), 1, "nobody else is recorded");
    let series = &profile.series[0];
    assert!(series.samples.len() > 20, "{}", series.samples.len());
    let end_ns = series.start_ns + series.duration_ns;
    for sample in &series.samples {
        // Two clocks are compared that are read one after the other.
        assert!((series.start_ns..=end_ns + 1_000_000).contains(&sample.time_ns));
        let labels = profile.label_sets.get(sample.label_set);
        let key = |name: &str| profile.symbols.strings.find(name).expect("a label's name");
        let number = |name: &str| {
            let label = labels.iter().find(|label| label.key == key(name));
            match label.expect("a label").value {
                candela_model::LabelValue::Number { value, .. } => value,
                candela_model::LabelValue::Text(_) => panic!("{name} is a number"),
            }
        };
        assert_eq!(number("pid"), i64::from(timed.pid()));
        assert_eq!(number("thread_id"), i64::from(timed.pid()));
    }
}

#[test]
fn what_cannot_be_recorded_says_why() {
    if support::cannot_sample() {
        return;
    }
    let missing = RecordOptions::new(RecordTargets::Command(Command::new("/nonexistent/program")));
    let error = candela_agent::record(missing, || {}).expect_err("no such program");
    assert!(
        error.to_string().contains("/nonexistent/program"),
        "{error}"
    );
    let gone = RecordOptions::new(RecordTargets::Pids(vec![u32::MAX - 1]));
    let error = candela_agent::record(gone, || {}).expect_err("no such process");
    assert!(error.to_string().contains("no process"), "{error}");
    let mut too_fast = RecordOptions::new(RecordTargets::All);
    too_fast.rate_hz = 5000;
    let error = candela_agent::record(too_fast, || {}).expect_err("too fast");
    assert!(error.to_string().contains("5000"), "{error}");
}

/// What lives for 200 ms is seen, by name, every single one.
#[test]
fn twenty_short_programs() {
    if support::cannot_sample() || support::lacks("gcc") {
        return;
    }
    check_short_programs(20, 1);
}

/// Runs so many programs, each of which must have so many samples: those that its CPU time is worth are twenty.
pub(crate) fn check_short_programs(count: u8, least: u64) -> AgentStatus {
    let _turn = support::turn();
    let directory = tempfile::tempdir().expect("a temporary directory");
    // Different build ids, so that each needs a table of its own.
    let build_id = [0xca; 20];
    let digits: String = build_id.iter().map(|byte| format!("{byte:02x}")).collect();
    let flag = format!("-Wl,--build-id=0x{digits}");
    let original = gcc(directory.path(), &[&flag], "short.c", "short");
    let original = std::fs::read(original).expect("just built");
    let place = original
        .windows(build_id.len())
        .position(|bytes| bytes == build_id);
    let place = place.expect("the linker wrote the build id");
    let programs: Vec<PathBuf> = (0..count)
        .map(|number| {
            let path = directory.path().join(format!("short-{number}"));
            let mut program = original.clone();
            program[place] = number;
            std::fs::write(&path, program).expect("room for a copy");
            let executable = std::os::unix::fs::PermissionsExt::from_mode(0o755);
            std::fs::set_permissions(&path, executable).expect("our own file");
            path
        })
        .collect();
    let profiles = Arc::new(Mutex::new(Vec::new()));
    let received = Arc::clone(&profiles);
    let exporter = InProcess::new(move |profile| {
        let mut received = received.lock().expect("nobody panics with it");
        received.push(profile.clone());
        Ok(())
    });
    let options = AgentOptions {
        rate_hz: 99,
        ..AgentOptions::default()
    };
    // Sampling is on when this returns.
    let agent = Agent::start(options, Box::new(exporter)).expect("it starts");
    // Two at a time: there are two ways of being in the middle of something.
    for pair in programs.chunks(2) {
        let children: Vec<_> = pair.iter().map(|path| Command::new(path).spawn()).collect();
        for child in children {
            let status = child.expect("it starts").wait().expect("it ends");
            assert!(status.success());
        }
    }
    // The kernel keeps no mappings of programs that have ended, which it may take a while to tell.
    support::wait_for(&agent, "mappings of what is alive", |status| {
        // Threads of the kernel have no program.
        let has_program = |entry: &DirEntry| std::fs::read_link(entry.path().join("exe")).is_ok();
        let proc = std::fs::read_dir("/proc").expect("procfs").flatten();
        let alive = proc.filter(|entry| is_pid(entry) && has_program(entry));
        status.source.kernel_processes as usize <= alive.count()
    });
    let status = agent.stop().expect("it stops");
    let profiles = profiles.lock().expect("nobody panics with it");
    let missing: Vec<String> = (0..count)
        .map(|number| format!("short-{number}"))
        .filter(|name| {
            let samples: u64 = profiles
                .iter()
                .map(|profile| {
                    let stacks = Stacks::of(profile, |series| {
                        series.labels.get("service_name") == Some(name)
                    });
                    stacks.with("burn_shortly")
                })
                .sum();
            samples < least
        })
        .collect();
    assert!(missing.is_empty(), "not seen: {missing:?}; {status:?}");
    status
}

/// Whether it is the folder of a process, and not `/proc/self`.
fn is_pid(entry: &DirEntry) -> bool {
    entry.file_name().as_encoded_bytes()[0].is_ascii_digit()
}
