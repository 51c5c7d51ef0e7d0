//! The files of the library that are watched, each as long as a process has it.

use std::sync::Arc;

use candela_ebpf::AllocationWatch;
use candela_ebpf::Sampler;
use hashbrown::HashMap;
use hashbrown::HashSet;

use crate::allocations::library_file::LibraryError;
use crate::allocations::library_file::LibraryFile;
use crate::allocations::library_file::LibraryIdentity;
use crate::allocations::loaded::LoadedLibrary;
use crate::allocations::loaded::MappedLibrary;
use crate::ledger::DropReason;
use crate::ledger::Ledger;
use crate::processes::all_processes;

/// Files that are watched at a time at most: each image of a container and each mount of one has its own.
const MOST_FILES: usize = 256;

/// No process needs two; none may use up the room of all others.
const MOST_FILES_OF_PROCESS: usize = 4;

/// How long a file is watched that no process has any more: services start again.
const GRACE_NS: u64 = 60_000_000_000;

/// Refused files that are warned of; a program may make as many as it likes.
const MOST_WARNINGS: u32 = 16;

/// Mappings that are noticed between two looks at most.
const MOST_NOTICED: usize = 4096;

/// Watches the library wherever a process maps it.
#[derive(Debug)]
pub(crate) struct WatchedLibraries {
    files: HashMap<LibraryIdentity, WatchedFile>,
    /// Which of them a process has.
    processes: HashMap<u32, Vec<LibraryIdentity>>,
    /// Those that were refused since the last sweep.
    refused: HashSet<LibraryIdentity>,
    noticed: Vec<MappedLibrary>,
    /// Some mappings were not told.
    is_doubtful: bool,
    warnings: u32,
    ledger: Arc<Ledger>,
}

#[derive(Debug)]
struct WatchedFile {
    #[expect(dead_code, reason = "held: it is watched until this is dropped")]
    watch: AllocationWatch,
    processes: usize,
    /// Since when no process has it (CLOCK_MONOTONIC, nanoseconds).
    unused_since_ns: Option<u64>,
}

/// Why a file is not watched.
#[derive(Debug, thiserror::Error)]
enum Refusal {
    #[error(transparent)]
    Library(#[from] LibraryError),
    #[error(transparent)]
    Kernel(#[from] candela_ebpf::Error),
    #[error(
        "{files} files are watched already, or {own} of this process",
        files = MOST_FILES,
        own = MOST_FILES_OF_PROCESS
    )]
    TooMany,
}

// === impl WatchedLibraries ===

impl WatchedLibraries {
    pub(crate) fn new(ledger: Arc<Ledger>) -> Self {
        Self {
            files: HashMap::new(),
            processes: HashMap::new(),
            refused: HashSet::new(),
            noticed: Vec::new(),
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
            Refusal::Library(_) | Refusal::TooMany => Ok(()),
        }
    }

    /// A process has mapped a file of the library's name: to be looked into by [`Self::watch_noticed`].
    pub(crate) fn notice(&mut self, mapped: MappedLibrary) {
        match self.noticed.len() < MOST_NOTICED {
            true => self.noticed.push(mapped),
            false => self.is_doubtful = true,
        }
    }

    /// Mappings were lost on their way.
    pub(crate) fn distrust(&mut self) {
        self.is_doubtful = true;
    }

    pub(crate) fn forked(&mut self, pid: u32, parent: u32) {
        let Some(files) = self.processes.get(&parent).cloned() else {
            return;
        };
        for file in &files {
            if let Some(file) = self.files.get_mut(file) {
                file.processes += 1;
            }
        }
        self.processes.insert(pid, files);
    }

    /// A process has ended, or become another program (CLOCK_MONOTONIC, nanoseconds).
    pub(crate) fn left(&mut self, pid: u32, time_ns: u64) {
        for identity in self.processes.remove(&pid).unwrap_or_default() {
            let Some(file) = self.files.get_mut(&identity) else {
                continue;
            };
            file.processes -= 1;
            if file.processes == 0 {
                file.unused_since_ns = Some(time_ns);
            }
        }
    }

