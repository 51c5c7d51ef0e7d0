//! Time off CPU on the real kernel, with times that the test gives.

use crate::support::{Agent, compile, skip, spawn, start, until};
use candela_ebpf::{Event, Options, Sampler, Target, Waits, monotonic_ns};
use candela_unwind::WalkResult;
use std::time::Duration;

/// `None`, with the reason, where off-CPU time cannot be sampled.
pub(crate) fn start_off_cpu(pid: u32, mean_ns: u64, least_ns: u64) -> Option<Sampler> {
    let checks = candela_ebpf::capabilities();
    let missing = checks
        .iter()
        .find(|check| check.name == "off_cpu" && !check.ok);
    if let Some(check) = missing {
        skip(&check.detail);
        return None;
    }
    start(&Options {
        on_cpu: false,
        off_cpu_mean_ns: Some(mean_ns),
        waits: Waits {
            least_ns,
            ..Waits::ALL
        },
        target: Target::Processes {
            pids: vec![pid],
            follow_forks: false,
        },
        ..Options::default()
    })
}

#[test]
fn a_thread_that_does_not_come_back_is_sampled_with_its_stack() {
    let directory = tempfile::tempdir().expect("a directory");
    let Some(program) = compile("wait", &[], directory.path()) else {
        return;
    };
    let running = spawn(&program, &["once"]);
    until("its sleep", || is_asleep(running.pid()));
    let Some(mut sampler) = start_off_cpu(running.pid(), 1_000_000_000, 0) else {
        return;
    };
    let mut agent = Agent::new(&sampler);
    agent.learn(running.pid());
    // So long ago that there is no chance in it.
    let end_ns = monotonic_ns();
    let start_ns = end_ns - 5_000_000_000;
    sampler.start_off_cpu(start_ns).expect("visits");
    let mut seen = Vec::new();
    for end_ns in [end_ns, end_ns, end_ns + 2_000_000_000] {
        assert_eq!(sampler.sample_off_cpu(end_ns).expect("visits"), 0);
        let mut handler = |event: Event<'_>| {
            if let Event::OffCpu(sample) = event {
                assert!(!sample.is_walked && !sample.was_preempted);
                assert!(!sample.kernel_frames.is_empty());
                let context = sample.context.expect("registers and stack");
                let (result, frames) = agent.walk(sample.pid, &context);
                assert_eq!(result, WalkResult::Complete, "{frames:x?}");
                seen.push((sample.value, sample.count, sample.time_ns));
            }
        };
        sampler.poll(Duration::ZERO, &mut handler).expect("polls");
    }
    let after_ns = end_ns + 2_000_000_000;
    assert_eq!(
        seen,
        [(5_000_000_000, 1, end_ns), (2_000_000_000, 1, after_ns)]
    );
}

/// Whether a process sleeps in `main`, rather than while it starts.
fn is_asleep(pid: u32) -> bool {
    let call = std::fs::read_to_string(format!("/proc/{pid}/syscall")).unwrap_or_default();
    let number = call.split(' ').next().and_then(|text| text.parse().ok());
    number == Some(libc::SYS_clock_nanosleep) || number == Some(libc::SYS_nanosleep)
}
