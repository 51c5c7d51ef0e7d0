//! What threads make the kernel do, against what the programs or the kernel count themselves: memory that is asked
//! for, waits for a CPU, requests to a block device, waits for locks of the kernel.

use std::collections::BTreeMap;
use std::path::Path;
use std::path::PathBuf;
use std::process::Command;

use crate::support;
use candela_agent::Kind;
use candela_agent::Kinds;
use candela_agent::RecordOptions;
use candela_agent::RecordTargets;
use candela_agent::Recording;
use candela_model::LabelValue;
use candela_model::Profile;
use candela_model::Sample;

/// A recording of a test program, and the numbers that it wrote.
pub(crate) struct Told {
    pub(crate) recording: Recording,
    pub(crate) truth: Vec<i64>,
}

impl Told {
    /// Whether a sum is the truth, unless a busy host has lost samples: that is counted.
    #[track_caller]
    fn assert_all(&self, sum: i64, truth: i64) {
        match self.recording.report.lost_samples() {
            0 => assert_eq!(sum, truth),
            lost => assert!(sum <= truth, "{sum} of {truth}, {lost} samples lost"),
        }
    }
}

fn build(directory: &Path, name: &str) -> PathBuf {
    let program = directory.join(name);
    let flags = ["-O2", "-g", "-fomit-frame-pointer", "-pthread", "-o"];
    let files = [program.clone(), support::source(&format!("{name}.c"))];
    support::run("gcc", flags.map(Into::into).into_iter().chain(files));
    program
}

pub(crate) fn record(kind: Kind, program: &str, arguments: &[&str]) -> Told {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let program = build(directory.path(), program);
    run(directory.path(), &program, arguments, |options| {
        options.kinds = [kind].into();
    })
}

/// Runs `program ARGUMENTS… TRUTH` in the directory.
fn run(
    directory: &Path,
    program: &Path,
    arguments: &[&str],
    choose: impl FnOnce(&mut RecordOptions),
) -> Told {
    let truth = directory.join("truth");
    let mut command = Command::new(program);
    command.args(arguments).arg(&truth).current_dir(directory);
    let mut options = RecordOptions::new(RecordTargets::Command(command));
    options.rate_hz = 499;
    choose(&mut options);
    let recording = candela_agent::record(options, || {}).unwrap_or_else(|error| panic!("{error}"));
    assert!(recording.exit_status.is_some_and(|status| status.success()));
    assert_eq!(recording.profile.validate(), Ok(()));
    let truth = std::fs::read_to_string(truth).expect("it wrote the truth");
    let numbers = truth
        .split_whitespace()
        .map(|word| word.parse().expect("a number"));
    Told {
        truth: numbers.collect(),
        recording,
    }
}

/// The sum of the values of a type whose stack has all of these functions.
fn sum(profile: &Profile, profile_type: &str, functions: &[&str]) -> i64 {
    let of_type = profile
        .series
        .iter()
        .filter(|series| series.profile_type.to_string() == profile_type);
    let has = |sample: &&Sample, function: &str| {
        let mut locations = profile.stacks.get(sample.stack).iter();
        locations.any(|&location| {
            let names = support::names_of(profile, location);
            names.iter().any(|name| name == function)
        })
    };
    of_type
        .flat_map(|series| &series.samples)
        .filter(|sample| functions.iter().all(|function| has(sample, function)))
        .map(|sample| sample.value)
        .sum()
}

#[test]
fn growth_is_what_the_process_has_asked_for_by_what_asked() {
    if support::cannot_sample() || support::lacks("gcc") {
        return;
    }
    let told = record(Kind::Growth, "grow", &["64"]);
    let grown = |function| {
        let growth = "memory_growth:growth:bytes:growth:bytes";
        sum(&told.recording.profile, growth, &[function])
    };
    assert_eq!(told.truth.len(), 3, "{:?}", told.truth);
    told.assert_all(grown("map_some"), told.truth[0]);
    told.assert_all(grown("extend_heap"), told.truth[1]);
    // The mapping before them cannot be written to, so that it is no growth.
    told.assert_all(grown("make_writable"), told.truth[2]);
}

#[test]
fn waits_for_a_cpu_are_what_the_scheduler_counted() {
    if support::cannot_sample_off_cpu() || support::lacks("gcc") {
        return;
    }
    let _turn = support::turn();
    let told = record(Kind::RunQueue, "queue", &["500"]);
    let ratio = waited_for_cpu(&told, 20);
    assert!((0.5..2.0).contains(&ratio), "{ratio}");
}

