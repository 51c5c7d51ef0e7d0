//! The run time of our programs in the kernel, extrapolated from a part of each window.
//!
//! While the kernel measures, each run of every BPF program of the host takes some 20 ns longer, which is a quarter
//! of what a context switch costs here. One fortieth of the time keeps that below a hundredth.

use std::collections::BTreeMap;
use std::time::Duration;

use candela_ebpf::ProgramCost;

use crate::cost::assumed;
use crate::cpu::EventCounts;
use crate::status::ProgramStatus;

/// One part of so many of a window is measured.
const PARTS: u64 = 40;

/// The golden ratio in 64 bits: multiples of it, cut to 64 bits, fill the window evenly whatever the number of windows.
const GOLDEN: u64 = 0x9e37_79b9_7f4a_7c15;

/// Which part of a window is measured: another one in each, so that no part of the agent's own rhythm is
/// measured all the time, or never.
#[derive(Clone, Copy, Debug)]
pub(super) struct MeasuredPart {
    pub(super) begin_ns: u64,
    pub(super) length_ns: u64,
}

/// Run times so far.
#[derive(Debug, Default)]
pub(super) struct ProgramTimes {
    programs: BTreeMap<String, Estimate>,
    /// When it was measured in this window, nanoseconds in all.
    measured_ns: u64,
}

#[derive(Clone, Copy, Debug, Default)]
struct Estimate {
    status: ProgramStatus,
    /// What the kernel had measured when measuring began, and what it measured in this window.
    before: (u64, Duration),
    runs: u64,
    run_time: Duration,
    /// How often it had run in the windows before, by its own count.
    counted_runs: u64,
}

/// What a program has done in a window.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct ProgramWindow {
    /// What was measured.
    pub(super) measured_runs: u64,
    pub(super) measured_run_time_ns: u64,
    /// That of the whole window.
    pub(super) run_time_ns: u64,
    pub(super) runs_on_request: bool,
}

// === impl MeasuredPart ===

impl MeasuredPart {
    /// That of the window with this number.
    pub(super) fn of_window(number: u64, start_ns: u64, end_ns: u64) -> Self {
        let window_ns = end_ns.saturating_sub(start_ns);
        let length_ns = window_ns / PARTS;
        let latest_ns = u128::from(window_ns - length_ns);
        let place = u128::from(number.wrapping_mul(GOLDEN));
        // Below latest_ns, which has 64 bits.
        let offset_ns = ((place * latest_ns) >> 64) as u64;
        Self {
            begin_ns: start_ns + offset_ns,
            length_ns,
        }
    }
}

// === impl ProgramTimes ===

impl ProgramTimes {
    /// The kernel begins to measure.
    pub(super) fn begin(&mut self, costs: &[ProgramCost]) {
        for cost in costs {
            let estimate = self.estimate(cost);
            estimate.before = (cost.runs, cost.run_time);
        }
    }

    /// The kernel has measured for that long.
    pub(super) fn end(&mut self, costs: &[ProgramCost], measured_ns: u64) {
        for cost in costs {
            let estimate = self.estimate(cost);
            let (runs, run_time) = estimate.before;
            estimate.runs += cost.runs.saturating_sub(runs);
            estimate.run_time += cost.run_time.saturating_sub(run_time);
        }
        self.measured_ns += measured_ns;
    }

    /// A window has ended: what was measured of it stands for all of it.
    pub(super) fn end_window(
        &mut self,
        costs: &[ProgramCost],
        window_ns: u64,
    ) -> BTreeMap<String, ProgramWindow> {
        let measured_ns = u128::from(self.measured_ns.max(1));
        let extrapolated = |amount: u64| {
            let whole = u128::from(amount) * u128::from(window_ns) / measured_ns;
            u64::try_from(whole).unwrap_or(u64::MAX)
        };
        let mut window = BTreeMap::new();
        for cost in costs {
            let estimate = self.estimate(cost);
            let run_time_ns = u64::try_from(estimate.run_time.as_nanos()).unwrap_or(u64::MAX);
            let program = ProgramWindow {
                measured_runs: estimate.runs,
                measured_run_time_ns: run_time_ns,
                run_time_ns: extrapolated(run_time_ns),
                runs_on_request: cost.runs_on_request,
            };
            let status = &mut estimate.status;
            status.measured_runs += program.measured_runs;
            status.measured_run_time_ns += program.measured_run_time_ns;
            status.estimated_runs += extrapolated(estimate.runs);
            status.estimated_run_time_ns += program.run_time_ns;
            status.recursion_misses = cost.recursion_misses;
            status.runs_on_request = cost.runs_on_request;
            (estimate.runs, estimate.run_time) = (0, Duration::ZERO);
            window.insert(cost.name.clone(), program);
        }
        self.measured_ns = 0;
        window
    }

