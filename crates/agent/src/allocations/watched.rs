//! The files of the library that are watched, each as long as a process has it.

use std::sync::Arc;

use candela_ebpf::AllocationWatch;
use candela_ebpf::Sampler;
use hashbrown::HashSet;

use crate::allocations::library_file::LibraryError;
use crate::allocations::library_file::LibraryFile;
use crate::allocations::library_file::LibraryIdentity;
use crate::allocations::loaded::LoadedLibrary;
use crate::allocations::loaded::MOST_WARNINGS;
use crate::allocations::loaded::MappedLibrary;
use crate::allocations::noticed::Notice;
use crate::allocations::noticed::NoticedLibraries;
use crate::allocations::used_files::HasMost;
use crate::allocations::used_files::MOST_FILES;
use crate::allocations::used_files::MOST_FILES_OF_PROCESS;
use crate::allocations::used_files::UsedFiles;
use crate::ledger::DropReason;
use crate::ledger::Ledger;
use crate::processes::all_processes;

/// Refused files that are remembered between two sweeps at most.
const MOST_REFUSED: usize = 4096;

/// Watches the library wherever a process maps it.
#[derive(Debug)]
pub(crate) struct WatchedLibraries {
    files: UsedFiles<AllocationWatch>,
    /// Those that are something else, looked into since the last sweep.
    refused: HashSet<LibraryIdentity>,
    noticed: NoticedLibraries,
    /// Some mappings were not told.
    is_doubtful: bool,
    warnings: u32,
    ledger: Arc<Ledger>,
}

/// Why a file is not watched.
#[derive(Debug, thiserror::Error)]
enum Refusal {
    #[error(transparent)]
    Library(#[from] LibraryError),
    #[error(transparent)]
    Kernel(#[from] candela_ebpf::Error),
    #[error("the kernel has just refused to watch the same file for another process")]
    KernelAgain,
    #[error(
        "{files} files are watched already, or {own} of this process",
        files = MOST_FILES,
        own = MOST_FILES_OF_PROCESS
    )]
    TooMany,
}

impl From<HasMost> for Refusal {
    fn from(HasMost: HasMost) -> Self {
        Self::TooMany
    }
}

// === impl WatchedLibraries ===

impl WatchedLibraries {
    pub(crate) fn new(ledger: Arc<Ledger>) -> Self {
        Self {
            files: UsedFiles::new(),
            refused: HashSet::new(),
            noticed: NoticedLibraries::default(),
            is_doubtful: false,
            warnings: 0,
            ledger,
        }
    }

    /// Watches a library that was found, for a process that has it or is to load it.
    pub(crate) fn watch(
        &mut self,
        sampler: &Sampler,
        loaded: &LoadedLibrary,
    ) -> Result<(), candela_ebpf::Error> {
        let Err(refusal) = self.try_watch(sampler, loaded) else {
            return Ok(());
        };
        self.refuse(&refusal, loaded.pid.unwrap_or_default(), "");
        match refusal {
            Refusal::Kernel(error) => Err(error),
            Refusal::Library(_) | Refusal::KernelAgain | Refusal::TooMany => Ok(()),
        }
    }

    /// A process has mapped a file of the library's name: to be looked into by [`Self::watch_noticed`].
    pub(crate) fn notice(&mut self, mapped: MappedLibrary) {
        match self.noticed.notice(mapped) {
            Notice::Taken => {}
            Notice::TooManyOfProcess => self.ledger.add(DropReason::AllocationLibraryRefused, 1),
            Notice::Full => self.is_doubtful = true,
        }
    }

    /// Mappings were lost on their way.
    pub(crate) fn distrust(&mut self) {
        self.is_doubtful = true;
    }

    /// A process has a child (CLOCK_MONOTONIC, nanoseconds).
    pub(crate) fn forked(&mut self, pid: u32, parent: u32, time_ns: u64) {
        self.left(pid, time_ns);
        self.files.forked(pid, parent, time_ns);
        self.noticed.forked(pid, parent);
    }

    /// A process has ended, or become another program (CLOCK_MONOTONIC, nanoseconds).
    pub(crate) fn left(&mut self, pid: u32, time_ns: u64) {
        self.noticed.left(pid);
        self.files.left(pid, time_ns);
    }

