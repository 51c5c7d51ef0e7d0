//! What the agent costs, as others see it.

use std::collections::BTreeMap;

use serde::Serialize;

/// What the agent costs. Counts are totals since it started; what is not known is zero.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct CostStatus {
    /// CPU time of the agent's threads and of its programs in the kernel, nanoseconds.
    pub cpu_ns: u64,
    /// CPU time in the last window, in millionths of a core: 5000 is 0.5 %.
    pub cpu_ppm: u64,
    /// What it may be; 0 is without a bound.
    pub budget_ppm: u64,
    /// Samples per second of a busy CPU, in thousandths, as the budget allows.
    pub rate_millihertz: u64,
    /// The same as somebody configured it.
    pub configured_rate_millihertz: u64,
    /// What a sample of waiting stands for at least, nanoseconds; 0 where waiting is not sampled.
    pub wait_mean_ns: u64,
    /// How many sampled allocations one that is told stands for.
    pub allocations_per_sample: u64,
    /// How often one of the three was changed to keep the budget.
    pub pace_changes: u64,
    /// Resident memory of the process, bytes; in `candela up` the server is in it, too.
    pub resident_bytes: u64,
    /// Kernel memory of all BPF maps, bytes.
    pub map_bytes: u64,
    /// 1 where the kernel does not measure the run times of programs, which takes CAP_SYS_ADMIN.
    pub programs_unmeasured: u64,
    /// Addresses whose names were known already.
    pub symbol_cache_hits: u64,
    /// Addresses whose names had to be looked up.
    pub symbol_cache_misses: u64,
    /// CPU time by the name of the thread, nanoseconds.
    pub threads: BTreeMap<String, u64>,
    /// The programs in the kernel by name.
    pub programs: BTreeMap<String, ProgramStatus>,
}

/// What one program in the kernel costs. The kernel measures a fortieth of the time, because measuring costs,
/// too; the estimates are extrapolated from that.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct ProgramStatus {
    /// How often it ran, extrapolated.
    pub estimated_runs: u64,
    /// How long that took, nanoseconds, extrapolated.
    pub estimated_run_time_ns: u64,
    /// How often it ran while the kernel measured.
    pub measured_runs: u64,
    /// How long that took, nanoseconds.
    pub measured_run_time_ns: u64,
    /// How often the kernel did not run it because it was running on that CPU already.
    pub recursion_misses: u64,
    /// Whether a thread of the agent runs it, whose CPU time has its run time.
    pub runs_on_request: bool,
}

// === impl CostStatus ===

impl CostStatus {
    /// What a receiver is told with each profile: `candela.cost.` and these names.
    pub(crate) fn figures(&self) -> BTreeMap<&'static str, u64> {
        BTreeMap::from([
            ("cpu_ns", self.cpu_ns),
            ("cpu_ppm", self.cpu_ppm),
            ("budget_ppm", self.budget_ppm),
            ("rate_millihertz", self.rate_millihertz),
            (
                "configured_rate_millihertz",
                self.configured_rate_millihertz,
            ),
            ("wait_mean_ns", self.wait_mean_ns),
            ("allocations_per_sample", self.allocations_per_sample),
            ("pace_changes", self.pace_changes),
            ("resident_bytes", self.resident_bytes),
            ("map_bytes", self.map_bytes),
            ("programs_unmeasured", self.programs_unmeasured),
            ("symbol_cache_hits", self.symbol_cache_hits),
            ("symbol_cache_misses", self.symbol_cache_misses),
        ])
    }

    /// Run time of programs that is in no thread's time, nanoseconds.
    pub(crate) fn programs_ns(&self) -> u64 {
        let programs = self.programs.values();
        programs
            .filter(|program| !program.runs_on_request)
            .map(|program| program.estimated_run_time_ns)
            .sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn receivers_hear_the_figures_of_the_status() {
        let json = serde_json::to_value(CostStatus::default()).expect("plain values");
        let numbers = json.as_object().expect("an object").iter();
        let numbers = numbers.filter(|(_, value)| value.is_u64());
        let names: Vec<&str> = numbers.map(|(name, _)| name.as_str()).collect();
        let figures = CostStatus::default().figures();
        assert_eq!(names.len(), figures.len());
        assert!(names.iter().all(|name| figures.contains_key(name)));
    }
}
