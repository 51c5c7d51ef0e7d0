//! Memory growth on the real kernel, of a program that asks for memory all the time.

use crate::support::{compile, spawn_talking, start, until};
use candela_ebpf::{Event, Options, Target};
use candela_testing::expect_within;
use std::io::Write;
use std::time::{Duration, Instant};

const TICK: Duration = Duration::from_millis(20);
const BYTES: u64 = 8192;
const TIMES: u64 = 1_000_000;
const LEAST_MEAN_BYTES: u64 = 4096;

/// What its samples stand for.
#[derive(Debug, Default)]
struct Sums {
    bytes: f64,
    /// Of the estimate: each sample stands for itself with a probability of 1 / what it is worth in growths.
    variance: f64,
    samples: u64,
}

#[test]
fn a_heap_that_is_trimmed_all_the_time_gives_few_samples_whose_sum_is_right() {
    let directory = tempfile::tempdir().expect("a directory");
    let Some(program) = compile("trim", &[], directory.path()) else {
        return;
    };
    let mut running = spawn_talking(&program, &[&BYTES.to_string(), &TIMES.to_string()]);
    let pid = running.pid();
    let sampler = start(&Options {
        on_cpu: false,
        growth_mean_bytes: Some(LEAST_MEAN_BYTES..=u64::MAX),
        target: Target::Processes {
            pids: vec![pid],
            follow_forks: false,
        },
        ..Options::default()
    });
    let Some(mut sampler) = sampler else {
        return;
    };
    let (mut sums, mut has_ended) = (Sums::default(), false);
    let begun = Instant::now();
    let mut stdin = running.0.stdin.take().expect("piped");
    stdin.write_all(b"\n").expect("it reads");
    until("its end", || {
        let mut handler = |event: Event<'_>| match event {
            Event::Exit { pid: ended, .. } => has_ended |= ended == pid,
            Event::Growth(sample) => {
                let bytes = sample.value as f64;
                sums.bytes += bytes;
                sums.variance += bytes * bytes;
                sums.samples += 1;
            }
            _ => {}
        };
        sampler.poll(TICK, &mut handler).expect("polls");
        has_ended
    });
    // One each 10 to 20 ms, and a few until that is known.
    let most = begun.elapsed().as_millis() as u64 / 10 + 30;
    let details = format_args!("{sums:?}");
    expect_within(
        "samples of growth",
        sums.samples as f64,
        20.0..=most as f64,
        details,
    );
    let grown = (BYTES * TIMES) as f64;
    let errors = (sums.bytes - grown) / sums.variance.sqrt();
    expect_within(
        "standard errors that the sum is off by",
        errors.abs(),
        ..4.0,
        details,
    );
}
