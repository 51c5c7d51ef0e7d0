//! Heaps of Go programs, compared with what these write of themselves.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::BufRead;
use std::io::BufReader;
use std::io::Write;
use std::path::Path;
use std::path::PathBuf;
use std::process::Child;
use std::process::ChildStdin;
use std::process::ChildStdout;
use std::process::Command;
use std::process::Stdio;
use std::sync::atomic::Ordering;
use std::sync::mpsc::channel;
use std::time::Duration;

use crate::support;
use candela_agent::AgentError;
use candela_agent::AgentOptions;
use candela_agent::AgentTargets;
use candela_agent::DropReason;
use candela_agent::GoHeapError;
use candela_agent::Kind;
use candela_agent::RecordOptions;
use candela_agent::RecordTargets;
use candela_agent::SourceStatus;
use candela_formats::ReadOptions;
use candela_model::Profile;

/// The sample type that stands for what is allocated, and that for what is in use.
const TYPES: [&str; 4] = [
    "alloc_objects",
    "alloc_space",
    "inuse_objects",
    "inuse_space",
];

/// Functions that allocate in the program.
const FUNCTIONS: [&str; 5] = [
    "main.(*keeper).small",
    "main.block",
    "main.large",
    "main.mapped",
    "main.deep",
];

/// A program that allocates when it is told to, and ends with the test.
struct Program {
    child: Child,
    stdin: ChildStdin,
    stdout: BufReader<ChildStdout>,
    directory: PathBuf,
}

impl Program {
    /// Started with these arguments, once it has allocated for the first time.
    fn start(program: &Path, directory: &Path, rate: Option<&str>) -> Self {
        let mut child = Command::new(program)
            .arg(directory)
            .args(rate)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("it was just built");
        let stdin = child.stdin.take().expect("piped");
        let stdout = child.stdout.take().expect("piped");
        let mut program = Self {
            child,
            stdin,
            stdout: BufReader::new(stdout),
            directory: directory.to_owned(),
        };
        program.expect("ready\n");
        program
    }

    fn go_on(&mut self) {
        self.stdin.write_all(b"\n").expect("it reads");
    }

    fn expect(&mut self, wanted: &str) {
        let mut line = String::new();
        self.stdout.read_line(&mut line).expect("text");
        assert_eq!(line, wanted);
    }

    /// What it has written of itself.
    fn own_profile(&self, name: &str) -> Profile {
        let file = File::open(self.directory.join(name)).expect("it was written");
        let (profile, _) =
            candela_formats::read_pprof(BufReader::new(file), &ReadOptions::default())
                .expect("a profile");
        profile
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        // Should it have ended, there is nothing left to do.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn build(directory: &Path, source: &Path, flags: &[&str]) -> PathBuf {
    let program = directory.join("program");
    let output = Command::new("go")
        .arg("build")
        .args(flags)
        .arg("-o")
        .args([&program, source])
        .env("GO111MODULE", "off")
        .env("GOFLAGS", "-buildvcs=false")
        .output()
        .expect("go starts");
    let messages = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{messages}");
    program
}

/// What stands at a stack.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Sum {
    value: i64,
    samples: i64,
}

/// The sums of a type by stack, as names from the innermost function on; those of nothing are left out.
fn sums(profile: &Profile, sample_type: &str) -> BTreeMap<Vec<String>, Sum> {
    let mut sums = BTreeMap::<_, Sum>::new();
    let series = profile.series.iter();
    for series in series.filter(|series| series.profile_type.sample_type == sample_type) {
        for sample in series.samples.iter().filter(|sample| sample.value != 0) {
            let locations = profile.stacks.get(sample.stack).iter();
            let names = locations.flat_map(|&location| support::names_of(profile, location));
            // The compiler's wrappers of methods are frames for us, and none for the runtime.
            let names = names.filter(|name| !name.ends_with("-fm"));
            let sum = sums.entry(names.collect()).or_default();
            sum.value += sample.value;
            sum.samples += 1;
        }
    }
    sums
}

/// The recorded sums must be the program's own: those in use at the end, and what was allocated between its two
/// profiles. These are estimates that the program has rounded down, each on its own.
fn assert_same(recorded: &Profile, program: &Program, rounding: i64) {
    let (before, after) = (
        program.own_profile("before.pb.gz"),
        program.own_profile("after.pb.gz"),
    );
    for sample_type in TYPES {
        let ours = sums(recorded, sample_type);
        let mut theirs = sums(&after, sample_type);
        let is_allocated = sample_type.starts_with("alloc");
        if is_allocated {
            for (stack, sum) in sums(&before, sample_type) {
                let since = theirs.get_mut(&stack).expect("allocations only grow");
                since.value -= sum.value;
                since.samples += sum.samples;
            }
            theirs.retain(|_, sum| sum.value != 0);
        }
        let only_theirs: Vec<_> = theirs.keys().filter(|it| !ours.contains_key(*it)).collect();
        let only_ours: Vec<_> = ours.keys().filter(|it| !theirs.contains_key(*it)).collect();
        assert!(
            only_ours.is_empty() && only_theirs.is_empty(),
            "{sample_type} is recorded of {only_ours:#?}, and not of {only_theirs:#?}"
        );
        for (stack, sum) in &theirs {
            let off_by = (ours[stack].value - sum.value).abs();
            let tolerance = if is_allocated {
                rounding * sum.samples
            } else {
                0
            };
            assert!(
                off_by <= tolerance,
                "{sample_type} {stack:?}: {:?}, not {sum:?}",
                ours[stack]
            );
        }
        for function in FUNCTIONS.iter().filter(|_| is_allocated) {
            let is_there = ours.keys().any(|stack| stack[0] == *function);
            assert!(is_there, "{function} has no {sample_type}");
        }
    }
}

