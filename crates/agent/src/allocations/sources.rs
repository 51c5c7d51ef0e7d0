//! What tells of the allocations of a recording.

use std::process::Command;

use candela_ebpf::AllocationProbes;

use crate::allocations::library::PreloadedLibrary;
use crate::allocations::library::libraries_of;
use crate::error::AgentError;
use crate::go_heaps::GoHeaps;
use crate::options::AgentTargets;

/// The library in processes that have it, and the heap profiles of Go programs.
#[derive(Debug, Default)]
pub(crate) struct AllocationSources {
    /// Where the library is, for as long as programs look for it.
    pub(crate) library: Option<PreloadedLibrary>,
    pub(crate) probes: Vec<AllocationProbes>,
    /// Running processes that have the library.
    pub(crate) preloaded: Vec<u32>,
    pub(crate) go_heaps: Option<GoHeaps>,
}

impl AllocationSources {
    /// A command that is made to load the library.
    ///
    /// # Errors
    /// [`AgentError::Preload`].
    pub(crate) fn of_command(command: &mut Command) -> Result<Self, AgentError> {
        let library = PreloadedLibrary::write()?;
        library.preload_in(command);
        Ok(Self {
            probes: vec![library.probes()],
            library: Some(library),
            ..Self::default()
        })
    }

    /// What runs already.
    ///
    /// # Errors
    /// [`AgentError::NotPreloaded`], [`AgentError::GoHeap`] when nothing of it tells.
    pub(crate) fn of_running(
        targets: &AgentTargets,
        mut go_heaps: GoHeaps,
    ) -> Result<Self, AgentError> {
        let (preloaded, probes) = libraries_of(&targets.processes());
        go_heaps.begin();
        let is_named = matches!(targets, AgentTargets::Pids(_));
        if probes.is_empty() && go_heaps.count() == 0 {
            let refused = go_heaps.take_refused().filter(|_| is_named);
            return Err(match refused {
                Some((pid, source)) => AgentError::GoHeap { pid, source },
                None => AgentError::NotPreloaded,
            });
        }
        for (pid, error) in go_heaps.refused() {
            match is_named {
                true => tracing::warn!(pid, "the heap of a Go program is not recorded: {error}"),
                false => tracing::info!(pid, "the heap of a Go program is not recorded: {error}"),
            }
        }
        Ok(Self {
            preloaded,
            probes,
            go_heaps: Some(go_heaps),
            ..Self::default()
        })
    }
}