    /// Looks into what was noticed, and watches what is the library.
    pub(crate) fn watch_noticed(&mut self, sampler: &Sampler) {
        // What the kernel does not take of one process it does not take of the next one either.
        let mut failed = HashSet::new();
        for noticed in self.noticed.take() {
            let mapped = noticed.mapped;
            let Err(refusal) = self.look_into(sampler, &mapped, &mut failed) else {
                continue;
            };
            if !noticed.was_passed_over {
                self.refuse(&refusal, mapped.pid, &mapped.path);
            }
            match refusal {
                Refusal::Library(_) => {}
                // That may pass, and is no fault of the file's.
                Refusal::Kernel(_) | Refusal::KernelAgain | Refusal::TooMany => {
                    self.noticed.pass_over(mapped);
                }
            }
        }
    }

    /// Lets go of what nobody has any more, and looks again where something may have been missed.
    pub(crate) fn sweep(&mut self, now_ns: u64) {
        self.refused.clear();
        let known = self.files.processes().chain(self.noticed.processes());
        let known: HashSet<u32> = known.collect();
        let is_doubtful = std::mem::take(&mut self.is_doubtful);
        if is_doubtful || !known.is_empty() {
            let running: HashSet<u32> = all_processes().into_iter().collect();
            for &gone in known.difference(&running) {
                self.left(gone, now_ns);
            }
            if is_doubtful {
                for mapped in running.into_iter().flat_map(MappedLibrary::all_of) {
                    self.notice(mapped);
                }
            }
        }
        self.files.remove_unused(now_ns);
        if self.files.has_room(None) {
            self.noticed.look_again();
        }
    }

    /// How many files are watched.
    pub(crate) fn len(&self) -> usize {
        self.files.len()
    }

    /// `failed` are files that the kernel has refused already.
    fn look_into(
        &mut self,
        sampler: &Sampler,
        mapped: &MappedLibrary,
        failed: &mut HashSet<LibraryIdentity>,
    ) -> Result<(), Refusal> {
        let file = match mapped.open() {
            Ok(file) => file,
            // A process that has ended, is ending or is another program by now has nothing to tell.
            Err(_) if !is_still_mapped(mapped) => return Ok(()),
            Err(refusal) => return Err(LibraryError::from(refusal).into()),
        };
        let identity = LibraryIdentity::of(&file).map_err(LibraryError::Unreadable)?;
        if self.refused.contains(&identity) {
            return Ok(());
        }
        if self.files.contains(identity) {
            return Ok(self.files.join(mapped.pid, identity)?);
        }
        if failed.contains(&identity) {
            return Err(Refusal::KernelAgain);
        }
        if !self.files.has_room(Some(mapped.pid)) {
            return Err(Refusal::TooMany);
        }
        let library = LibraryFile::read(file).inspect_err(|_| {
            if self.refused.len() < MOST_REFUSED {
                self.refused.insert(identity);
            }
        })?;
        let loaded = LoadedLibrary {
            pid: Some(mapped.pid),
            library: Arc::new(library),
        };
        let watched = self.try_watch(sampler, &loaded);
        if matches!(watched, Err(Refusal::Kernel(_))) {
            failed.insert(identity);
        }
        watched
    }

    fn try_watch(&mut self, sampler: &Sampler, loaded: &LoadedLibrary) -> Result<(), Refusal> {
        let library = &loaded.library;
        let identity = library.identity().map_err(LibraryError::Unreadable)?;
        if !self.files.contains(identity) {
            if !self.files.has_room(loaded.pid) {
                return Err(Refusal::TooMany);
            }
            let watch = sampler.watch_allocations(&library.probes())?;
            self.files.add(identity, watch);
        }
        match loaded.pid {
            Some(pid) => Ok(self.files.join(pid, identity)?),
            None => Ok(()),
        }
    }

    fn refuse(&mut self, refusal: &Refusal, pid: u32, path: &str) {
        self.ledger.add(DropReason::AllocationLibraryRefused, 1);
        if self.warnings < MOST_WARNINGS {
            self.warnings += 1;
            tracing::warn!(
                pid,
                path,
                "allocations of a process are not told by its library: {refusal}"
            );
        } else {
            tracing::debug!(
                pid,
                path,
                "allocations of a process are not told by its library: {refusal}"
            );
        }
    }
}

fn is_still_mapped(mapped: &MappedLibrary) -> bool {
    let now = MappedLibrary::all_of(mapped.pid);
    now.iter().any(|other| other.file == mapped.file)
}
