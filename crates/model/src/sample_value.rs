//! What one sample of the profiler stands for.

use crate::profile_type::ProfileType;

const COUNT: &str = "count";
const BYTES: &str = "bytes";

/// Of these a sample stands for as many as there were since the one before it: with one stack for 256 page faults, to
/// count each fault as a sample would make every difference significant.
const COUNTED_SINCE_THE_LAST: [&str; 5] =
    ["faults", "switches", "contentions", "waits", "requests"];

impl ProfileType {
    /// The value of one sample, where it is known: of CPU time the period, of what is counted one, or
    /// the period of the counter. Times that were measured and bytes weigh what they weigh, each
    /// sample differently, as does what is counted since the last sample, and objects are counted by
    /// sampling their bytes: `None`.
    #[must_use]
    pub fn value_of_sample(&self, period: i64) -> Option<i64> {
        if *self == Self::on_cpu() {
            return (period > 0).then_some(period);
        }
        let is_weighted = COUNTED_SINCE_THE_LAST.contains(&self.sample_type.as_str());
        if self.sample_unit != COUNT || self.period_unit == BYTES || is_weighted {
            return None;
        }
        let is_of_period = self.period_unit == COUNT && self.period_type == self.sample_type;
        Some(if is_of_period { period.max(1) } else { 1 })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn samples_are_told_by_clocks_and_counters() {
        let cases = [
            ("process_cpu:cpu:nanoseconds:cpu:nanoseconds", 10, Some(10)),
            ("process_cpu:cpu:nanoseconds:cpu:nanoseconds", 0, None),
            ("process_cpu:samples:count:cpu:nanoseconds", 10, Some(1)),
            ("event:cycles:count:cycles:count", 1000, Some(1000)),
            ("goroutine:goroutine:count:goroutine:count", 0, Some(1)),
            ("mutex:contentions:count:contentions:count", 1, None),
            ("page_faults:faults:count:faults:count", 1, None),
            ("off_cpu:switches:count:off_cpu:nanoseconds", 7, None),
            ("off_cpu:off_cpu:nanoseconds:off_cpu:nanoseconds", 7, None),
            ("memory:alloc_space:bytes:space:bytes", 512, None),
            ("memory:alloc_objects:count:space:bytes", 512, None),
        ];
        for (id, period, expected) in cases {
            let profile_type: ProfileType = id.parse().expect("five parts");
            assert_eq!(profile_type.value_of_sample(period), expected, "{id}");
        }
    }
}
