//! Much at a time: what comes by the thousand takes bounded memory, is accounted for, and stalls nobody.

use std::fmt::Debug;
use std::fmt::Display;
use std::fs;
use std::fs::File;
use std::path::Path;
use std::path::PathBuf;
use std::process::Command;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering;
use std::time::Duration;
use std::time::Instant;

use crate::support;
use crate::support::Stacks;
use candela_agent::AgentOptions;
use candela_agent::DropReason;
use candela_agent::Kind;
use candela_agent::Kinds;
use candela_agent::RecordOptions;
use candela_agent::RecordTargets;
use candela_agent::Recording;
use candela_model::Profile;
use candela_model::ProfileSeries;
use candela_testing::expect_within;
use candela_testing::more_than;

/// By which the process of the recorder may grow at most: symbols, stack copies of a poll, and what it knows
/// of processes have bounds of their own.
const MOST_GROWTH_MIB: f64 = 128.0;
const MIB: f64 = 1_048_576.0;

/// Samples a second of a busy CPU.
const RATE_HZ: u32 = 499;

/// By how much what is sampled of a storm may differ from its CPU time besides by chance, and with it.
const TOLERANCE: f64 = 0.03;
const TOLERANCE_WITH_CHANCE: f64 = 0.1;

/// What a host should stand, short processes in a minute.
const PROCESSES_A_MINUTE: f64 = 2_000.0;

/// The longest that a thread with nothing else to do may not have run.
const LONGEST_STALL_S: f64 = 2.0;

/// What was seen while a storm was recorded.
struct Storm {
    recording: Recording,
    /// The CPU time that its processes took, as the kernel accounts it, nanoseconds.
    cpu_ns: u64,
    growth_bytes: u64,
    longest_stall: Duration,
}

impl Storm {
    /// Builds the program and records it: what runs, what waits, faults, and growth.
    fn record(kind: &str, count: u32, flags: &[&str]) -> Self {
        let all = [Kind::Cpu, Kind::OffCpu, Kind::Fault, Kind::Growth];
        Self::record_kinds(all.into(), kind, count, flags)
    }

    fn record_kinds(kinds: Kinds, kind: &str, count: u32, flags: &[&str]) -> Self {
        let directory = tempfile::tempdir().expect("a temporary directory");
        let program = build(directory.path(), flags);
        let told = directory.path().join("told");
        let mut command = Command::new(&program);
        command.args([kind, &count.to_string()]);
        command.stdout(File::create(&told).expect("a file"));
        record(kinds, command, &told)
    }

    /// Nothing is lost but what the ledger has, and the host was there for others.
    fn assert_bounds(&self) {
        let status = self.recording.exit_status.expect("it has ended");
        assert!(status.success(), "{status}");
        let growth_mib = self.growth_bytes as f64 / MIB;
        expect_within(
            "MiB that the recorder grew by",
            growth_mib,
            ..MOST_GROWTH_MIB,
            "",
        );
        let stall_s = self.longest_stall.as_secs_f64();
        expect_within(
            "seconds of the longest stall",
            stall_s,
            ..LONGEST_STALL_S,
            "",
        );
        let lost = self.recording.report.lost_samples();
        let cpu = Kind::Cpu.profile_type();
        let series = &self.recording.profile.series;
        let of_cpu = series.iter().filter(|it| it.profile_type == cpu);
        let sampled: i64 = of_cpu
            .flat_map(|series| series.samples.iter().map(|sample| sample.value))
            .sum();
        assert_explained(self.cpu_ns, sampled, lost, &self.recording.report);
    }

    fn stacks(&self) -> Stacks {
        let cpu = Kind::Cpu.profile_type();
        Stacks::of(&self.recording.profile, |series| series.profile_type == cpu)
    }
}

fn build(directory: &Path, flags: &[&str]) -> PathBuf {
    let program = directory.join("storm");
    let compiler = ["-O2", "-g", "-fomit-frame-pointer", "-pthread"];
    let flags = compiler.iter().chain(flags).map(PathBuf::from);
    let paths = ["-o".into(), program.clone(), support::source("storm.c")];
    support::run("gcc", flags.chain(paths));
    program
}

/// What was sampled and what the ledger has make up the CPU time.
fn assert_explained(cpu_ns: u64, sampled_ns: i64, lost: u64, report: &impl Debug) {
    let period = 1e9 / f64::from(RATE_HZ);
    let missing = cpu_ns as f64 - sampled_ns as f64;
    // Two standard errors: a stretch of time shorter than a period is one sample or none.
    let samples = cpu_ns as f64 / period;
    let by_chance = 2.0 * 0.5 * samples.sqrt();
    let tolerated = (TOLERANCE * samples + by_chance).min(TOLERANCE_WITH_CHANCE * samples);
    // What is lost may have been of any kind.
    let explained = tolerated + 8.0 + lost as f64;
    expect_within(
        "samples missing / those that chance and the ledger explain",
        missing.abs() / (explained * period),
        ..=1.0,
        format_args!("{sampled_ns} ns of {cpu_ns} ns sampled, {lost} lost: {report:?}"),
    );
}