    /// Looks into what was noticed, and watches what is the library.
    pub(crate) fn watch_noticed(&mut self, sampler: &Sampler) {
        for mapped in std::mem::take(&mut self.noticed) {
            if let Err(refusal) = self.look_into(sampler, &mapped) {
                self.refuse(&refusal, mapped.pid, &mapped.path);
            }
        }
    }

    /// Lets go of what nobody has any more, and looks again where something may have been missed.
    pub(crate) fn sweep(&mut self, now_ns: u64) {
        self.refused.clear();
        if std::mem::take(&mut self.is_doubtful) {
            let pids = all_processes();
            let is_gone = |pid: &u32| !pids.contains(pid);
            let gone: Vec<u32> = self.processes.keys().copied().filter(is_gone).collect();
            gone.into_iter().for_each(|pid| self.left(pid, now_ns));
            for mapped in pids.into_iter().flat_map(MappedLibrary::all_of) {
                self.notice(mapped);
            }
        }
        self.files.retain(|_, file| {
            let since = file.unused_since_ns;
            since.is_none_or(|since_ns| now_ns.saturating_sub(since_ns) < GRACE_NS)
        });
    }

    /// How many files are watched.
    pub(crate) fn len(&self) -> usize {
        self.files.len()
    }

    fn look_into(&mut self, sampler: &Sampler, mapped: &MappedLibrary) -> Result<(), Refusal> {
        let file = match mapped.open() {
            Ok(file) => file,
            // A process that has ended has nothing to tell.
            Err(_) if !is_running(mapped.pid) => return Ok(()),
            Err(error) => return Err(LibraryError::Unreadable(error).into()),
        };
        let identity = LibraryIdentity::of(&file).map_err(LibraryError::Unreadable)?;
        if self.refused.contains(&identity) {
            return Ok(());
        }
        if self.files.contains_key(&identity) {
            return self.join(mapped.pid, identity);
        }
        let watched = LibraryFile::read(file)
            .map_err(Refusal::from)
            .and_then(|it| {
                let loaded = LoadedLibrary {
                    pid: Some(mapped.pid),
                    library: Arc::new(it),
                };
                self.try_watch(sampler, &loaded)
            });
        if watched.is_err() && self.refused.len() < MOST_NOTICED {
            self.refused.insert(identity);
        }
        watched
    }

    fn try_watch(&mut self, sampler: &Sampler, loaded: &LoadedLibrary) -> Result<(), Refusal> {
        let library = &loaded.library;
        let identity = library.identity().map_err(LibraryError::Unreadable)?;
        if !self.files.contains_key(&identity) {
            if self.files.len() >= MOST_FILES || self.has_most(loaded.pid) {
                return Err(Refusal::TooMany);
            }
            let file = WatchedFile {
                watch: sampler.watch_allocations(&library.probes())?,
                processes: 0,
                unused_since_ns: None,
            };
            self.files.insert(identity, file);
        }
        match loaded.pid {
            Some(pid) => self.join(pid, identity),
            None => Ok(()),
        }
    }

    /// A process has a file that is watched.
    fn join(&mut self, pid: u32, identity: LibraryIdentity) -> Result<(), Refusal> {
        let has_most = self.has_most(Some(pid));
        let of_process = self.processes.entry(pid).or_default();
        if of_process.contains(&identity) {
            return Ok(());
        }
        if has_most {
            return Err(Refusal::TooMany);
        }
        of_process.push(identity);
        if let Some(file) = self.files.get_mut(&identity) {
            file.processes += 1;
            file.unused_since_ns = None;
        }
        Ok(())
    }

    fn has_most(&self, pid: Option<u32>) -> bool {
        let of_process = pid.and_then(|pid| self.processes.get(&pid));
        of_process.is_some_and(|files| files.len() >= MOST_FILES_OF_PROCESS)
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

fn is_running(pid: u32) -> bool {
    std::fs::exists(format!("/proc/{pid}")).unwrap_or(true)
}
