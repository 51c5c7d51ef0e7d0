//! Mappings of files of the library's name that are to be looked into.
//!
//! Any process may map as many such files as it likes: what is kept of one is bounded, and goes when it ends.

use hashbrown::HashMap;

use crate::allocations::loaded::MappedLibrary;
use crate::allocations::used_files::MOST_FILES_OF_PROCESS;

/// Of a process: one more than it may have, so that the last one is seen to be refused.
pub(super) const MOST_OF_PROCESS: usize = MOST_FILES_OF_PROCESS + 1;

/// Processes with such mappings.
const MOST_PROCESSES: usize = 4096;

/// What is to be looked into next, and what there was no room for when it was.
#[derive(Debug, Default)]
pub(super) struct NoticedLibraries {
    next: HashMap<u32, Vec<NoticedLibrary>>,
    passed_over: HashMap<u32, Vec<MappedLibrary>>,
}

/// A mapping to look into.
#[derive(Clone, Debug)]
pub(super) struct NoticedLibrary {
    pub(super) mapped: MappedLibrary,
    /// Whether it was told already that there is no room.
    pub(super) was_passed_over: bool,
}

/// What became of a mapping that was told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Notice {
    Taken,
    /// Its process has too many of them.
    TooManyOfProcess,
    /// Too many processes have some.
    Full,
}

// === impl NoticedLibraries ===

impl NoticedLibraries {
    pub(super) fn notice(&mut self, mapped: MappedLibrary) -> Notice {
        self.add(NoticedLibrary {
            mapped,
            was_passed_over: false,
        })
    }

    /// A child has what its parent has.
    pub(super) fn forked(&mut self, pid: u32, parent: u32) {
        let next = self.next.get(&parent).cloned().unwrap_or_default();
        for mut noticed in next {
            noticed.mapped.pid = pid;
            self.add(noticed);
        }
        let passed_over = self.passed_over.get(&parent).cloned().unwrap_or_default();
        for mapped in passed_over {
            self.pass_over(MappedLibrary { pid, ..mapped });
        }
    }

    /// A process has ended, or become another program.
    pub(super) fn left(&mut self, pid: u32) {
        self.next.remove(&pid);
        self.passed_over.remove(&pid);
    }

    /// All that are to be looked into.
    pub(super) fn take(&mut self) -> impl Iterator<Item = NoticedLibrary> + use<> {
        std::mem::take(&mut self.next).into_values().flatten()
    }

    /// There was no room for it.
    pub(super) fn pass_over(&mut self, mapped: MappedLibrary) {
        let is_full = self.passed_over.len() >= MOST_PROCESSES;
        if is_full && !self.passed_over.contains_key(&mapped.pid) {
            return;
        }
        let of_process = self.passed_over.entry(mapped.pid).or_default();
        if of_process.len() < MOST_OF_PROCESS {
            of_process.push(mapped);
        }
    }

    /// There may be room now.
    pub(super) fn look_again(&mut self) {
        let passed_over = std::mem::take(&mut self.passed_over);
        for mapped in passed_over.into_values().flatten() {
            self.add(NoticedLibrary {
                mapped,
                was_passed_over: true,
            });
        }
    }

    /// The processes with any of them.
    pub(super) fn processes(&self) -> impl Iterator<Item = u32> {
        let all = self.next.keys().chain(self.passed_over.keys());
        all.copied()
    }

    fn add(&mut self, noticed: NoticedLibrary) -> Notice {
        let pid = noticed.mapped.pid;
        if self.next.len() >= MOST_PROCESSES && !self.next.contains_key(&pid) {
            return Notice::Full;
        }
        let of_process = self.next.entry(pid).or_default();
        let mut known = of_process.iter_mut();
        // Mapped anew, elsewhere.
        if let Some(known) = known.find(|it| it.mapped.file == noticed.mapped.file) {
            known.mapped = noticed.mapped;
            return Notice::Taken;
        }
        if of_process.len() >= MOST_OF_PROCESS {
            return Notice::TooManyOfProcess;
        }
        of_process.push(noticed);
        Notice::Taken
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::processes::FileNumber;

    fn mapped(pid: u32, inode: u64) -> MappedLibrary {
        MappedLibrary {
            pid,
            range: (0x1000, 0x2000),
            file: FileNumber {
                device: (8, 1),
                inode,
            },
            path: String::new(),
        }
    }

    /// Process, file, and whether it was passed over.
    fn taken(noticed: &mut NoticedLibraries) -> Vec<(u32, u64, bool)> {
        let taken = noticed.take();
        let mut taken: Vec<_> = taken
            .map(|it| (it.mapped.pid, it.mapped.file.inode, it.was_passed_over))
            .collect();
        taken.sort_unstable();
        taken
    }

    #[test]
    fn what_ends_before_it_is_looked_into_is_forgotten() {
        let mut noticed = NoticedLibraries::default();
        noticed.notice(mapped(7, 1));
        noticed.notice(mapped(8, 1));
        noticed.pass_over(mapped(7, 2));
        noticed.left(7);
        noticed.look_again();
        assert_eq!(taken(&mut noticed), [(8, 1, false)]);
        assert!(taken(&mut noticed).is_empty());
    }

    #[test]
    fn children_have_what_their_parents_have() {
        let mut noticed = NoticedLibraries::default();
        noticed.notice(mapped(7, 1));
        noticed.pass_over(mapped(7, 2));
        noticed.forked(8, 7);
        noticed.left(7);
        noticed.look_again();
        assert_eq!(taken(&mut noticed), [(8, 1, false), (8, 2, true)]);
    }

    #[test]
    fn a_process_has_only_its_own_room() {
        let mut noticed = NoticedLibraries::default();
        let most = MOST_OF_PROCESS as u64;
        for inode in 0..most {
            assert_eq!(noticed.notice(mapped(7, inode)), Notice::Taken);
            assert_eq!(noticed.notice(mapped(7, inode)), Notice::Taken, "again");
        }
        assert_eq!(noticed.notice(mapped(7, most)), Notice::TooManyOfProcess);
        assert_eq!(noticed.notice(mapped(8, most)), Notice::Taken);
        assert_eq!(taken(&mut noticed).len(), MOST_OF_PROCESS + 1);
        for pid in 0..MOST_PROCESSES as u32 {
            assert_eq!(noticed.notice(mapped(pid, 1)), Notice::Taken);
        }
        assert_eq!(noticed.notice(mapped(u32::MAX, 1)), Notice::Full);
        assert_eq!(noticed.notice(mapped(7, 2)), Notice::Taken);
    }
}
