//! Time off CPU on the real kernel.

mod support;

use candela_ebpf::{Counters, Event, Options, Sampler, Target};
use candela_unwind::WalkResult;
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;
use support::{Agent, Running, compile, skip, start, until};

const TICK: Duration = Duration::from_millis(20);
const MEAN_NS: u64 = 10_000_000;

/// What the samples of one recording came to.
#[derive(Debug, Default)]
struct Sums {
    off_cpu_ns: u64,
    on_cpu_ns: u64,
    switches: u64,
    off_cpu_samples: u64,
    complete: u64,
    with_kernel_stack: u64,
}

/// `None`, with the reason, where off-CPU time cannot be sampled.
fn start_off_cpu(pid: u32, on_cpu: bool) -> Option<Sampler> {
    let checks = candela_ebpf::capabilities();
    if let Some(check) = checks
        .iter()
        .find(|check| check.name == "off_cpu" && !check.ok)
    {
        skip(&format!("{} is missing ({})", check.name, check.detail));
        return None;
    }
    start(&Options {
        rate_hz: 499,
        on_cpu,
        off_cpu_mean_ns: Some(MEAN_NS),
        target: Target::Processes {
            pids: vec![pid],
            follow_forks: false,
        },
        measure_cost: true,
        ..Options::default()
    })
}

/// A program that waits in `way` once a line has been read.
fn spawn_at_a_line(program: &Path, way: &str, milliseconds: &str) -> Running {
    let script = "read line; exec \"$0\" \"$1\" \"$2\"";
    let child = Command::new("sh")
        .args(["-c", script])
        .arg(program)
        .args([way, milliseconds])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn();
    Running(child.expect("sh starts"))
}

struct Truth {
    elapsed_ns: u64,
    cpu_ns: u64,
}

/// Records a program from its begin to its end.
fn record(way: &str, milliseconds: &str) -> Option<(Truth, Sums, Counters)> {
    let directory = tempfile::tempdir().expect("a directory");
    let program = compile("wait", &[], directory.path())?;
    let mut running = spawn_at_a_line(&program, way, milliseconds);
    let pid = running.pid();
    let mut sampler = start_off_cpu(pid, true)?;
    let mut agent = Agent::new(&sampler);
    let mut stdin = running.0.stdin.take().expect("piped");
    stdin.write_all(b"\n").expect("sh reads");
    let mut sums = Sums::default();
    let mut has_ended = false;
    let mut begun_ns = u64::MAX;
    until("its end", || {
        sampler
            .poll(TICK, &mut |event| match event {
                Event::Mapped(mapped) => agent.learn(mapped.pid),
                Event::Exec { time_ns, .. } => begun_ns = time_ns,
                Event::Exit { .. } => has_ended = true,
                Event::Sample(sample) if sample.time_ns > begun_ns => {
                    sums.on_cpu_ns += sample.value_ns;
                }
                Event::OffCpu(sample) if sample.time_ns > begun_ns => {
                    assert!(sample.value_ns >= MEAN_NS && sample.count > 0);
                    sums.off_cpu_ns += sample.value_ns;
                    sums.switches += u64::from(sample.count);
                    sums.off_cpu_samples += 1;
                    sums.complete += u64::from(sample.result == WalkResult::Complete);
                    sums.with_kernel_stack += u64::from(!sample.kernel_frames.is_empty());
                }
                _ => {}
            })
            .expect("polls");
        has_ended
    });
    let mut line = String::new();
    let stdout = running.0.stdout.take().expect("piped");
    BufReader::new(stdout).read_line(&mut line).expect("text");
    let numbers: Vec<u64> = line
        .split_whitespace()
        .map(|number| number.parse().expect("a number"))
        .collect();
    let truth = Truth {
        elapsed_ns: numbers[0],
        cpu_ns: numbers[1],
    };
    for cost in sampler.cost().expect("measurable") {
        eprintln!(
            "{cost:?} {:?}",
            cost.run_time.as_nanos() as f64 / cost.runs as f64
        );
    }
    let counters = sampler.counters().expect("readable");
    Some((truth, sums, counters))
}

#[test]
fn the_duty_cycle_of_a_program_is_told() {
    let Some((truth, sums, counters)) = record("duty", "4000") else {
        return;
    };
    let blocked_ns = truth.elapsed_ns - truth.cpu_ns;
    let off_by = sums.off_cpu_ns as f64 / blocked_ns as f64 - 1.0;
    eprintln!("off by {off_by:.4}, {sums:?}, {counters:?}");
    assert!(off_by.abs() < 0.02, "off by {off_by:.4}: {sums:?}");
}