fn record(kinds: Kinds, command: Command, told: &Path) -> Storm {
    let options = RecordOptions {
        rate_hz: RATE_HZ,
        kinds,
        duration: Some(Duration::from_secs(120)),
        ..RecordOptions::new(RecordTargets::Command(command))
    };
    let is_over = AtomicBool::new(false);
    let before = resident_bytes();
    let (recording, (most, longest_stall)) = std::thread::scope(|scope| {
        let heart = scope.spawn(|| beat(&is_over));
        let recording = candela_agent::record(options, || {});
        is_over.store(true, Ordering::SeqCst);
        (recording, heart.join().expect("it does not panic"))
    });
    Storm {
        recording: recording.unwrap_or_else(|error| panic!("{error}")),
        cpu_ns: number_in(told),
        growth_bytes: most.saturating_sub(before),
        longest_stall,
    }
}

fn number_in(file: &Path) -> u64 {
    let printed = fs::read_to_string(file).expect("the program's output");
    let number = printed.trim().parse();
    number.unwrap_or_else(|_| panic!("the program told {printed:?}"))
}

/// The most memory that this process has had, and the longest that this thread has waited for its turn.
fn beat(is_over: &AtomicBool) -> (u64, Duration) {
    let pause = Duration::from_millis(10);
    let (mut most, mut longest) = (0, Duration::ZERO);
    while !is_over.load(Ordering::SeqCst) {
        let begun = Instant::now();
        std::thread::park_timeout(pause);
        longest = longest.max(begun.elapsed().saturating_sub(pause));
        most = most.max(resident_bytes());
    }
    (most, longest)
}

fn resident_bytes() -> u64 {
    let status = fs::read_to_string("/proc/self/status").expect("our own status");
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    let kib = line.and_then(|line| line.trim().strip_suffix(" kB")?.parse::<u64>().ok());
    kib.expect("a size in kB") << 10
}

fn cannot_storm() -> bool {
    support::cannot_sample_off_cpu() || support::lacks("gcc")
}

#[test]
fn a_thousand_short_processes() {
    if cannot_storm() {
        return;
    }
    let _turn = support::turn();
    let storm = Storm::record("processes", 1_000, &[]);
    storm.assert_bounds();
    let named = storm.stacks().with("burn_in_storm");
    expect_named(named, 1_000.0, storm.stacks().sketch());
    assert_rate(1_000.0, storm.recording.report.duration_ns as f64 / 60e9);
}

fn assert_rate(processes: f64, minutes: f64) {
    let rate = processes / minutes;
    expect_within("short processes a minute", rate, PROCESSES_A_MINUTE.., "");
}

/// More samples than `least` are in the function that burns.
#[track_caller]
fn expect_named(named: u64, least: f64, sketch: impl Display) {
    expect_within(
        "samples of the function that burns",
        named as f64,
        more_than(least),
        sketch,
    );
}

/// The same where nobody waits for the end: windows of a second are sent while it goes on.
#[test]
fn a_thousand_short_processes_beside_the_continuous_agent() {
    if cannot_storm() {
        return;
    }
    let _turn = support::turn();
    let directory = tempfile::tempdir().expect("a temporary directory");
    let program = build(directory.path(), &[]);
    let told = directory.path().join("told");
    let (agent, profiles) = support::start_agent(AgentOptions {
        rate_hz: RATE_HZ,
        kinds: [Kind::Cpu, Kind::OffCpu, Kind::Fault, Kind::Growth].into(),
        window: Duration::from_secs(1),
        first_window: Duration::from_secs(1),
        ..AgentOptions::default()
    });
    support::wait_for(&agent, "the first profiles", |status| {
        status.delivery.profiles > 0
    });
    let mut command = Command::new(&program);
    command.args(["processes", "1000"]);
    command.stdout(File::create(&told).expect("a file"));
    let begun = Instant::now();
    let status = command.status().expect("it was just built");
    let elapsed = begun.elapsed();
    let status_of_agent = agent.stop().expect("it stops");
    assert!(status.success(), "{status}");
    assert_rate(1_000.0, elapsed.as_secs_f64() / 60.0);

    let cpu = Kind::Cpu.profile_type();
    let is_of_storm = |series: &&ProfileSeries| {
        let executable = series.labels.get("process_executable_name");
        series.profile_type == cpu && executable == Some("storm")
    };
    let profiles: Vec<Profile> = profiles.try_iter().collect();
    let series = profiles.iter().flat_map(|profile| &profile.series);
    let sampled: i64 = series.filter(is_of_storm).map(ProfileSeries::total).sum();
    let lost: u64 = DropReason::ALL
        .iter()
        .filter(|reason| reason.is_lost_sample())
        .map(|reason| status_of_agent.drops[reason.name()])
        .sum();
    assert_explained(number_in(&told), sampled, lost, &status_of_agent);
}

