//! The files of the library that are watched, and which processes have them.

use hashbrown::HashMap;

use crate::allocations::library_file::LibraryIdentity;

/// Files that are watched at a time at most: each image of a container and each mount of one has its own.
pub(super) const MOST_FILES: usize = 256;

/// No process needs two; none may use up the room of all others.
pub(super) const MOST_FILES_OF_PROCESS: usize = 4;

/// How long a file is watched that no process has any more: services start again.
const GRACE_NS: u64 = 60_000_000_000;

/// Files by who has them, each watched by a `Watch` as long as this is there.
#[derive(Debug)]
pub(super) struct UsedFiles<Watch> {
    files: HashMap<LibraryIdentity, UsedFile<Watch>>,
    /// Which of them a process has.
    processes: HashMap<u32, Vec<LibraryIdentity>>,
}

#[derive(Debug)]
struct UsedFile<Watch> {
    #[expect(dead_code, reason = "held: it is watched until this is dropped")]
    watch: Watch,
    processes: usize,
    /// Since when no process has it (CLOCK_MONOTONIC, nanoseconds).
    unused_since_ns: Option<u64>,
}

/// A process has as many files as it may.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct HasMost;

// === impl UsedFiles ===

impl<Watch> UsedFiles<Watch> {
    pub(super) fn new() -> Self {
        Self {
            files: HashMap::new(),
            processes: HashMap::new(),
        }
    }

    pub(super) fn len(&self) -> usize {
        self.files.len()
    }

    pub(super) fn contains(&self, identity: LibraryIdentity) -> bool {
        self.files.contains_key(&identity)
    }

    /// Whether there is room for one more file, of this process if it is known.
    pub(super) fn has_room(&self, pid: Option<u32>) -> bool {
        self.files.len() < MOST_FILES && !pid.is_some_and(|pid| self.has_most(pid))
    }

    /// A file is watched from now on, which no process has yet.
    pub(super) fn add(&mut self, identity: LibraryIdentity, watch: Watch) {
        let file = UsedFile {
            watch,
            processes: 0,
            unused_since_ns: None,
        };
        self.files.insert(identity, file);
    }

    /// A process has a file that is watched.
    pub(super) fn join(&mut self, pid: u32, identity: LibraryIdentity) -> Result<(), HasMost> {
        let has_most = self.has_most(pid);
        let of_process = self.processes.entry(pid).or_default();
        if of_process.contains(&identity) {
            return Ok(());
        }
        if has_most {
            return Err(HasMost);
        }
        of_process.push(identity);
        self.count(&[identity]);
        Ok(())
    }

    /// A new process has what its parent has (CLOCK_MONOTONIC, nanoseconds).
    pub(super) fn forked(&mut self, pid: u32, parent: u32, time_ns: u64) {
        // That an earlier one of this id has ended was not told.
        self.left(pid, time_ns);
        let Some(files) = self.processes.get(&parent).cloned() else {
            return;
        };
        self.count(&files);
        self.processes.insert(pid, files);
    }

    /// A process has ended, or become another program (CLOCK_MONOTONIC, nanoseconds).
    pub(super) fn left(&mut self, pid: u32, time_ns: u64) {
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

    /// The processes that have any.
    pub(super) fn processes(&self) -> impl Iterator<Item = u32> {
        self.processes.keys().copied()
    }

    /// Lets go of what nobody has any more.
    pub(super) fn remove_unused(&mut self, now_ns: u64) {
        self.files.retain(|_, file| {
            let since = file.unused_since_ns;
            since.is_none_or(|since_ns| now_ns.saturating_sub(since_ns) < GRACE_NS)
        });
    }

    fn has_most(&self, pid: u32) -> bool {
        let of_process = self.processes.get(&pid);
        of_process.is_some_and(|files| files.len() >= MOST_FILES_OF_PROCESS)
    }

    /// One more process has these.
    fn count(&mut self, files: &[LibraryIdentity]) {
        for file in files {
            if let Some(file) = self.files.get_mut(file) {
                file.processes += 1;
                file.unused_since_ns = None;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LATER_NS: u64 = 2 * GRACE_NS;

    /// So many files, which nobody has.
    fn files(count: u64) -> (UsedFiles<()>, Vec<LibraryIdentity>) {
        let mut used = UsedFiles::new();
        let identities: Vec<_> = (0..count).map(LibraryIdentity::of_test).collect();
        identities.iter().for_each(|&it| used.add(it, ()));
        (used, identities)
    }

    #[test]
    fn a_file_is_there_as_long_as_a_process_or_its_child_has_it() {
        let (mut used, identities) = files(2);
        used.join(7, identities[0]).expect("there is room");
        used.join(7, identities[0]).expect("it has it already");
        used.forked(8, 7, 1);
        used.left(7, 1);
        used.remove_unused(LATER_NS);
        assert_eq!(used.len(), 2);
        used.left(8, LATER_NS);
        used.remove_unused(LATER_NS);
        assert_eq!(used.len(), 2, "services start again");
        used.remove_unused(2 * LATER_NS);
        assert!(!used.contains(identities[0]));
        // It is there for a process that is still to come.
        assert!(used.contains(identities[1]));
    }

    #[test]
    fn ids_come_again_before_it_is_told_that_they_were_free() {
        let (mut used, identities) = files(2);
        used.join(7, identities[0]).expect("there is room");
        used.join(8, identities[1]).expect("there is room");
        used.forked(8, 7, 1);
        used.left(8, 1);
        used.remove_unused(LATER_NS);
        assert!(used.contains(identities[0]) && !used.contains(identities[1]));
        // The child of one that has no library.
        used.forked(7, 9, 1);
        used.remove_unused(LATER_NS);
        assert_eq!((used.len(), used.processes().count()), (0, 0));
    }

    #[test]
    fn no_process_takes_the_room_of_others() {
        let (mut used, identities) = files(1 + MOST_FILES_OF_PROCESS as u64);
        let (last, first) = identities.split_last().expect("some");
        first
            .iter()
            .for_each(|&it| used.join(7, it).expect("there is room"));
        assert_eq!(used.join(7, *last), Err(HasMost));
        assert!(!used.has_room(Some(7)) && used.has_room(Some(8)) && used.has_room(None));
        used.left(7, 1);
        assert!(used.has_room(Some(7)));
    }
}
