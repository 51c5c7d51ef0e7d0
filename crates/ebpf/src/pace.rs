//! How much is sampled, which can be changed while the programs run.

use crate::options::{LONGEST_OFF_CPU_MEAN_NS, Options};

/// How much is sampled. Whatever it is, samples are worth what they stand for: totals are right on average.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pace {
    /// One tick of a busy CPU's clock of so many is a sample, worth as many periods; at least 1.
    pub ticks_per_sample: u32,
    /// The time in nanoseconds that a sample of time off CPU stands for at least, at most
    /// [`LONGEST_OFF_CPU_MEAN_NS`].
    pub off_cpu_mean_ns: u64,
    /// One sampled allocation of so many is told, worth as many; at least 1.
    pub allocations_per_sample: u32,
}

// === impl Pace ===

impl Pace {
    /// That of the start: every tick, and every allocation that a program has sampled.
    pub(crate) fn of(options: &Options) -> Pace {
        Pace {
            off_cpu_mean_ns: options.off_cpu_mean_ns.unwrap_or_default(),
            ..Pace::default()
        }
    }

    /// The same within the bounds that the programs rely on.
    pub(crate) fn within_bounds(self) -> Pace {
        Pace {
            ticks_per_sample: self.ticks_per_sample.max(1),
            off_cpu_mean_ns: self.off_cpu_mean_ns.min(LONGEST_OFF_CPU_MEAN_NS),
            allocations_per_sample: self.allocations_per_sample.max(1),
        }
    }

    /// `struct pace` of bpf/maps.h.
    pub(crate) fn to_kernel(self) -> [u64; 3] {
        [
            self.ticks_per_sample.into(),
            self.off_cpu_mean_ns,
            self.allocations_per_sample.into(),
        ]
    }
}

impl Default for Pace {
    /// Everything; nothing is told of time off CPU.
    fn default() -> Pace {
        Pace {
            ticks_per_sample: 1,
            off_cpu_mean_ns: 0,
            allocations_per_sample: 1,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kernel_gets_what_it_can_work_with() {
        let pace = Pace {
            ticks_per_sample: 0,
            off_cpu_mean_ns: u64::MAX,
            allocations_per_sample: 0,
        };
        let bounded = pace.within_bounds().to_kernel();
        assert_eq!(bounded, [1, LONGEST_OFF_CPU_MEAN_NS, 1]);
        let pace = Pace::of(&Options::default());
        assert_eq!(pace.to_kernel(), [1, 0, 1]);
    }
}