/// What was sampled of waits for a CPU, of which there must be more than so many, beside what the scheduler counted.
pub(crate) fn waited_for_cpu(told: &Told, least: i64) -> f64 {
    let delay = "runq:delay:nanoseconds:delay:nanoseconds";
    let waited = sum(&told.recording.profile, delay, &["compete"]);
    let waits = "runq:waits:count:delay:nanoseconds";
    let count = sum(&told.recording.profile, waits, &["compete"]);
    assert!(count > least, "{count} waits, {waited} of {:?}", told.truth);
    waited as f64 / told.truth[0] as f64
}

#[test]
fn a_cpu_that_another_thread_takes_is_told_as_its_loss() {
    if support::cannot_sample_off_cpu() || support::lacks("gcc") {
        return;
    }
    let _turn = support::turn();
    let told = record(Kind::OffCpu, "queue", &["500", "busy"]);
    let Lost { ratio, others } = lost_cpu(&told);
    assert!((0.5..2.0).contains(&ratio), "{ratio}");
    assert!(others < 0.5, "{others}");
}

/// What threads lost that wanted a CPU all of the time.
pub(crate) struct Lost {
    /// The time for which they were preempted, beside what the scheduler counted.
    pub(crate) ratio: f64,
    /// The time off CPU for other reasons, beside that for this one.
    pub(crate) others: f64,
}

pub(crate) fn lost_cpu(told: &Told) -> Lost {
    let profile = &told.recording.profile;
    let mut waited_ns: BTreeMap<&str, i64> = BTreeMap::new();
    for sample in off_cpu_samples_in(profile, "compete") {
        *waited_ns.entry(reason_of(profile, sample)).or_default() += sample.value;
    }
    let preempted_ns = waited_ns.remove("preempted").unwrap_or_default();
    let others_ns: i64 = waited_ns.values().sum();
    Lost {
        ratio: preempted_ns as f64 / told.truth[0] as f64,
        others: others_ns as f64 / preempted_ns as f64,
    }
}

/// Samples of time off CPU below a function.
fn off_cpu_samples_in<'a>(
    profile: &'a Profile,
    function: &'a str,
) -> impl Iterator<Item = &'a Sample> {
    let off_cpu = profile.series.iter().filter(|series| {
        series.profile_type.to_string() == "off_cpu:off_cpu:nanoseconds:off_cpu:nanoseconds"
    });
    let samples = off_cpu.flat_map(|series| &series.samples);
    samples.filter(move |sample| {
        let mut locations = profile.stacks.get(sample.stack).iter();
        locations.any(|&location| {
            let names = support::names_of(profile, location);
            names.iter().any(|name| name == function)
        })
    })
}

#[test]
fn requests_to_a_disk_are_counted_and_timed_by_who_made_them() {
    if support::cannot_sample() || support::lacks("gcc") {
        return;
    }
    let told = record(Kind::BlockIo, "requests", &["64", "blocks"]);
    let Some(&elapsed_ns) = told.truth.first() else {
        eprintln!("skipped: the temporary directory has no block device behind it");
        return;
    };
    let profile = &told.recording.profile;
    // The kernel's part of the stack tells those from the writes before, which come from the page cache.
    let direct = ["write_blocks", "iomap_dio_rw"];
    let direct = match sum(profile, "block_io:requests:count:requests:count", &direct) {
        0 => ["write_blocks", "pwrite64"],
        _ => direct,
    };
    let requests = sum(profile, "block_io:requests:count:requests:count", &direct);
    told.assert_all(requests, 64);
    let delay_ns = sum(
        profile,
        "block_io:delay:nanoseconds:requests:count",
        &direct,
    );
    assert!(
        delay_ns > 0 && delay_ns < elapsed_ns,
        "{delay_ns} of {elapsed_ns}"
    );
}

#[test]
fn what_is_written_past_the_page_cache_waits_for_the_disk() {
    if support::cannot_sample_off_cpu() || support::lacks("gcc") {
        return;
    }
    let told = record(Kind::OffCpu, "requests", &["500", "blocks"]);
    let Some(&elapsed_ns) = told.truth.first() else {
        eprintln!("skipped: the temporary directory has no block device behind it");
        return;
    };
    let waited_ns = waited_by_reason(&told.recording.profile);
    let disk_ns = waited_ns.get("disk").copied().unwrap_or_default();
    assert!(
        disk_ns > 0 && disk_ns < elapsed_ns,
        "{waited_ns:?} of {elapsed_ns} ns"
    );
}

