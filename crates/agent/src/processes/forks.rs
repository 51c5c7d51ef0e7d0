//! Forks of processes that nothing was known of: a child that is gone before its maps could be read had what its
//! parent has.

use hashbrown::HashMap;

/// How many forks are remembered at most, 32 bytes each. Children that become other programs are not among them.
const MOST_FORKS: usize = 65_536;

/// Who forked a process, and when.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Fork {
    pub(crate) parent: u32,
    /// CLOCK_MONOTONIC, nanoseconds.
    pub(crate) time_ns: u64,
    /// When the child ended.
    pub(crate) ended_ns: Option<u64>,
}

/// Children of unknown processes that are unknown themselves.
#[derive(Debug, Default)]
pub(crate) struct UnknownForks {
    by_child: HashMap<u32, Fork>,
}

// === impl UnknownForks ===

impl UnknownForks {
    pub(crate) fn note(&mut self, child: u32, parent: u32, time_ns: u64) {
        let fork = Fork {
            parent,
            time_ns,
            ended_ns: None,
        };
        if self.by_child.len() < MOST_FORKS {
            self.by_child.insert(child, fork);
        } else if let Some(earlier) = self.by_child.get_mut(&child) {
            // A process id used again.
            *earlier = fork;
        }
    }

    /// The fork that made `child`, as long as it is the same program.
    pub(crate) fn of(&self, child: u32) -> Option<Fork> {
        self.by_child.get(&child).copied()
    }

    pub(crate) fn forget(&mut self, child: u32) -> Option<Fork> {
        self.by_child.remove(&child)
    }

    /// Samples of a child that has ended may still be on their way.
    pub(crate) fn ended(&mut self, child: u32, time_ns: u64) {
        if let Some(fork) = self.by_child.get_mut(&child) {
            fork.ended_ns = Some(time_ns);
        }
    }

    /// Forgets children that ended before.
    pub(crate) fn forget_ended_before(&mut self, time_ns: u64) {
        self.by_child
            .retain(|_, fork| fork.ended_ns.is_none_or(|ended_ns| ended_ns > time_ns));
    }

    /// Forgets children of which `is_there` knows nothing.
    pub(crate) fn retain(&mut self, is_there: impl Fn(u32) -> bool) {
        self.by_child.retain(|&child, _| is_there(child));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn there_is_room_for_so_many_and_the_latest_counts() {
        let mut forks = UnknownForks::default();
        for child in 0..MOST_FORKS as u32 + 10 {
            forks.note(child, 1, 5);
        }
        assert_eq!(forks.of(MOST_FORKS as u32), None);
        forks.note(7, 2, 6);
        assert_eq!(forks.of(7).map(|fork| fork.parent), Some(2));
        forks.ended(7, 8);
        forks.forget_ended_before(7);
        assert!(forks.of(7).is_some());
        forks.forget_ended_before(8);
        assert_eq!(forks.of(7), None);
        assert!(forks.of(8).is_some(), "it runs");
    }
}
