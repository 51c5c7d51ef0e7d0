//! Sums of time off CPU, against what programs and the kernel count themselves.

use crate::host::off_cpu::start_off_cpu;
use crate::support::{Agent, compile, spawn_held, until};
use candela_ebpf::{Event, Pace, monotonic_ns};
use candela_testing::expect_within;
use candela_unwind::WalkResult;
use std::io::{BufRead, BufReader, Write};
use std::time::Duration;

const TICK: Duration = Duration::from_millis(20);

/// What tells long sleeps of the program from short ones.
const LONG_NS: u64 = 10_000_000;

/// What is recorded, and how.
#[derive(Clone, Copy)]
struct Plan {
    way: &'static str,
    /// That of the start, and that of the recording.
    first_mean_ns: u64,
    mean_ns: u64,
    least_ns: u64,
    /// Look at all threads time and again, as windows do when they end.
    looks: bool,
}

/// What the samples of one recording came to.
#[derive(Debug, Default)]
struct Sums {
    off_cpu_ns: u64,
    switches: u64,
    samples: u64,
    /// Walked to the end in the kernel.
    complete: u64,
    /// Not so, though one before was.
    incomplete_again: u64,
    with_kernel_stack: u64,
    /// Without any stack, and counted as such.
    arrivals_missed: u64,
    /// Without a user stack, and counted as such.
    not_deferred: u64,
    /// Of those that were not preempted, the shortest one.
    shortest_ns: Option<u64>,
    /// How many waits those stand for.
    slept: u64,
    /// Too short to be samples.
    short_waits: u64,
    short_wait_ns: u64,
}

/// What the program itself says.
struct Truth {
    /// What is left without its CPU time, with what a hypervisor takes.
    blocked_ns: u64,
    /// By its own clocks around each sleep, without the CPU time that this took.
    asleep_ns: u64,
    naps: u64,
    /// Those that were to be [`LONG_NS`] or longer, and those that were.
    meant_long: u64,
    long_naps: u64,
    /// The others together.
    shortly_asleep_ns: u64,
    /// How often it has left a CPU since its process began.
    switches: u64,
}

/// Records a program from its begin to its end.
fn record(way: &'static str, mean_ns: u64) -> Option<(Truth, Sums)> {
    record_as(Plan {
        way,
        first_mean_ns: mean_ns,
        mean_ns,
        least_ns: 0,
        looks: false,
    })
}

fn record_as(plan: Plan) -> Option<(Truth, Sums)> {
    let Plan { way, mean_ns, .. } = plan;
    let directory = tempfile::tempdir().expect("a directory");
    let program = compile("wait", &[], directory.path())?;
    let mut running = spawn_held(&program, &[way, "3000"]);
    let mut sampler = start_off_cpu(running.pid(), plan.first_mean_ns, plan.least_ns)?;
    let pace = Pace {
        off_cpu_mean_ns: mean_ns,
        ..sampler.pace()
    };
    sampler.set_pace(pace).expect("it is told");
    let mut agent = Agent::new(&sampler);
    let mut stdin = running.0.stdin.take().expect("piped");
    stdin.write_all(b"\n").expect("sh reads");
    let mut sums = Sums::default();
    let mut has_ended = false;
    let mut begun_ns = u64::MAX;
    until("its end", || {
        if plan.looks {
            assert_eq!(sampler.sample_off_cpu(monotonic_ns()).expect("visits"), 0);
        }
        sampler
            .poll(TICK, &mut |event| match event {
                Event::Mapped(mapped) => agent.learn(mapped.pid),
                Event::Exec { time_ns, .. } => begun_ns = time_ns,
                Event::Exit { .. } => has_ended = true,
                Event::Sample(sample) => panic!("nobody asked for {sample:?}"),
                Event::OffCpu(sample) if sample.time_ns > begun_ns => {
                    assert!(sample.value >= mean_ns && sample.count > 0);
                    sums.off_cpu_ns += sample.value;
                    sums.switches += u64::from(sample.count);
                    sums.samples += 1;
                    if !sample.was_preempted {
                        sums.slept += u64::from(sample.count);
                        let shortest_ns = sums.shortest_ns.unwrap_or(u64::MAX);
                        sums.shortest_ns = Some(shortest_ns.min(sample.value));
                    }
                    let is_complete = sample.result == WalkResult::Complete;
                    sums.complete += u64::from(is_complete);
                    sums.incomplete_again += u64::from(!is_complete && sums.complete > 0);
                    sums.with_kernel_stack += u64::from(!sample.kernel_frames.is_empty());
                }
                _ => {}
            })
            .expect("polls");
        has_ended
    });
    let counters = sampler.counters().expect("counters");
    sums.arrivals_missed = counters.arrival_missed;
    sums.not_deferred = counters.not_deferred;
    sums.short_waits = counters.short_waits;
    sums.short_wait_ns = counters.short_wait_ns;
    let mut line = String::new();
    let stdout = running.0.stdout.take().expect("piped");
    BufReader::new(stdout).read_line(&mut line).expect("text");
    let numbers = line.split_whitespace().map(str::parse);
    let numbers: Vec<u64> = numbers.collect::<Result<_, _>>().expect("numbers");
    let truth = Truth {
        blocked_ns: numbers[0] - numbers[1],
        asleep_ns: numbers[2],
        naps: numbers[3],
        meant_long: numbers[4],
        long_naps: numbers[5],
        shortly_asleep_ns: numbers[6],
        switches: numbers[7],
    };
    Some((truth, sums))
}

