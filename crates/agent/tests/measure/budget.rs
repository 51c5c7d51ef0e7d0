//! The CPU budget of the continuous agent on the real kernel: the rate falls and comes back, and sums of CPU time
//! are right meanwhile.

use std::path::Path;
use std::process::Child;
use std::process::Command;
use std::process::Stdio;
use std::sync::mpsc::Receiver;
use std::time::Duration;

use crate::support;
use crate::support::wait_for;
use candela_agent::AgentOptions;
use candela_agent::AgentStatus;
use candela_agent::AgentTargets;
use candela_model::Profile;
use candela_testing::expect_within;

const RATE_HZ: u32 = 997;
const TICK_NS: i64 = 1_000_000_000 / RATE_HZ as i64;

/// How late the first window may begin after the agent has started, on a busy machine.
const START_NS: f64 = 2e8;

/// A busy program that ends with the test.
struct Busy(Child);

impl Busy {
    fn start(program: &Path) -> Self {
        let mut command = Command::new(program);
        command.arg("600").stdout(Stdio::null());
        Self(command.spawn().expect("it was just built"))
    }

    /// Its CPU time so far, nanoseconds.
    fn cpu_ns(&self) -> u64 {
        let path = format!("/proc/{}/schedstat", self.0.id());
        let statistics = std::fs::read_to_string(path).expect("it is still there");
        let time = statistics.split(' ').next().expect("a field");
        time.parse().expect("a number")
    }

    /// Takes its CPU away; it stays there, so that its clock can be read.
    fn pause(&self) {
        support::run("kill", ["-STOP", &self.0.id().to_string()]);
    }
}

impl Drop for Busy {
    fn drop(&mut self) {
        // Should it have ended, there is nothing left to do.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// What profiles say of CPU time.
#[derive(Default)]
struct Measured {
    sum_ns: i64,
    /// The square of the standard error of the sum: each sample is worth its period or is not there.
    variance: f64,
    longest_period_ns: i64,
}

impl Measured {
    fn of(profiles: &Receiver<Profile>) -> Self {
        let mut measured = Self::default();
        for profile in profiles.try_iter() {
            assert_eq!(profile.validate(), Ok(()));
            for series in &profile.series {
                assert_eq!(series.period % TICK_NS, 0, "whole ticks");
                assert!(
                    series
                        .samples
                        .iter()
                        .all(|sample| sample.value % TICK_NS == 0)
                );
                measured.sum_ns += series.total();
                measured.variance += series.total() as f64 * series.period as f64;
                measured.longest_period_ns = measured.longest_period_ns.max(series.period);
            }
        }
        measured
    }
}

#[test]
fn the_rate_follows_the_budget_and_sums_stay_right() {
    if support::cannot_sample() || support::lacks("gcc") || support::lacks("kill") {
        return;
    }
    let directory = tempfile::tempdir().expect("a temporary directory");
    let program = directory.path().join("busy");
    let flags = ["-O2", "-fomit-frame-pointer", "-o"].map(Into::into);
    let files = [program.clone(), support::source("shares.c")];
    support::run("gcc", flags.into_iter().chain(files));
    let busy = [Busy::start(&program), Busy::start(&program)];

    let options = AgentOptions {
        rate_hz: RATE_HZ,
        // Two busy CPUs cost more than that at this rate, and what comes anyway far less.
        cpu_budget: Some(0.02),
        targets: AgentTargets::Pids(busy.iter().map(|busy| busy.0.id()).collect()),
        window: Duration::from_secs(1),
        first_window: Duration::from_secs(1),
        ..AgentOptions::default()
    };
    let (agent, profiles) = support::start_agent(options);
    let before_ns: u64 = busy.iter().map(Busy::cpu_ns).sum();
    wait_for(&agent, "the budget", |status| {
        status.cost.budget_ppm == 20_000
    });
    wait_for(&agent, "a lower rate", |status| {
        status.cost.rate_millihertz <= 1000 * u64::from(RATE_HZ) / 2
    });
    let lowered = agent.status();
    assert_eq!(lowered.rate_hz, RATE_HZ, "as configured");
    let exported = lowered.delivery.profiles;
    wait_for(&agent, "profiles at the lower rate", |status| {
        status.delivery.profiles >= exported + 4
    });
    busy.iter().for_each(Busy::pause);
    let truth_ns = busy.iter().map(Busy::cpu_ns).sum::<u64>() - before_ns;
    wait_for(&agent, "the configured rate", |status| {
        status.cost.rate_millihertz == status.cost.configured_rate_millihertz
    });
    let status = agent.stop().expect("it stops");
    assert!(status.cost.pace_changes >= 2, "{:?}", status.cost);
    assert_eq!(
        status.drops["symbolizer_behind"] + status.drops["exporter_behind"],
        0
    );

    let measured = Measured::of(&profiles);
    assert!(measured.longest_period_ns >= 2 * TICK_NS);
    let error_ns = (measured.sum_ns as f64 - truth_ns as f64).abs();
    let bound_ns = 3.0 * measured.variance.sqrt() + START_NS;
    expect_within(
        "error of CPU time / three standard errors and the start",
        error_ns / bound_ns,
        ..=1.0,
        format_args!("{} ns of {truth_ns} ns: {:?}", measured.sum_ns, status.cost),
    );
    check_accounts(&status);
}

/// Whoever works is in the accounts.
fn check_accounts(status: &AgentStatus) {
    let cost = &status.cost;
    for thread in ["candela-sampler", "candela-symbols", "candela-tables"] {
        assert!(cost.threads[thread] > 0, "{thread}: {cost:?}");
    }
    let program = &cost.programs["sample_cpu"];
    assert!(program.measured_runs > 0, "{program:?}");
    assert!(program.estimated_runs > program.measured_runs);
    assert!(program.estimated_run_time_ns > program.measured_run_time_ns);
    let threads_ns: u64 = cost.threads.values().sum();
    assert!(
        cost.cpu_ns > threads_ns,
        "programs cost something: {cost:?}"
    );
    assert!(cost.resident_bytes > 1 << 20 && cost.map_bytes > 1 << 20);
    assert!(cost.symbol_cache_hits > 0 && cost.symbol_cache_misses > 0);
    assert!(status.events["cpu"] > 0 && status.events["off-cpu"] == 0);
    // Those before the first window are in none.
    assert!(status.events["cpu"] >= status.quality.samples);
}
