//! How often programs ran by their own count, where the kernel does not let us measure them.

use crate::Error;
use crate::bpf_map::BpfMap;
use std::collections::HashMap;

/// Programs that count their runs, by their numbers in bpf/runs.h.
const COUNTED_PROGRAMS: [&str; 11] = [
    "off_cpu_switch",
    "off_cpu_call_ends",
    "off_cpu_wake",
    "fault_in_user",
    "fault_in_kernel",
    "growth_begin",
    "growth_end",
    "kernel_lock_begin",
    "kernel_lock_end",
    "block_io_begin",
    "block_io_end",
];

/// The map of the counts.
#[derive(Debug)]
pub(crate) struct ProgramRuns {
    map: BpfMap,
    possible_cpus: usize,
}

// === impl ProgramRuns ===

impl ProgramRuns {
    pub(crate) fn new(map: BpfMap, possible_cpus: usize) -> ProgramRuns {
        ProgramRuns { map, possible_cpus }
    }

    /// The runs so far, by the names of programs.
    ///
    /// # Errors
    /// [`Error::Map`].
    pub(crate) fn read(&self) -> Result<HashMap<&'static str, u64>, Error> {
        let mut per_cpu = vec![0; self.possible_cpus];
        let mut runs = HashMap::new();
        for (number, name) in (0_u32..).zip(COUNTED_PROGRAMS) {
            self.map.lookup_per_cpu(number, &mut per_cpu)?;
            runs.insert(name, per_cpu.iter().sum());
        }
        Ok(runs)
    }
}