impl Truth {
    /// Whether the time off CPU was told, within a part of it.
    #[track_caller]
    fn assert_told(&self, sums: &Sums, tolerance: f64) {
        let (blocked_ns, asleep_ns) = (self.blocked_ns as f64, self.asleep_ns as f64);
        let told = (sums.off_cpu_ns + sums.short_wait_ns) as f64 / asleep_ns;
        // It waits for other things, too.
        let bound = 1.0 - tolerance..(1.0 + tolerance) * blocked_ns / asleep_ns;
        expect_within(
            "time off CPU / time asleep",
            told,
            bound,
            format_args!("{sums:?}"),
        );
    }
}

#[test]
fn the_duty_cycle_of_a_program_is_told() {
    let Some((truth, sums)) = record("duty", 2_000_000) else {
        return;
    };
    truth.assert_told(&sums, 0.02);
    assert!(sums.switches >= truth.naps, "{} naps: {sums:?}", truth.naps);
    // Some switches fire no tracepoint.
    let seen = sums.samples - sums.arrivals_missed;
    assert_eq!(sums.with_kernel_stack, seen, "{sums:?}");
    // What the process waits for at its very end has no user stack.
    assert!(
        sums.complete > 0 && sums.incomplete_again <= sums.arrivals_missed + sums.not_deferred + 1,
        "all but the first are walked in the kernel: {sums:?}"
    );
}

#[test]
fn many_short_waits_sum_up_to_what_they_were() {
    let Some((truth, sums)) = record("short", 1_000_000) else {
        return;
    };
    let of_all = sums.samples as f64 / truth.naps as f64;
    expect_within("samples / naps", of_all, ..0.5, "");
    // Five standard errors.
    let chance = 5.0 / (sums.samples as f64).sqrt();
    truth.assert_told(&sums, chance);
    // Others take its CPU now and then.
    let switches_off_by = sums.switches as f64 / truth.naps as f64 - 1.0;
    let bound = -chance..chance + 0.05;
    expect_within(
        "error of switches",
        switches_off_by,
        bound,
        format_args!("{sums:?}"),
    );
}

#[test]
fn a_mean_that_is_changed_makes_samples_fewer_and_worth_more() {
    let recorded = record_as(Plan {
        way: "short",
        first_mean_ns: 1_000,
        mean_ns: 4_000_000,
        least_ns: 0,
        looks: false,
    });
    let Some((truth, sums)) = recorded else {
        return;
    };
    let of_all = sums.samples as f64 / truth.naps as f64;
    // At the first mean nearly all were.
    expect_within("samples / naps at the second mean", of_all, ..0.2, "");
    truth.assert_told(&sums, 5.0 / (sums.samples as f64).sqrt());
}

/// Long and short sleeps where only long ones are samples, each of them.
fn record_mixed(looks: bool) -> Option<(Truth, Sums)> {
    let (truth, sums) = record_as(Plan {
        way: "mixed",
        first_mean_ns: 1,
        mean_ns: 1,
        least_ns: LONG_NS,
        looks,
    })?;
    truth.assert_told(&sums, 0.02);
    let short_naps = truth.naps - truth.long_naps;
    // What else it waited for, and what it may wait for when it ends.
    let others = truth.switches.saturating_sub(truth.naps) + 3;
    let details = format_args!("{short_naps} short naps, {others} other waits: {sums:?}");
    let bound = short_naps as f64..=(short_naps + others) as f64;
    expect_within("short waits", sums.short_waits as f64, bound, details);
    let told = sums.short_wait_ns as f64 / truth.shortly_asleep_ns as f64;
    expect_within(
        "time of short waits / time of short naps",
        told,
        0.98..,
        details,
    );
    Some((truth, sums))
}

#[test]
fn short_waits_that_nobody_wants_are_counted_with_their_time() {
    let Some((truth, sums)) = record_mixed(false) else {
        return;
    };
    assert!(
        sums.shortest_ns.is_some_and(|shortest| shortest >= LONG_NS),
        "{sums:?}"
    );
    // Both are the same unless others kept it from a CPU for long.
    let bound = truth.meant_long as f64..=truth.long_naps as f64;
    expect_within(
        "waits for long naps",
        sums.slept as f64,
        bound,
        format_args!("{sums:?}"),
    );
}

#[test]
fn a_long_wait_stays_long_though_it_is_told_in_parts() {
    let Some((truth, sums)) = record_mixed(true) else {
        return;
    };
    assert!(
        sums.slept > truth.meant_long,
        "looks come in between: {sums:?}"
    );
    assert!(
        sums.shortest_ns.is_some_and(|shortest| shortest < LONG_NS),
        "{sums:?}"
    );
}
