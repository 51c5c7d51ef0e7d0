//! What our programs cost, as the kernel measures it.

use crate::Error;
use crate::bpf_map::errno_of;
use crate::program_runs::ProgramRuns;
use libbpf_rs::{Object, ProgramAttachType, libbpf_sys};
use std::os::fd::{AsFd, AsRawFd, FromRawFd, OwnedFd};
use std::time::Duration;

/// The run time of one program since it was loaded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProgramCost {
    /// The program's name in bpf/sampler.bpf.c.
    pub name: String,
    /// How often it ran while run-time statistics were on.
    pub runs: u64,
    /// How often it ran in all by its own count, where the kernel does not let us measure run times; else 0, and of
    /// programs that run seldom.
    pub counted_runs: u64,
    /// How long the runs of the statistics took together.
    pub run_time: Duration,
    /// How many instructions the verifier looked at.
    pub verified_instructions: u32,
    /// How often it should have run and did not, because it was running on that CPU.
    pub recursion_misses: u64,
    /// Whether it runs only while we ask for it: its time is part of that of our own thread.
    pub runs_on_request: bool,
}

/// The run times of programs, measured while somebody wants it to be.
///
/// The kernel measures those of all programs of the host then, which makes each run some 20 ns longer.
#[derive(Debug, Default)]
pub(crate) struct RunTimes {
    /// Held open: the kernel measures while it is.
    statistics: Option<OwnedFd>,
}

// === impl RunTimes ===

impl RunTimes {
    pub(crate) fn measure(&mut self, is_on: bool) -> Result<(), Error> {
        if is_on == self.statistics.is_some() {
            return Ok(());
        }
        self.statistics = match is_on {
            true => Some(enable_statistics()?),
            false => None,
        };
        Ok(())
    }
}

/// Whether the kernel measures run times for us, which takes CAP_SYS_ADMIN.
pub(crate) fn can_measure() -> bool {
    enable_statistics().is_ok()
}

/// Turns run-time statistics on for the whole host until the descriptor is closed.
fn enable_statistics() -> Result<OwnedFd, Error> {
    // SAFETY: the call takes a number and opens a descriptor.
    let file = unsafe { libbpf_sys::bpf_enable_stats(libbpf_sys::BPF_STATS_RUN_TIME) };
    if file < 0 {
        return Err(Error::System {
            action: "enable BPF run-time statistics",
            source: errno_of(file),
        });
    }
    // SAFETY: a descriptor that the call above has just opened for us.
    Ok(unsafe { OwnedFd::from_raw_fd(file) })
}

/// The cost of each program of `object`; `own_counts` where they count their runs.
pub(crate) fn of_programs(
    object: &Object,
    own_counts: Option<&ProgramRuns>,
) -> Result<Vec<ProgramCost>, Error> {
    let counted = own_counts.map(ProgramRuns::read).transpose()?;
    let counted = counted.unwrap_or_default();
    object
        .progs()
        .filter(|program| program.autoload())
        .map(|program| {
            let mut info = libbpf_sys::bpf_prog_info::default();
            let mut size = size_of::<libbpf_sys::bpf_prog_info>() as u32;
            // SAFETY: info is as large as size says and outlives the call; its pointers are null,
            // so the kernel copies nothing else.
            let code = unsafe {
                libbpf_sys::bpf_prog_get_info_by_fd(
                    program.as_fd().as_raw_fd(),
                    &raw mut info,
                    &raw mut size,
                )
            };
            if code < 0 {
                return Err(Error::System {
                    action: "read BPF run-time statistics",
                    source: errno_of(code),
                });
            }
            let name = program.name().to_string_lossy().into_owned();
            Ok(ProgramCost {
                counted_runs: counted.get(name.as_str()).copied().unwrap_or_default(),
                name,
                runs: info.run_cnt,
                run_time: Duration::from_nanos(info.run_time_ns),
                verified_instructions: info.verified_insns,
                recursion_misses: info.recursion_misses,
                runs_on_request: matches!(program.attach_type(), ProgramAttachType::TraceIter),
            })
        })
        .collect()
}
