//! A native snapshot of a known program, as the messages that Perfetto publishes for Python decode it.

use std::path::Path;
use std::path::PathBuf;
use std::process::Child;
use std::process::Command;
use std::process::Stdio;
use std::time::Duration;
use std::time::Instant;

use crate::support;
use crate::support::traces::TRIGGER;
use crate::support::traces::TracesDaemon;
use crate::support::traces::decoded;
use crate::support::traces::python;
use serde_json::Value;

const RATE_HZ: f64 = 100.0;

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

#[test]
fn another_decoder_finds_samples_names_slices_and_the_trigger() {
    let checks = candela_agent::capabilities();
    if let Some(check) = checks.iter().find(|check| check.required && !check.ok) {
        support::skipped(&format!("cannot sample: {} ({})", check.name, check.detail));
        return;
    }
    let Some(python) = python() else {
        support::skipped("Perfetto's messages for Python are not installed");
        return;
    };
    let folder = tempfile::tempdir().expect("a folder");
    let Some(program) = build(folder.path()) else {
        return;
    };
    let mut command = Command::new(program);
    let program = Running(command.stdout(Stdio::null()).spawn().expect("it starts"));
    let pid = program.0.id();
    let daemon = TracesDaemon::start(SOURCES, 500, None);
    let began = Instant::now();
    support::wait_until("some seconds are recorded", || {
        began.elapsed() >= Duration::from_secs(4)
    });
    let bytes = daemon.snapshot();
    daemon.end();
    drop(program);
    let trace = decoded(&python, &bytes, pid);

    // Who it is.
    let threads = trace["threads"].as_object().expect("threads");
    let named = |name: &str| {
        let found = threads.iter().find(|(_, known)| *known == name);
        let (tid, _) = found.unwrap_or_else(|| panic!("no {name}: {threads:?}"));
        tid.parse::<u64>().expect("a number")
    };
    let worker = named("known-worker");
    assert_eq!(trace["process"][0], "known-program");
    assert_eq!(
        trace["unnamed"],
        serde_json::json!([]),
        "threads that run have names"
    );
    assert_eq!(
        trace["comms"]["known-worker"]
            .as_u64()
            .map(|count| count > 50),
        Some(true)
    );
    assert!(!trace["release"].as_str().expect("a text").is_empty());
    assert_eq!(
        trace["clock_distances"],
        serde_json::json!([0]),
        "one time for all"
    );
    assert_eq!(
        (&trace["lost"], &trace["has_gap"]),
        (&0.into(), &false.into())
    );
    let trigger = &trace["triggers"];
    assert_eq!(
        (&trigger[0][0], &trigger[0][1]),
        (&TRIGGER.into(), &500.into())
    );
    assert_eq!(trigger.as_array().map(Vec::len), Some(1));

    // When it ran: it sleeps by itself, so most of its slices end in sleep.
    let slices: Vec<Slice> = slices(&trace);
    let of_worker: Vec<&Slice> = slices.iter().filter(|it| it.tid == worker).collect();
    let first_ns = of_worker
        .iter()
        .map(|it| it.start_ns)
        .min()
        .expect("slices");
    let last_ns = of_worker.iter().map(|it| it.end_ns).max().expect("slices");
    let triggered_ns = trigger[0][2].as_u64().expect("a time");
    assert!(last_ns > triggered_ns, "it has what came of the moment");
    assert!(
        triggered_ns - first_ns > 3_000_000_000,
        "and what came before"
    );
    let slept = trace["states"]["1"].as_u64().unwrap_or_default();
    assert!(slept > 10, "{}", trace["states"]);
    let mut by_time = of_worker.clone();
    by_time.sort_by_key(|it| it.start_ns);
    let overlaps = by_time
        .windows(2)
        .filter(|pair| pair[0].end_ns > pair[1].start_ns);
    assert_eq!(overlaps.count(), 0, "a thread is on one CPU at a time");

    // What it did: as many samples as the rate says for its time on CPUs.
    let samples = trace["samples"].as_array().expect("samples");
    let (mut whole, mut within, mut on_the_cpu, mut count) = (0, 0, 0, 0);
    for sample in samples {
        let time_ns = sample[0].as_u64().expect("a time");
        let cpu = sample[1]
            .as_u64()
            .expect("a CPU, whose number is not negative");
        if sample[2] != worker || !(first_ns..last_ns).contains(&time_ns) {
            continue;
        }
        count += 1;
        let names: Vec<&str> = sample[3]
            .as_array()
            .expect("names")
            .iter()
            .filter_map(Value::as_str)
            .collect();
        let outer = names.iter().position(|name| *name == "known_thread");
        let inner = names.iter().position(|name| *name == "known_work");
        whole += u32::from(outer.is_some_and(|outer| inner.is_none_or(|inner| outer < inner)));
        within += u32::from(inner.is_some());
        let slice = of_worker
            .iter()
            .find(|it| (it.start_ns..=it.end_ns).contains(&time_ns));
        on_the_cpu += u32::from(slice.is_some_and(|slice| slice.cpu == cpu));
    }
    let on_cpu_ns: u64 = of_worker.iter().map(|it| it.end_ns - it.start_ns).sum();
    let expected = on_cpu_ns as f64 / 1e9 * RATE_HZ;
    let summary = format!(
        "{count} samples of {expected:.0}, {whole} whole, {within} in known_work, {on_the_cpu} on the CPU of their slice; {} slices of {:.2} s in {:.2} s",
        of_worker.len(),
        on_cpu_ns as f64 / 1e9,
        (last_ns - first_ns) as f64 / 1e9,
    );
    println!("{summary}");
    assert!(
        (f64::from(count) - expected).abs() < expected * 0.25 + 10.0,
        "{summary}"
    );
    assert!(
        count > 50 && whole * 10 >= count * 9 && within * 10 >= count * 8,
        "{summary}"
    );
    assert!(on_the_cpu * 100 >= count * 95, "{summary}");
}
