//! What tells of the allocations of a recording.

use std::path::Path;
use std::process::Command;

use crate::allocations::library::PreloadedLibrary;
use crate::allocations::loaded::LoadedLibrary;
use crate::allocations::loaded::loaded_libraries;
use crate::allocations::unseen::UnseenAllocations;
use crate::error::AgentError;
use crate::go_heaps::GoHeaps;
use crate::options::AgentTargets;

/// The library in processes that have it, and the heap profiles of Go programs.
#[derive(Debug, Default)]
pub(crate) struct AllocationSources {
    /// Where the library is, for as long as programs look for it.
    pub(crate) library: Option<PreloadedLibrary>,
    /// The library in each process that has it.
    pub(crate) loaded: Vec<LoadedLibrary>,
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
            loaded: vec![library.to_load()?],
            library: Some(library),
            ..Self::default()
        })
    }

    /// What runs already.
    ///
    /// # Errors
    /// [`AgentError::NotPreloaded`], [`AgentError::GoHeap`], [`AgentError::UnseenAllocations`] when nothing of it
    /// tells.
    pub(crate) fn of_running(
        targets: &AgentTargets,
        mut go_heaps: GoHeaps,
    ) -> Result<Self, AgentError> {
        let (loaded, _) = loaded_libraries(&targets.processes());
        go_heaps.begin();
        let is_named = matches!(targets, AgentTargets::Pids(_));
        let unseen = match targets {
            AgentTargets::Pids(pids) => unseen_of(pids, &loaded),
            _ => Vec::new(),
        };
        if loaded.is_empty() && go_heaps.count() == 0 {
            let refused = go_heaps.take_refused().filter(|_| is_named);
            return Err(match (refused, unseen.first()) {
                (Some((pid, source)), _) => AgentError::GoHeap { pid, source },
                (None, Some(&(pid, why))) => AgentError::UnseenAllocations { pid, why },
                (None, None) => AgentError::NotPreloaded,
            });
        }
        for (pid, why) in unseen {
            tracing::warn!(
                pid,
                "the allocations of a program are not recorded: it {why}"
            );
        }
        for (pid, error) in go_heaps.refused() {
            match is_named {
                true => tracing::warn!(pid, "the heap of a Go program is not recorded: {error}"),
                false => tracing::info!(pid, "the heap of a Go program is not recorded: {error}"),
            }
        }
        Ok(Self {
            loaded,
            go_heaps: Some(go_heaps),
            ..Self::default()
        })
    }
}

/// Those processes into which the library cannot be loaded, or where it would see nothing, and why. Programs of Go
/// are left out: their heaps are another source, which has reasons of its own.
fn unseen_of(pids: &[u32], loaded: &[LoadedLibrary]) -> Vec<(u32, UnseenAllocations)> {
    let has_library = |pid: u32| loaded.iter().any(|it| it.pid == Some(pid));
    let others = pids.iter().filter(|&&pid| !has_library(pid));
    let unseen = others.filter_map(|&pid| {
        let why = UnseenAllocations::of_program(Path::new(&format!("/proc/{pid}/exe")))?;
        (why != UnseenAllocations::Go).then_some((pid, why))
    });
    unseen.collect()
}
