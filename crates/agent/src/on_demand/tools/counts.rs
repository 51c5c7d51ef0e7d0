//! Counted samples of a tool as CPU time.

use std::time::SystemTime;
use std::time::UNIX_EPOCH;

use candela_model::Profile;
use candela_model::ProfileType;

use crate::on_demand::request::ProfileRequest;

/// When samples were taken.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Taken {
    start: SystemTime,
}

// === impl Taken ===

impl Taken {
    pub(crate) fn now() -> Self {
        Self {
            start: SystemTime::now(),
        }
    }

    /// A tool samples so many times a second and says how often it saw each stack, whatever event it
    /// took for a clock.
    pub(crate) fn cpu_time(self, mut profile: Profile, request: &ProfileRequest) -> Profile {
        let period = 1_000_000_000 / i64::from(request.sampling_frequency);
        let duration = self.start.elapsed().unwrap_or_default();
        let duration = duration.min(request.duration());
        let start = self.start.duration_since(UNIX_EPOCH).unwrap_or_default();
        let nanoseconds =
            |time: std::time::Duration| i64::try_from(time.as_nanos()).unwrap_or(i64::MAX);
        for series in &mut profile.series {
            series.profile_type =
                ProfileType::new("process_cpu", "cpu", "nanoseconds", "cpu", "nanoseconds");
            series.period = period;
            series.start_ns = nanoseconds(start);
            series.duration_ns = nanoseconds(duration);
            for sample in &mut series.samples {
                sample.value = sample.value.saturating_mul(period);
                // By a clock of the tool, which is not that of the window.
                sample.time_ns = 0;
            }
        }
        profile
    }
}
