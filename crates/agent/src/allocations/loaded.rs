//! Which running processes have the library.

use std::fs::File;
use std::sync::Arc;

use candela_symbols::foreign::Refusal;
use hashbrown::HashMap;
use hashbrown::HashSet;

use crate::allocations::frames::is_library;
use crate::allocations::library_file::LibraryError;
use crate::allocations::library_file::LibraryFile;
use crate::allocations::library_file::LibraryIdentity;
use crate::allocations::noticed::MOST_OF_PROCESS;
use crate::allocations::used_files::MOST_FILES;
use crate::processes::FileNumber;
use crate::processes::open_mapped;
use crate::processes::parse_maps;
use crate::processes::read_maps;

/// Files that are warned of; a program may make as many as it likes.
pub(super) const MOST_WARNINGS: u32 = 16;

/// What the kernel adds to the path of a file that another one has replaced.
const DELETED: &str = " (deleted)";

/// A file of the library's name that a process has mapped.
#[derive(Clone, Debug)]
pub(crate) struct MappedLibrary {
    pub(crate) pid: u32,
    pub(crate) range: (u64, u64),
    pub(crate) file: FileNumber,
    pub(crate) path: String,
}

/// The library, as a process has it.
#[derive(Clone, Debug)]
pub(crate) struct LoadedLibrary {
    /// `None`: one that is to load it.
    pub(crate) pid: Option<u32>,
    pub(crate) library: Arc<LibraryFile>,
}

// === impl MappedLibrary ===

impl MappedLibrary {
    /// `None` for a file of another name.
    pub(crate) fn of_path(
        pid: u32,
        range: (u64, u64),
        file: FileNumber,
        path: &str,
    ) -> Option<Self> {
        is_library(path.strip_suffix(DELETED).unwrap_or(path)).then(|| Self {
            pid,
            range,
            file,
            path: path.to_owned(),
        })
    }

    /// Those of a process, each once and no more than are looked into of any; none of one that has ended. One that
    /// is being loaded has no code yet.
    pub(crate) fn all_of(pid: u32) -> Vec<Self> {
        let mut maps = Vec::new();
        if read_maps(pid, &mut maps).is_err() {
            return Vec::new();
        }
        let mapped = parse_maps(&maps).filter_map(|line| {
            let file = FileNumber {
                device: line.device,
                inode: line.inode,
            };
            let range = (line.start, line.end);
            Self::of_path(pid, range, file, &String::from_utf8_lossy(line.path))
        });
        let mut seen = HashSet::new();
        let mapped = mapped.filter(|mapped| seen.insert(mapped.file));
        mapped.take(MOST_OF_PROCESS).collect()
    }

    pub(crate) fn open(&self) -> Result<File, Refusal> {
        let opened = open_mapped(self.pid, self.range, self.file, &self.path);
        opened.map(|(file, _)| file)
    }
}

/// The library in each of these processes that has it, each file looked into once; and how many files of its name
/// are something else, or more than are watched.
pub(crate) fn loaded_libraries(pids: &[u32]) -> (Vec<LoadedLibrary>, u64) {
    let mut known: HashMap<LibraryIdentity, Option<Arc<LibraryFile>>> = HashMap::new();
    let mut loaded = Vec::new();
    let (mut libraries, mut warnings) = (0, 0);
    for mapped in pids.iter().flat_map(|&pid| MappedLibrary::all_of(pid)) {
        let mut look = || -> Result<Option<Arc<LibraryFile>>, LibraryError> {
            let file = mapped.open()?;
            let identity = LibraryIdentity::of(&file)?;
            if let Some(library) = known.get(&identity) {
                return Ok(library.clone());
            }
            if libraries >= MOST_FILES {
                known.insert(identity, None);
                return Ok(None);
            }
            let read = LibraryFile::read(file).map(Arc::new);
            libraries += usize::from(read.is_ok());
            known.insert(identity, read.as_ref().ok().map(Arc::clone));
            read.map(Some)
        };
        match look() {
            Ok(library) => loaded.extend(library.map(|library| LoadedLibrary {
                pid: Some(mapped.pid),
                library,
            })),
            Err(error) if warnings < MOST_WARNINGS => {
                warnings += 1;
                tracing::warn!(
                    pid = mapped.pid,
                    path = %mapped.path,
                    "a file has the name of the library that samples allocations, but {error}"
                );
            }
            Err(_) => {}
        }
    }
    let refused = known.values().filter(|library| library.is_none()).count();
    (loaded, refused as u64)
}
