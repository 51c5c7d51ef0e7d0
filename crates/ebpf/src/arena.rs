//! Which parts of the `regions` map are free.

use std::collections::{BTreeMap, VecDeque};

/// How many released runs wait before they are reused.
///
/// A walk on another CPU may have read where a run is just before it was released. It ends within
/// microseconds, and to fill this queue takes as many system calls, each at least a microsecond.
const QUARANTINE: usize = 256;

/// For how many rounds, too. A process may have forked just before its run was released, and the kernel has given the
/// child the same run. The round that begins after that hears of the fork, and at its end the child has what its
/// parent has now.
const QUARANTINE_ROUNDS: u64 = 2;

/// A run of elements.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Run {
    pub(crate) first: u32,
    pub(crate) count: u32,
}

/// A first-fit allocator of runs; neighbours that are free are joined.
#[derive(Debug)]
pub(crate) struct Arena {
    free: BTreeMap<u32, u32>,
    /// With the round in which they were released.
    quarantine: VecDeque<(u64, Run)>,
    round: u64,
    used: u32,
    capacity: u32,
}

// === impl Arena ===

impl Arena {
    pub(crate) fn new(capacity: u32) -> Arena {
        Arena {
            free: BTreeMap::from([(0, capacity)]),
            quarantine: VecDeque::new(),
            round: 0,
            used: 0,
            capacity,
        }
    }

    /// How many elements are allocated.
    pub(crate) fn used(&self) -> u32 {
        self.used
    }

    pub(crate) fn capacity(&self) -> u32 {
        self.capacity
    }

    /// A run of `count` elements; `None` if no gap is that large.
    pub(crate) fn allocate(&mut self, count: u32) -> Option<Run> {
        let run = self.first_fit(count).or_else(|| {
            // Better an improbable wrong frame than a process that is not walked at all.
            while let Some((_, run)) = self.quarantine.pop_front() {
                self.give_back(run);
            }
            self.first_fit(count)
        })?;
        self.used += count;
        Some(run)
    }

    /// Ends the use of `run`, which came from [`Arena::allocate`].
    pub(crate) fn release(&mut self, run: Run) {
        self.used -= run.count;
        self.quarantine.push_back((self.round, run));
        while self.quarantine.len() > QUARANTINE
            && let Some(&(released, oldest)) = self.quarantine.front()
            && self.round >= released + QUARANTINE_ROUNDS
        {
            self.quarantine.pop_front();
            self.give_back(oldest);
        }
    }

    /// From now on it is told what happened to processes until now.
    pub(crate) fn begin_round(&mut self) {
        self.round += 1;
    }

    fn first_fit(&mut self, count: u32) -> Option<Run> {
        if count == 0 {
            return Some(Run { first: 0, count: 0 });
        }
        let (&first, &length) = self.free.iter().find(|&(_, &length)| length >= count)?;
        self.free.remove(&first);
        if length > count {
            self.free.insert(first + count, length - count);
        }
        Some(Run { first, count })
    }

    fn give_back(&mut self, run: Run) {
        let Run {
            mut first,
            mut count,
        } = run;
        if count == 0 {
            return;
        }
        if let Some((&before, &length)) = self.free.range(..first).next_back()
            && before + length == first
        {
            self.free.remove(&before);
            first = before;
            count += length;
        }
        if let Some(length) = self.free.remove(&(first + count)) {
            count += length;
        }
        self.free.insert(first, count);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runs_do_not_overlap_and_come_back() {
        let mut arena = Arena::new(100);
        let first = arena.allocate(40).expect("room");
        let second = arena.allocate(60).expect("room");
        assert_eq!((first.first, second.first), (0, 40));
        assert_eq!(arena.allocate(1), None);
        arena.release(first);
        arena.release(second);
        assert_eq!(arena.used(), 0);
        assert_eq!(
            arena.allocate(100),
            Some(Run {
                first: 0,
                count: 100
            }),
            "free neighbours are joined"
        );
    }

    #[test]
    fn a_released_run_waits_while_there_is_other_room() {
        let mut arena = Arena::new(100);
        let first = arena.allocate(10).expect("room");
        arena.release(first);
        assert_eq!(arena.allocate(10).expect("room").first, 10);
    }

    #[test]
    fn a_released_run_waits_until_forks_before_that_are_known() {
        let mut arena = Arena::new(100_000);
        let released = arena.allocate(1).expect("room");
        arena.release(released);
        let release_many = |arena: &mut Arena| {
            let runs: Vec<Run> = (0..2 * QUARANTINE)
                .map(|_| arena.allocate(1).expect("room"))
                .collect();
            let is_reused = runs.contains(&released);
            runs.into_iter().for_each(|run| arena.release(run));
            is_reused
        };
        assert!(!release_many(&mut arena));
        assert!(!release_many(&mut arena));
        arena.begin_round();
        assert!(!release_many(&mut arena), "a child of before may have it");
        arena.begin_round();
        release_many(&mut arena);
        assert!(release_many(&mut arena));
    }

    #[test]
    fn empty_runs_take_no_room() {
        let mut arena = Arena::new(1);
        let empty = arena.allocate(0).expect("always");
        arena.release(empty);
        assert_eq!(arena.allocate(1).expect("room").count, 1);
        assert_eq!(arena.used(), 1);
    }
}
