//! What a sample stands for, in each kind that it is a sample of.

use std::ops::RangeInclusive;

use candela_ebpf::Sample;

use crate::allocations::AllocationNumber;
use crate::kinds::Kind;
use crate::window::Amount;
use crate::windows::WindowId;

/// What a sample stands for. One of a wait may be of several kinds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Worth {
    value: u64,
    /// Of `value`, the time that the thread could have run.
    run_queue_ns: u64,
    count: u64,
    /// Which allocation it is of, if any.
    pub(crate) allocation: AllocationNumber,
}

// === impl Worth ===

impl Worth {
    pub(crate) fn of(sample: &Sample<'_>) -> Self {
        Self {
            value: sample.value,
            run_queue_ns: sample.run_queue_ns,
            count: sample.count.into(),
            allocation: AllocationNumber::NONE,
        }
    }

    pub(crate) fn of_allocation(amount: Amount, allocation: AllocationNumber) -> Self {
        Self {
            value: amount.value,
            run_queue_ns: 0,
            count: amount.count,
            allocation,
        }
    }

    /// As a sample of a window.
    pub(crate) fn amount(self, window: WindowId) -> Amount {
        let value = match window {
            WindowId::Kind(Kind::RunQueue) => self.run_queue_ns,
            WindowId::Kind(_) | WindowId::Event(_) => self.value,
        };
        Amount {
            value,
            count: self.count,
        }
    }

    pub(crate) fn has_run_queue(self) -> bool {
        self.run_queue_ns > 0
    }

    /// The part of a wait, which ended at `time_ns`, that lies in a recording: a thread that came back just after
    /// the end has waited before it, and one that came back just after the start, before that. A sample worth
    /// `mean_ns` or less says nothing of its length, which is below that: it counts where it ended.
    pub(crate) fn within(
        self,
        times: &RangeInclusive<u64>,
        time_ns: u64,
        mean_ns: u64,
    ) -> Option<Self> {
        if self.value <= mean_ns {
            return times.contains(&time_ns).then_some(self);
        }
        let began_ns = time_ns.saturating_sub(self.value);
        let early_ns = times.start().saturating_sub(began_ns);
        let late_ns = time_ns.saturating_sub(*times.end());
        let value = self.value.checked_sub(early_ns)?.checked_sub(late_ns)?;
        // Being runnable is the end of a wait.
        let run_queue_ns = self.run_queue_ns.saturating_sub(late_ns).min(value);
        (value > 0).then_some(Self {
            value,
            run_queue_ns,
            ..self
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const WAIT: Worth = Worth {
        value: 100,
        run_queue_ns: 30,
        count: 1,
        allocation: AllocationNumber::NONE,
    };

    #[test]
    fn a_wait_across_the_end_counts_by_its_part_before_it() {
        let times = 1_000..=2_000;
        assert_eq!(WAIT.within(&times, 2_000, 50), Some(WAIT));
        let cut = WAIT.within(&times, 2_040, 50).expect("most of it");
        assert_eq!((cut.value, cut.run_queue_ns, cut.count), (60, 0, 1));
        assert_eq!(WAIT.within(&times, 2_100, 50), None, "all of it is later");
        assert_eq!(WAIT.within(&times, 999, 50), None, "nobody asked yet");
        let cut = WAIT.within(&times, 1_020, 50).expect("its end");
        assert_eq!((cut.value, cut.run_queue_ns), (20, 20));
        assert_eq!(WAIT.within(&times, 1_020, 100), Some(WAIT), "a short one");
        assert_eq!(WAIT.within(&times, 2_001, 100), None, "a short one");
    }

    #[test]
    fn only_the_run_queue_s_part_is_the_run_queue_s() {
        assert_eq!(WAIT.amount(WindowId::Kind(Kind::RunQueue)).value, 30);
        assert_eq!(WAIT.amount(WindowId::Kind(Kind::OffCpu)).value, 100);
    }
}
