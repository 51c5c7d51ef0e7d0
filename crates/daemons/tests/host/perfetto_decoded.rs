//! A native snapshot of a known program, as the messages that Perfetto publishes for Python decode it.

use std::path::Path;
use std::path::PathBuf;
use std::process::Child;
use std::process::Command;
use std::process::Stdio;
use std::time::Duration;

use crate::support;
use crate::support::traces::TRIGGER;
use crate::support::traces::TracesDaemon;
use crate::support::traces::decoded;
use crate::support::traces::python;
use serde_json::Value;

const RATE_HZ: f64 = 100.0;
const STOP_DELAY_MS: u32 = 500;

const SOURCES: &str = "data_sources { config { name: \"linux.perf\" perf_event_config { all_cpus: true sampling_frequency: 100 } } } \
    data_sources { config { name: \"linux.ftrace\" ftrace_config { ftrace_events: \"sched/sched_switch\" } } }";

/// The main thread waits for one that works for 30 ms of CPU time and then sleeps for 5 ms, again and again.
const SOURCE: &str = r#"
#define _GNU_SOURCE
#include <pthread.h>
#include <time.h>
#include <unistd.h>
volatile unsigned long sink;
static long cpu_ms(void) {
    struct timespec time;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
    return time.tv_sec * 1000 + time.tv_nsec / 1000000;
}
__attribute__((noinline)) void known_work(void) {
    for (unsigned long number = 0; number < 1000000; number++)
        sink += number * number;
}
__attribute__((noinline)) void *known_thread(void *unused) {
    pthread_setname_np(pthread_self(), "known-worker");
    for (;;) {
        long until = cpu_ms() + 30;
        while (cpu_ms() < until)
            known_work();
        usleep(5000);
    }
    return unused;
}
int main(void) {
    pthread_t thread;
    pthread_create(&thread, 0, known_thread, 0);
    pthread_join(thread, 0);
    return 0;
}
"#;

struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// A time on a CPU.
#[derive(Clone, Copy, Debug)]
struct Slice {
    start_ns: u64,
    end_ns: u64,
    cpu: u64,
    tid: u64,
}

fn build(folder: &Path) -> Option<PathBuf> {
    let source = folder.join("program.c");
    std::fs::write(&source, SOURCE).expect("written");
    let program = folder.join("known-program");
    let built = Command::new("gcc")
        .args(["-O2", "-pthread", "-fno-optimize-sibling-calls", "-o"])
        .args([&program, &source])
        .status();
    if !built.is_ok_and(|status| status.success()) {
        support::skipped("gcc is not installed");
        return None;
    }
    Some(program)
}

fn numbers(value: &Value) -> Vec<u64> {
    let numbers = value.as_array().expect("an array").iter();
    numbers.map(|it| it.as_u64().expect("a number")).collect()
}

fn slices(trace: &Value) -> Vec<Slice> {
    let slices = trace["slices"].as_array().expect("an array").iter();
    let slices = slices.map(|slice| {
        let [start_ns, end_ns, cpu, tid] = numbers(slice)[..] else {
            panic!("four numbers: {slice}");
        };
        Slice {
            start_ns,
            end_ns,
            cpu,
            tid,
        }
    });
    slices.collect()
}

/// What another decoder finds in a snapshot of the program.
pub(crate) struct Decoded {
    pub(crate) trace: Value,
    /// The thread that works.
    worker: u64,
    /// Its times on CPUs.
    slices: Vec<Slice>,
    pub(crate) first_ns: u64,
    last_ns: u64,
    pub(crate) triggered_ns: u64,
}

/// The samples of the thread that works, between its first and its last slice.
#[derive(Debug, Default)]
pub(crate) struct Samples {
    pub(crate) count: u32,
    /// Those whose stack begins at the thread's entry.
    pub(crate) whole: u32,
    pub(crate) in_known_work: u32,
    /// Those that were taken on the CPU of the slice that they fall into.
    pub(crate) on_the_cpu: u32,
    /// As many as the rate says for its time on CPUs.
    pub(crate) expected: f64,
}

