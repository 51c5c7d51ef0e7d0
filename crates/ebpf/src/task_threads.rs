//! The threads of sampled processes, as their records tell.

use std::collections::HashMap;

/// How many threads are remembered; those of more have no names, and their process ends with its first thread.
const MOST_THREADS: usize = 65_536;

/// The names of threads by process and thread.
#[derive(Debug, Default)]
pub(crate) struct TaskThreads {
    by_process: HashMap<u32, HashMap<u32, Vec<u8>>>,
    count: usize,
}

// === impl TaskThreads ===

impl TaskThreads {
    /// A thread is there, and has this name.
    pub(crate) fn begun(&mut self, pid: u32, tid: u32, name: &[u8]) {
        let is_full = self.count >= MOST_THREADS;
        let known = self.by_process.get_mut(&pid);
        if let Some(known) = known.and_then(|threads| threads.get_mut(&tid)) {
            *known = name.to_vec();
            return;
        }
        if is_full {
            return;
        }
        let threads = self.by_process.entry(pid).or_default();
        threads.insert(tid, name.to_vec());
        self.count += 1;
    }

    /// A process has become another program, which ends all its threads but one. That one has the id of the first
    /// from now on.
    pub(crate) fn replaced(&mut self, pid: u32, tid: u32, name: &[u8]) {
        let former = self.by_process.remove(&pid);
        self.count -= former.map_or(0, |threads| threads.len());
        self.begun(pid, tid, name);
    }

    /// A thread has ended; whether it was the last of its process. The first one may end before others.
    pub(crate) fn ended(&mut self, pid: u32, tid: u32) -> bool {
        let Some(threads) = self.by_process.get_mut(&pid) else {
            return pid == tid;
        };
        self.count -= usize::from(threads.remove(&tid).is_some());
        let was_last = threads.is_empty();
        if was_last {
            self.by_process.remove(&pid);
        }
        was_last
    }

    /// The name of a thread; nothing where it is not known.
    pub(crate) fn name(&self, pid: u32, tid: u32) -> &[u8] {
        let threads = self.by_process.get(&pid);
        threads
            .and_then(|threads| threads.get(&tid))
            .map_or(&[], Vec::as_slice)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_ends_with_its_last_thread() {
        let mut threads = TaskThreads::default();
        threads.begun(7, 7, b"first");
        threads.begun(7, 8, b"second");
        assert!(
            !threads.ended(7, 7),
            "the first has ended, and not the process"
        );
        assert_eq!(
            (threads.name(7, 7), threads.name(7, 8)),
            (&b""[..], &b"second"[..])
        );
        assert!(threads.ended(7, 8));
        assert_eq!(threads.count, 0);
        assert!(threads.ended(9, 9), "of one that is not known");
        assert!(!threads.ended(9, 10));
    }

    #[test]
    fn another_program_has_one_thread() {
        let mut threads = TaskThreads::default();
        threads.begun(7, 7, b"first");
        threads.begun(7, 8, b"second");
        // The second one executes: the first has ended, and its id is the second's now.
        assert!(!threads.ended(7, 7));
        threads.replaced(7, 7, b"program");
        assert_eq!((threads.name(7, 7), threads.count), (&b"program"[..], 1));
        assert!(threads.ended(7, 7));
    }

    #[test]
    fn there_is_room_for_so_many() {
        let mut threads = TaskThreads::default();
        for tid in 0..MOST_THREADS as u32 + 5 {
            threads.begun(1, tid, b"one");
        }
        assert_eq!(threads.count, MOST_THREADS);
        threads.begun(1, 3, b"renamed");
        assert_eq!(threads.name(1, 3), b"renamed");
    }
}