#[test]
fn a_hundred_thousand_mappings() {
    const LIMIT: &str = "/proc/sys/vm/max_map_count";
    if cannot_storm() {
        return;
    }
    let _turn = support::turn();
    let before = fs::read_to_string(LIMIT).expect("the limit");
    let is_enough = before.trim().parse::<u64>().expect("a number") >= 200_000;
    if !is_enough && fs::write(LIMIT, "200000").is_err() {
        support::skipped("more mappings are not allowed here");
        return;
    }
    let storm = std::panic::catch_unwind(|| Storm::record("mappings", 100_000, &[]));
    if !is_enough {
        fs::write(LIMIT, before).expect("who may raise it may lower it");
    }
    let storm = storm.expect("it is recorded");
    storm.assert_bounds();
    let stacks = storm.stacks();
    let complete = stacks.count(|names| {
        names.iter().any(|name| name == "burn_in_storm")
            && names.last().is_some_and(|name| name == "_start")
    });
    let what = "complete stacks of the function that burns";
    expect_within(what, complete as f64, more_than(400.0), stacks.sketch());
}

#[test]
fn a_thousand_threads() {
    if cannot_storm() {
        return;
    }
    let _turn = support::turn();
    let storm = Storm::record("threads", 1_000, &[]);
    storm.assert_bounds();
    let off_cpu = Kind::OffCpu.profile_type();
    let series = &storm.recording.profile.series;
    let of_type = series.iter().filter(|it| it.profile_type == off_cpu);
    let asleep: i64 = of_type
        .flat_map(|series| series.samples.iter().map(|sample| sample.value))
        .sum();
    // Each sleeps five times 20 ms, and waits for a CPU besides.
    expect_within(
        "seconds asleep of 100",
        asleep as f64 / 1e9,
        more_than(95.0),
        "",
    );
}

#[test]
fn one_process_that_is_three_hundred_programs() {
    if cannot_storm() {
        return;
    }
    let _turn = support::turn();
    let storm = Storm::record("execs", 300, &[]);
    storm.assert_bounds();
    let named = storm.stacks().with("burn_in_storm");
    expect_named(named, 300.0, storm.stacks().sketch());
}

#[test]
fn forks_of_forks() {
    if cannot_storm() {
        return;
    }
    let _turn = support::turn();
    // It begins to fork before anybody knows it: until then all stacks are copied, and those of all kinds are too many.
    let storm = Storm::record("bomb", 500, &[]);
    storm.assert_bounds();
    assert!(storm.stacks().with("burn_in_storm") > 0);
    // Two milliseconds in each of them are 499 samples, if none is lost.
    let storm = Storm::record_kinds([Kind::Cpu].into(), "bomb", 500, &[]);
    storm.assert_bounds();
    let stacks = storm.stacks();
    let named = stacks.with("burn_in_storm");
    let report = &storm.recording.report;
    expect_named(
        named,
        300.0,
        format_args!("{report:?}\n{}", stacks.sketch()),
    );
    // The rest is forking.
    let share = named as f64 / stacks.total() as f64;
    expect_within(
        "share of the function that burns",
        share,
        more_than(0.7),
        stacks.sketch(),
    );
}

/// What is known when it forks has its tables in the kernel, and so have its children: none of them needs to be looked
/// at before it can be walked.
#[test]
fn forks_of_forks_of_a_known_process() {
    if cannot_storm() {
        return;
    }
    let _turn = support::turn();
    let storm = Storm::record("known", 500, &[]);
    storm.assert_bounds();
    let stacks = storm.stacks();
    let named = stacks.with("burn_in_storm");
    // 0.4 s of the first process and two milliseconds in each: 699.
    expect_named(named, 600.0, stacks.sketch());
    let report = &storm.recording.report;
    let samples = report.source.kernel_samples as f64;
    let copied = report.source.stack_copies as f64 / samples;
    expect_within("share of stacks that were copied", copied, ..0.05, samples);
    let lost = report.lost_samples() as f64 / samples;
    expect_within("share of samples that were lost", lost, ..0.02, samples);
}

#[test]
fn a_binary_of_three_hundred_megabytes() {
    if cannot_storm() {
        return;
    }
    let _turn = support::turn();
    let directory = tempfile::tempdir().expect("a temporary directory");
    let ballast = directory.path().join("ballast.s");
    let text = ".section .rodata\nballast: .fill 300 << 20, 1, 7\n.section .note.GNU-stack,\"\"\n";
    fs::write(&ballast, text).expect("a file");
    let ballast = ballast.to_str().expect("an UTF-8 path");
    let storm = Storm::record("execs", 20, &["-static", ballast]);
    storm.assert_bounds();
    let named = storm.stacks().with("burn_in_storm");
    expect_named(named, 20.0, storm.stacks().sketch());
}
