//! Programs that do a known amount of work of one kind.

use std::path::Path;
use std::process::Command;
use std::time::Duration;

use crate::process::output;

/// A kind of work of `bench/driver/programs/work.c`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Workload {
    pub(crate) name: &'static str,
    /// What it is counted in, for the heading of a column.
    pub(crate) operation: &'static str,
    /// Half a second of a core of 2024 or more, up to one second where small differences are asked for.
    amount: u64,
}

/// What a program did.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Work {
    /// By the clock.
    pub(crate) elapsed: Duration,
    pub(crate) operations: u64,
}

// === impl Workload ===

impl Workload {
    pub(crate) const COMPUTE: Self = Self::new("compute", "ns per 1000 steps", 400_000_000);
    pub(crate) const CALLS: Self = Self::new("calls", "ns per system call", 6_000_000);
    pub(crate) const SWITCHES: Self = Self::new("switches", "ns per switch", 150_000);
    pub(crate) const LOCKS: Self = Self::new("locks", "ns per lock taken", 200_000);
    pub(crate) const FAULTS: Self = Self::new("faults", "ns per page fault", 400);
    pub(crate) const ALLOCATIONS: Self = Self::new("allocations", "ns per allocation", 20_000_000);
    pub(crate) const ALL: &[Self] = &[
        Self::COMPUTE,
        Self::CALLS,
        Self::SWITCHES,
        Self::LOCKS,
        Self::FAULTS,
        Self::ALLOCATIONS,
    ];

    const fn new(name: &'static str, operation: &'static str, amount: u64) -> Self {
        Self {
            name,
            operation,
            amount,
        }
    }

    /// The work `times` over, in one program with one more variable `NAME=VALUE` or none.
    pub(crate) fn run(
        &self,
        program: &Path,
        variable: Option<&str>,
        times: u64,
    ) -> Result<Work, String> {
        let amount = (self.amount * times).to_string();
        let mut command = Command::new(program);
        command.args([self.name, &amount]);
        command.envs(variable.and_then(|variable| variable.split_once('=')));
        let printed = output(&mut command)?;
        let numbers: Option<Vec<u64>> = printed
            .split_whitespace()
            .map(|word| word.parse().ok())
            .collect();
        let Some(&[elapsed_ns, _, operations]) = numbers.as_deref() else {
            return Err(format!("work {} printed {printed:?}", self.name));
        };
        Ok(Work {
            elapsed: Duration::from_nanos(elapsed_ns),
            operations,
        })
    }
}