    /// A window has ended that the kernel measures nothing of, in which so many events came.
    pub(super) fn end_assumed_window(
        &mut self,
        costs: &[ProgramCost],
        events: &EventCounts,
    ) -> BTreeMap<String, ProgramWindow> {
        let mut window = BTreeMap::new();
        for cost in costs {
            let estimate = self.estimate(cost);
            let runs = cost.counted_runs.saturating_sub(estimate.counted_runs);
            estimate.counted_runs = cost.counted_runs;
            let assumed = assumed::work(&cost.name, runs, events);
            let status = &mut estimate.status;
            status.estimated_runs += assumed.runs;
            status.estimated_run_time_ns += assumed.run_time_ns;
            status.recursion_misses = cost.recursion_misses;
            status.runs_on_request = cost.runs_on_request;
            let program = ProgramWindow {
                run_time_ns: assumed.run_time_ns,
                runs_on_request: cost.runs_on_request,
                ..ProgramWindow::default()
            };
            window.insert(cost.name.clone(), program);
        }
        window
    }

    pub(super) fn status(&self) -> BTreeMap<String, ProgramStatus> {
        let programs = self.programs.iter();
        programs
            .map(|(name, estimate)| (name.clone(), estimate.status))
            .collect()
    }

    fn estimate(&mut self, cost: &ProgramCost) -> &mut Estimate {
        self.programs.entry(cost.name.clone()).or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cost(runs: u64, run_time_ns: u64) -> Vec<ProgramCost> {
        vec![ProgramCost {
            name: "sample_cpu".to_owned(),
            runs,
            counted_runs: 0,
            run_time: Duration::from_nanos(run_time_ns),
            verified_instructions: 0,
            recursion_misses: 3,
            runs_on_request: false,
        }]
    }

    #[test]
    fn what_was_measured_stands_for_the_window() {
        let mut times = ProgramTimes::default();
        // Somebody else had the kernel measure before: that is no part of it.
        times.begin(&cost(100, 9_000));
        times.end(&cost(110, 12_000), 250);
        let window = times.end_window(&cost(500, 90_000), 10_000);
        let program = window["sample_cpu"];
        assert_eq!(
            (program.measured_runs, program.measured_run_time_ns),
            (10, 3_000)
        );
        assert_eq!(program.run_time_ns, 120_000);
        let status = times.status()["sample_cpu"];
        assert_eq!(
            (status.estimated_runs, status.estimated_run_time_ns),
            (400, 120_000)
        );
        assert_eq!(status.recursion_misses, 3);
        let window = times.end_window(&cost(500, 90_000), 10_000);
        assert_eq!(window["sample_cpu"].run_time_ns, 0, "nothing was measured");
    }

    #[test]
    fn what_is_not_measured_is_counted_and_assumed() {
        let mut times = ProgramTimes::default();
        let switches = |counted_runs| {
            let of_sampler = cost(0, 0).remove(0);
            vec![ProgramCost {
                name: "off_cpu_switch".to_owned(),
                counted_runs,
                ..of_sampler
            }]
        };
        let nothing = EventCounts::default();
        let ns = |runs| assumed::work("off_cpu_switch", runs, &nothing).run_time_ns;
        let window = times.end_assumed_window(&switches(1_000), &nothing);
        assert_eq!(window["off_cpu_switch"].run_time_ns, ns(1_000));
        let window = times.end_assumed_window(&switches(1_500), &nothing);
        assert_eq!(window["off_cpu_switch"].run_time_ns, ns(500));
        let status = times.status()["off_cpu_switch"];
        assert_eq!(
            (status.estimated_runs, status.estimated_run_time_ns),
            (1_500, ns(1_500))
        );
        assert_eq!((status.measured_runs, status.recursion_misses), (0, 3));
    }

    #[test]
    fn every_place_of_a_window_is_measured_some_time() {
        let (start_ns, end_ns) = (1_000, 11_000);
        let mut hit = [false; 10];
        for number in 0..40 {
            let part = MeasuredPart::of_window(number, start_ns, end_ns);
            assert_eq!(part.length_ns, 250);
            assert!(part.begin_ns >= start_ns && part.begin_ns + part.length_ns <= end_ns);
            hit[((part.begin_ns - start_ns) / 1_000) as usize] = true;
        }
        assert_eq!(hit, [true; 10]);
    }
}