impl Decoded {
    /// Records until the program has used so much CPU time, and `None` where something is missing, which is said.
    pub(crate) fn after(cpu_time: Duration) -> Option<Self> {
        let checks = candela_agent::capabilities();
        if let Some(check) = checks.iter().find(|check| check.required && !check.ok) {
            support::skipped(&format!("cannot sample: {} ({})", check.name, check.detail));
            return None;
        }
        let Some(python) = python() else {
            support::skipped("Perfetto's messages for Python are not installed");
            return None;
        };
        let folder = tempfile::tempdir().expect("a folder");
        let program = build(folder.path())?;
        let mut command = Command::new(program);
        let program = Running(command.stdout(Stdio::null()).spawn().expect("it starts"));
        let pid = program.0.id();
        let daemon = TracesDaemon::start(SOURCES, STOP_DELAY_MS, None);
        let begun = cpu_time_of(pid);
        support::wait_until("the program gets CPU time", || {
            cpu_time_of(pid) >= begun + cpu_time
        });
        let bytes = daemon.snapshot();
        daemon.end();
        drop(program);
        let trace = decoded(&python, &bytes, pid);

        let threads = trace["threads"].as_object().expect("threads");
        let worker = threads.iter().find(|(_, known)| *known == "known-worker");
        let (tid, _) = worker.unwrap_or_else(|| panic!("no worker: {threads:?}"));
        let worker = tid.parse::<u64>().expect("a number");
        let slices = slices(&trace).into_iter().filter(|it| it.tid == worker);
        let slices: Vec<Slice> = slices.collect();
        Some(Self {
            worker,
            first_ns: slices.iter().map(|it| it.start_ns).min().expect("slices"),
            last_ns: slices.iter().map(|it| it.end_ns).max().expect("slices"),
            triggered_ns: trace["triggers"][0][2].as_u64().expect("a time"),
            slices,
            trace,
        })
    }

    pub(crate) fn samples(&self) -> Samples {
        let on_cpu_ns: u64 = self.slices.iter().map(|it| it.end_ns - it.start_ns).sum();
        let mut samples = Samples {
            expected: on_cpu_ns as f64 / 1e9 * RATE_HZ,
            ..Samples::default()
        };
        for sample in self.trace["samples"].as_array().expect("samples") {
            let time_ns = sample[0].as_u64().expect("a time");
            let cpu = sample[1]
                .as_u64()
                .expect("a CPU, whose number is not negative");
            if sample[2] != self.worker || !(self.first_ns..self.last_ns).contains(&time_ns) {
                continue;
            }
            samples.count += 1;
            let names: Vec<&str> = sample[3]
                .as_array()
                .expect("names")
                .iter()
                .filter_map(Value::as_str)
                .collect();
            let outer = names.iter().position(|name| *name == "known_thread");
            let inner = names.iter().position(|name| *name == "known_work");
            let is_whole = outer.is_some_and(|outer| inner.is_none_or(|inner| outer < inner));
            samples.whole += u32::from(is_whole);
            samples.in_known_work += u32::from(inner.is_some());
            let mut slices = self.slices.iter();
            let slice = slices.find(|it| (it.start_ns..=it.end_ns).contains(&time_ns));
            samples.on_the_cpu += u32::from(slice.is_some_and(|slice| slice.cpu == cpu));
        }
        samples
    }
}

/// User time: the fourteenth field of proc_pid_stat(5), in ticks of 10 ms.
fn cpu_time_of(pid: u32) -> Duration {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).expect("it runs");
    let (_, fields) = stat.rsplit_once(") ").expect("a name in parentheses");
    let ticks = fields.split(' ').nth(11).expect("more than twelve fields");
    Duration::from_millis(10 * ticks.parse::<u64>().expect("a number"))
}

#[test]
fn another_decoder_finds_samples_names_slices_and_the_trigger() {
    let Some(decoded) = Decoded::after(Duration::from_millis(500)) else {
        return;
    };
    let trace = &decoded.trace;

    // Who it is.
    assert_eq!(trace["process"][0], "known-program");
    assert_eq!(
        trace["unnamed"],
        serde_json::json!([]),
        "threads that run have names"
    );
    let of_worker = &trace["comms"]["known-worker"];
    assert!(of_worker.as_u64().is_some_and(|count| count > 0));
    assert!(!trace["release"].as_str().expect("a text").is_empty());
    assert_eq!(
        trace["clock_distances"],
        serde_json::json!([0]),
        "one time for all"
    );
    let trigger = &trace["triggers"];
    assert_eq!(
        (&trigger[0][0], &trigger[0][1]),
        (&TRIGGER.into(), &STOP_DELAY_MS.into())
    );
    assert_eq!(trigger.as_array().map(Vec::len), Some(1));

    // When it ran: it sleeps by itself, so slices end in sleep.
    assert!(
        decoded.last_ns > decoded.triggered_ns,
        "it has what came of the moment"
    );
    assert!(
        decoded.triggered_ns > decoded.first_ns,
        "and what came before"
    );
    let slept = trace["states"]["1"].as_u64().unwrap_or_default();
    assert!(slept > 0, "{}", trace["states"]);
    let mut by_time: Vec<&Slice> = decoded.slices.iter().collect();
    by_time.sort_by_key(|it| it.start_ns);
    let overlaps = by_time
        .windows(2)
        .filter(|pair| pair[0].end_ns > pair[1].start_ns);
    assert_eq!(overlaps.count(), 0, "a thread is on one CPU at a time");

    // What it did. How much of it is measured elsewhere.
    let samples = decoded.samples();
    let has_all = [samples.whole, samples.in_known_work, samples.on_the_cpu];
    assert!(has_all.iter().all(|count| *count > 0), "{samples:?}");
}