fn record(program: &mut Program) -> Profile {
    let options = RecordOptions {
        kinds: [Kind::Alloc].into(),
        duration: Some(Duration::from_secs(60)),
        ..RecordOptions::new(RecordTargets::Pids(vec![program.child.id()]))
    };
    let stop = std::sync::Arc::clone(&options.stop);
    let (sender, begun) = channel();
    let recording = std::thread::scope(|scope| {
        let begins = move || sender.send(()).expect("the test waits");
        let recorder = scope.spawn(|| candela_agent::record(options, begins));
        // Without a begin there is an error to tell.
        if begun.recv().is_ok() {
            program.go_on();
            program.expect("done\n");
        }
        stop.store(true, Ordering::Relaxed);
        recorder.join().expect("no panic")
    });
    let recording = recording.unwrap_or_else(|error| panic!("{error}"));
    for reason in [
        DropReason::GoHeapOff,
        DropReason::GoHeapUnread,
        DropReason::GoHeapGone,
        DropReason::FrameUnnamed,
    ] {
        assert_eq!(recording.report.count(reason), 0, "{:?}", recording.report);
    }
    let nothing = SourceStatus::default();
    assert_eq!(
        recording.report.source, nothing,
        "the kernel is asked for nothing"
    );
    recording.profile
}

#[test]
fn a_heap_is_what_the_program_itself_says() {
    if support::cannot_sample() || support::lacks("go") {
        return;
    }
    let directory = tempfile::tempdir().expect("a temporary directory");
    let cases: [(&[&str], Option<&str>, i64); 2] = [
        (&[], Some("1"), 0),
        // Stripped, at the usual rate: two estimates are rounded down, and ours is.
        (&["-ldflags=-s -w"], None, 2),
    ];
    for (flags, rate, rounding) in cases {
        let file = build(directory.path(), &support::source("heap.go"), flags);
        let mut program = Program::start(&file, directory.path(), rate);
        let recorded = record(&mut program);
        assert_same(&recorded, &program, rounding);
    }
}

#[test]
fn the_continuous_agent_reads_heaps_in_each_window() {
    if support::cannot_sample() || support::lacks("go") {
        return;
    }
    let directory = tempfile::tempdir().expect("a temporary directory");
    let file = build(directory.path(), &support::source("heap.go"), &[]);
    let mut program = Program::start(&file, directory.path(), Some("1"));
    let options = AgentOptions {
        kinds: [Kind::Alloc].into(),
        targets: AgentTargets::Pids(vec![program.child.id()]),
        window: Duration::from_secs(1),
        first_window: Duration::from_secs(1),
        ..AgentOptions::default()
    };
    let (agent, profiles) = support::start_agent(options);
    // What is in use is told while nothing happens.
    let first = profiles.recv_timeout(support::PATIENCE);
    let first = first.expect("a window in time");
    let own = program.own_profile("before.pb.gz");
    for sample_type in TYPES {
        let expected = match sample_type.starts_with("alloc") {
            true => BTreeMap::new(),
            false => sums(&own, sample_type),
        };
        let values = |sums: BTreeMap<Vec<String>, Sum>| -> BTreeMap<Vec<String>, i64> {
            let values = sums.into_iter();
            values.map(|(stack, sum)| (stack, sum.value)).collect()
        };
        assert_eq!(values(sums(&first, sample_type)), values(expected));
    }
    program.go_on();
    program.expect("done\n");
    let status = agent.stop().expect("it stops");
    assert_eq!(status.failure, "");
    for thread in ["candela-heaps", "candela-places"] {
        assert!(
            status.cost.threads.contains_key(thread),
            "{:?}",
            status.cost
        );
    }
    // Several windows may have it, and each tells what is in use.
    let mut whole = Profile::default();
    let mut in_use = Profile::default();
    for profile in profiles.try_iter() {
        let is_allocated = sums(&profile, "alloc_space") != BTreeMap::new();
        match is_allocated {
            true => whole.absorb(&profile),
            false => in_use = profile,
        }
    }
    whole.absorb(&in_use);
    assert_same(&whole, &program, 0);
}

#[test]
fn a_program_that_profiles_no_memory_is_refused_with_the_reason() {
    if support::lacks("go") {
        return;
    }
    let directory = tempfile::tempdir().expect("a temporary directory");
    let source = directory.path().join("quiet.go");
    // The linker sees that nothing reads the profile.
    let text = "package main\nimport \"os\"\nfunc main() { os.Stdout.WriteString(\"ready\\n\"); os.Stdin.Read(make([]byte, 1)) }\n";
    std::fs::write(&source, text).expect("written");
    let file = build(directory.path(), &source, &[]);
    let program = Program::start(&file, directory.path(), None);
    let targets = RecordTargets::Pids(vec![program.child.id()]);
    let options = RecordOptions {
        kinds: [Kind::Alloc].into(),
        ..RecordOptions::new(targets)
    };
    let refused = candela_agent::record(options, || panic!("nothing begins"));
    let error = refused.expect_err("there is nothing to record");
    let is_off = matches!(
        &error,
        AgentError::GoHeap {
            source: GoHeapError::Off,
            ..
        }
    );
    assert!(is_off, "{error}");
    assert!(
        error.to_string().contains("import net/http/pprof"),
        "{error}"
    );
}
