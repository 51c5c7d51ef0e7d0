//! All object files that are open, each once.

use std::path::PathBuf;
use std::sync::Arc;

use hashbrown::HashMap;

use crate::ledger::DropReason;
use crate::ledger::Ledger;
use crate::processes::object::FileNumber;
use crate::processes::object::Object;
use crate::processes::object::ObjectSource;
use crate::processes::object::open_mapped;

/// How many files are held open at most. A host with more different binaries in use at a time has
/// not been met; what is beyond is named by its path only.
const MOST_OBJECTS: usize = 4096;

/// The open objects by file.
#[derive(Debug)]
pub(crate) struct Objects {
    by_file: HashMap<FileNumber, Entry>,
    vdso: Arc<Object>,
    next_number: u32,
    ledger: Arc<Ledger>,
    /// Objects nobody has described yet.
    new: Vec<Arc<Object>>,
}

#[derive(Debug)]
struct Entry {
    object: Arc<Object>,
    /// Size and time of change of the file when it was opened: an inode can be written anew.
    state: Option<(u64, i64, i64)>,
    /// Whether it was asked for since the last sweep.
    is_fresh: bool,
}

/// Which part of a file is mapped where.
#[derive(Clone, Copy, Debug)]
pub(crate) struct MappedRange {
    pub(crate) pid: u32,
    pub(crate) start: u64,
    pub(crate) end: u64,
}

impl Objects {
    pub(crate) fn new(ledger: Arc<Ledger>) -> Self {
        let vdso = Object::new(
            0,
            "[vdso]".to_owned(),
            PathBuf::from("/"),
            ObjectSource::Vdso,
        );
        let vdso = Arc::new(vdso);
        Self {
            by_file: HashMap::new(),
            new: vec![Arc::clone(&vdso)],
            vdso,
            next_number: 1,
            ledger,
        }
    }

    pub(crate) fn vdso(&self) -> Arc<Object> {
        Arc::clone(&self.vdso)
    }

    /// The object of a mapped file, opened when it is new or has changed.
    pub(crate) fn get(&mut self, file: FileNumber, range: MappedRange, path: &str) -> Arc<Object> {
        // What could not be opened for a process that has ended may be opened for the next one.
        if let Some(entry) = self.by_file.get_mut(&file)
            && entry.object.is_readable()
            && entry.state == state_of(&entry.object)
        {
            entry.is_fresh = true;
            return Arc::clone(&entry.object);
        }
        let path = path.strip_suffix(" (deleted)").unwrap_or(path);
        let object = Arc::new(self.open(file, range, path));
        if object.is_readable() {
            self.new.push(Arc::clone(&object));
        }
        let entry = Entry {
            state: state_of(&object),
            object: Arc::clone(&object),
            is_fresh: true,
        };
        self.by_file.insert(file, entry);
        object
    }

    fn open(&mut self, file: FileNumber, range: MappedRange, path: &str) -> Object {
        let number = self.next_number;
        self.next_number += 1;
        let root = PathBuf::from(format!("/proc/{}/root", range.pid));
        if self.by_file.len() >= MOST_OBJECTS {
            self.ledger.add(DropReason::TooManyObjects, 1);
            return Object::new(number, path.to_owned(), root, ObjectSource::Unreadable);
        }
        match open_mapped(range.pid, (range.start, range.end), file, path) {
            Ok((opened, reader)) => {
                let source = ObjectSource::File(opened);
                Object::new(number, path.to_owned(), root, source).read_for(reader)
            }
            Err(error) => {
                self.ledger.add(DropReason::ObjectUnreadable, 1);
                tracing::debug!(%error, path, pid = range.pid, "cannot open a mapped file");
                Object::new(number, path.to_owned(), root, ObjectSource::Unreadable)
            }
        }
    }

    /// Objects that were opened since the last call.
    pub(crate) fn take_new(&mut self) -> Vec<Arc<Object>> {
        std::mem::take(&mut self.new)
    }

    /// Closes the files that nobody refers to and nobody asked for since the last sweep. An
    /// unreadable one is forgotten sooner, so that the next process that maps it may try again.
    pub(crate) fn sweep(&mut self) {
        self.by_file.retain(|_, entry| {
            let is_used = Arc::strong_count(&entry.object) > 1;
            let is_kept = entry.is_fresh && entry.object.is_readable();
            entry.is_fresh = false;
            is_used || is_kept
        });
    }

    pub(crate) fn len(&self) -> usize {
        self.by_file.len()
    }
}

fn state_of(object: &Object) -> Option<(u64, i64, i64)> {
    use std::os::unix::fs::MetadataExt;
    let ObjectSource::File(file) = &object.source else {
        return None;
    };
    let metadata = file.metadata().ok()?;
    Some((metadata.size(), metadata.mtime(), metadata.mtime_nsec()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::processes::maps_file::parse_maps;

    /// A file that we have mapped, its path, and where a process would have it too.
    fn mapped_file() -> (FileNumber, String, impl Fn(u32) -> MappedRange) {
        let maps = std::fs::read("/proc/self/maps").expect("our own maps");
        let line = parse_maps(&maps)
            .find(|line| line.is_executable && line.inode != 0)
            .expect("some code");
        let file = FileNumber {
            device: line.device,
            inode: line.inode,
        };
        let (start, end) = (line.start, line.end);
        let path = String::from_utf8_lossy(line.path).into_owned();
        (file, path, move |pid| MappedRange { pid, start, end })
    }

    #[test]
    fn what_was_unreadable_is_tried_again() {
        let mut objects = Objects::new(Arc::new(Ledger::default()));
        let (file, path, range) = mapped_file();
        let of_nobody = objects.get(file, range(u32::MAX), "/gone/in/another/root");
        assert!(!of_nobody.is_readable());
        let ours = objects.get(file, range(std::process::id()), &path);
        assert!(ours.is_readable(), "although somebody holds the other one");
    }

    #[test]
    fn a_file_is_opened_once_and_closed_when_unused() {
        let mut objects = Objects::new(Arc::new(Ledger::default()));
        let (file, path, range) = mapped_file();
        let range = range(std::process::id());
        let first = objects.get(file, range, &path);
        assert!(Arc::ptr_eq(&first, &objects.get(file, range, &path)));
        assert_eq!(objects.take_new().len(), 2, "the vDSO and this file");
        drop(first);
        objects.sweep();
        assert_eq!(objects.len(), 1, "asked for since the last sweep");
        objects.sweep();
        assert_eq!(objects.len(), 0);
    }
}