/// How long blocks were waited for, by what for.
pub(crate) fn waited_by_reason(profile: &Profile) -> BTreeMap<&str, i64> {
    let mut waited_ns = BTreeMap::new();
    for sample in off_cpu_samples_in(profile, "write_blocks") {
        *waited_ns.entry(reason_of(profile, sample)).or_default() += sample.value;
    }
    waited_ns
}

/// What a sample of time off CPU waited for.
fn reason_of<'a>(profile: &'a Profile, sample: &Sample) -> &'a str {
    let strings = &profile.symbols.strings;
    let labels = profile.label_sets.get(sample.label_set).iter();
    let mut reasons = labels.filter(|label| strings.get(label.key) == "off_cpu_reason");
    match reasons.next().map(|label| label.value) {
        Some(LabelValue::Text(text)) => strings.get(text),
        other => panic!("a reason is a word: {other:?}"),
    }
}

#[test]
fn named_events_come_as_often_as_they_happen() {
    if support::cannot_sample() || support::lacks("gcc") {
        return;
    }
    let directory = tempfile::tempdir().expect("a temporary directory");
    let program = build(directory.path(), "requests");
    let names = [
        "tracepoint:syscalls:sys_enter_pwrite64".to_owned(),
        "tracepoint:syscalls:sys_exit_pwrite64".to_owned(),
        format!("uprobe:{}:write_blocks", program.display()),
        "tracepoint:sched:sched_process_exec".to_owned(),
        "faults".to_owned(),
        "syscalls:sys_enter_close".to_owned(),
    ];
    let told = run(directory.path(), &program, &["50", "blocks"], |options| {
        options.kinds = [].into();
        options.events = names.iter().map(|it| it.parse().expect(it)).collect();
    });
    let profile = &told.recording.profile;
    let count = |name: &str, functions: &[&str]| {
        sum(
            profile,
            &format!("event:{name}:count:{name}:count"),
            functions,
        )
    };
    let rounds = if told.truth.is_empty() { 1 } else { 2 };
    let of_writes = |name: &str| count(name, &["write_blocks", "main"]);
    told.assert_all(of_writes("sys_enter_pwrite64"), 50 * rounds);
    told.assert_all(of_writes("sys_exit_pwrite64"), 50 * rounds);
    told.assert_all(of_writes("requests/write_blocks"), rounds);
    told.assert_all(count("sched_process_exec", &[]), 1);
    assert!(count("page-faults", &[]) > 10);
    assert!(count("sys_enter_close", &["main"]) >= 1);
}

#[test]
fn an_event_that_is_not_there_is_told_by_its_name() {
    if support::cannot_sample() {
        return;
    }
    let refusal = |name: &str| {
        let mut options = RecordOptions::new(RecordTargets::All);
        options.events = vec![name.parse().expect(name)];
        // Beside others it would be left out.
        options.kinds = Kinds::from([]);
        let error = candela_agent::record(options, || {}).expect_err("it is not there");
        assert!(error.to_string().contains(name), "{error}");
        error.to_string()
    };
    assert!(refusal("tracepoint:sched:no_such").contains("no such tracepoint"));
    assert!(refusal("tracepoint:syscalls:sys_enter_nothing").contains("system call"));
    refusal("uprobe:/proc/self/exe:no_such_function");
}

#[test]
fn waits_for_a_lock_of_the_kernel_are_told_by_what_waits() {
    if support::cannot_sample() || support::lacks("gcc") {
        return;
    }
    let _turn = support::turn();
    let waits = Contention::of(&record(Kind::KernelLock, "contend", &["500"]));
    assert!(
        waits.waited_ns > 0 && waits.waited_ns < waits.spent_ns,
        "{waits:?}"
    );
    assert!(waits.count > 0, "{waits:?}");
}

/// Waits of four threads that take turns at one lock of the kernel.
#[derive(Debug)]
pub(crate) struct Contention {
    pub(crate) waited_ns: i64,
    pub(crate) count: i64,
    /// How long their calls took together, and how much of it they slept.
    pub(crate) spent_ns: i64,
    pub(crate) slept_ns: i64,
}

impl Contention {
    pub(crate) fn of(told: &Told) -> Self {
        let profile = &told.recording.profile;
        let delay = "kernel_lock:delay:nanoseconds:contentions:count";
        let contentions = "kernel_lock:contentions:count:contentions:count";
        let functions = ["map_and_unmap", "rwsem_down_write_slowpath"];
        Self {
            waited_ns: sum(profile, delay, &functions),
            count: sum(profile, contentions, &functions[..1]),
            spent_ns: told.truth[0],
            slept_ns: told.truth[1],
        }
    }
}
