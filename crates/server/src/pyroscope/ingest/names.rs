//! What the last part of an application's name says of its profiles.
//!
//! Formats without types (folded text, trees) leave it to the name: `app.cpu`, `app.inuse_space`. One that tells its unit
//! leaves it less: seconds are seconds, not a number of samples.
//! Names of services have dots too, so a last part that is no type belongs to the service, and the
//! profile is of cpu. Upstream refuses such a push.

use candela_model::ProfileSeries;
use candela_model::ProfileType;

/// The type of a pushed profile, and by what its values are multiplied.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct NamedType {
    pub(crate) service: String,
    /// Of values without a unit.
    profile_type: ProfileType,
    /// Nanoseconds of a sample, for types of time.
    factor: i64,
    /// Of values with the unit that the type has.
    measured: ProfileType,
}

/// Samples of a second when a client does not say.
pub(crate) const DEFAULT_RATE: u32 = 100;

/// The unit of what is only counted, and of what has none.
const COUNT: &str = "count";

const NANOSECONDS_PER_SECOND: i64 = 1_000_000_000;

impl NamedType {
    /// `rate` are the samples of a second of cpu time; with 0 the values stay numbers of samples,
    /// and more than one in a nanosecond are no rate.
    pub(crate) fn of(app: &str, rate: u32) -> Self {
        let suffixed = app
            .rsplit_once('.')
            .and_then(|(service, suffix)| Some((service, parts_of_suffix(suffix)?)));
        let (service, parts) = suffixed.unwrap_or((app, CPU));
        let [name, sample_type, unit, period_type, period_unit] = parts;
        let measured = ProfileType::new(name, sample_type, unit, period_type, period_unit);
        let is_time = matches!(name, "process_cpu" | "wall");
        let (unit, sample_type, factor) = match (is_time, rate) {
            (true, 0) => ("count", "samples", 1),
            (true, rate) => (unit, sample_type, interval_ns(rate)),
            (false, _) => (unit, sample_type, 1),
        };
        Self {
            service: service.to_owned(),
            profile_type: ProfileType::new(name, sample_type, unit, period_type, period_unit),
            factor,
            measured,
        }
    }

    /// Gives a series the type of the name, as far as it does not say itself what it is.
    pub(crate) fn complete(&self, series: &mut ProfileSeries) {
        let said = &series.profile_type;
        if said.sample_unit == self.measured.sample_unit && self.measured.sample_unit != COUNT {
            let named = self.measured.clone();
            let said = std::mem::replace(&mut series.profile_type, named);
            if series.profile_type.period_type.is_empty() {
                series.profile_type.period_type = said.period_type;
                series.profile_type.period_unit = said.period_unit;
            }
            return;
        }
        if said.sample_unit != COUNT {
            return;
        }
        series.profile_type = self.profile_type.clone();
        if self.factor > 1 {
            series.period = self.factor;
        }
        for sample in &mut series.samples {
            sample.value = sample.value.saturating_mul(self.factor);
        }
    }
}

/// Nanoseconds between samples; never 0, which would lose all values.
pub(super) fn interval_ns(rate: u32) -> i64 {
    let usual = NANOSECONDS_PER_SECOND / i64::from(DEFAULT_RATE);
    let interval = NANOSECONDS_PER_SECOND.checked_div(i64::from(rate));
    interval.filter(|&interval| interval > 0).unwrap_or(usual)
}

const CPU: [&str; 5] = ["process_cpu", "cpu", "nanoseconds", "cpu", "nanoseconds"];

/// Name, sample type, unit, period type and unit (pyroscope-api 1.6).
pub(super) fn parts_of_suffix(suffix: &str) -> Option<[&'static str; 5]> {
    let known = match suffix {
        "cpu" | "itimer" => CPU,
        "wall" | "seconds" | "nanoseconds" | "microseconds" | "milliseconds" => {
            ["wall", "wall", "nanoseconds", "cpu", "nanoseconds"]
        }
        "inuse_objects" => ["memory", "inuse_objects", "count", "", ""],
        "alloc_objects" => ["memory", "alloc_objects", "count", "", ""],
        "inuse_space" => ["memory", "inuse_space", "bytes", "", ""],
        "alloc_space" => ["memory", "alloc_space", "bytes", "", ""],
        "goroutines" => ["goroutine", "goroutines", "count", "", ""],
        "mutex_count" => ["mutex", "contentions", "count", "", ""],
        "mutex_duration" => ["mutex", "delay", "nanoseconds", "", ""],
        "block_count" | "lock_count" => ["block", "contentions", "count", "", ""],
        "block_duration" | "lock_duration" => ["block", "delay", "nanoseconds", "", ""],
        "alloc_in_new_tlab_objects" => ["memory", "alloc_in_new_tlab_objects", "count", "", ""],
        "alloc_in_new_tlab_bytes" => ["memory", "alloc_in_new_tlab_bytes", "bytes", "", ""],
        "alloc_outside_tlab_objects" => ["memory", "alloc_outside_tlab_objects", "count", "", ""],
        "alloc_outside_tlab_bytes" => ["memory", "alloc_outside_tlab_bytes", "bytes", "", ""],
        "live" => ["memory", "live", "count", "", ""],
        "exceptions" => ["exceptions", "samples", "count", "", ""],
        "bytes" => ["memory", "samples", "bytes", "", ""],
        _ => return None,
    };
    Some(known)
}

#[cfg(test)]
mod tests {
    use candela_model::Labels;
    use candela_model::Sample;
    use candela_model::StackId;

    use super::*;

    #[test]
    fn a_suffix_names_the_type_and_a_service_keeps_its_dots() {
        let cases = [
            (
                "app.cpu",
                100,
                "app",
                "process_cpu:cpu:nanoseconds:cpu:nanoseconds",
                10_000_000,
            ),
            (
                "app",
                50,
                "app",
                "process_cpu:cpu:nanoseconds:cpu:nanoseconds",
                20_000_000,
            ),
            (
                "app.wall",
                1_000_000_001,
                "app",
                "wall:wall:nanoseconds:cpu:nanoseconds",
                10_000_000,
            ),
            (
                "my.service",
                100,
                "my.service",
                "process_cpu:cpu:nanoseconds:cpu:nanoseconds",
                10_000_000,
            ),
            (
                "my.service.itimer",
                0,
                "my.service",
                "process_cpu:samples:count:cpu:nanoseconds",
                1,
            ),
            (
                "app.wall",
                100,
                "app",
                "wall:wall:nanoseconds:cpu:nanoseconds",
                10_000_000,
            ),
            (
                "app.inuse_space",
                100,
                "app",
                "memory:inuse_space:bytes::",
                1,
            ),
            (
                "app.goroutines",
                100,
                "app",
                "goroutine:goroutines:count::",
                1,
            ),
            (
                "app.lock_duration",
                100,
                "app",
                "block:delay:nanoseconds::",
                1,
            ),
        ];
        for (app, rate, service, id, factor) in cases {
            let named = NamedType::of(app, rate);
            assert_eq!(named.service, service, "{app}");
            assert_eq!(named.profile_type.to_string(), id, "{app}");
            assert_eq!(named.factor, factor, "{app}");
        }
    }

    #[test]
    fn what_a_profile_says_of_itself_wins_over_its_name() {
        let cases = [
            // Seconds, as their reader gives them.
            (
                "app",
                "process_cpu:cpu:nanoseconds:cpu:nanoseconds",
                "process_cpu:cpu:nanoseconds:cpu:nanoseconds",
                3,
            ),
            // Which clock it was, seconds do not say.
            (
                "app.wall",
                "process_cpu:cpu:nanoseconds:cpu:nanoseconds",
                "wall:wall:nanoseconds:cpu:nanoseconds",
                3,
            ),
            (
                "app",
                "memory:space:bytes:space:bytes",
                "memory:space:bytes:space:bytes",
                3,
            ),
            (
                "app.alloc_space",
                "memory:space:bytes:space:bytes",
                "memory:alloc_space:bytes:space:bytes",
                3,
            ),
            (
                "app.goroutines",
                "process_cpu:cpu:nanoseconds:cpu:nanoseconds",
                "process_cpu:cpu:nanoseconds:cpu:nanoseconds",
                3,
            ),
            // No unit at all.
            (
                "app",
                "samples:samples:count:samples:count",
                "process_cpu:cpu:nanoseconds:cpu:nanoseconds",
                30_000_000,
            ),
            (
                "app.alloc_space",
                "samples:samples:count:samples:count",
                "memory:alloc_space:bytes::",
                3,
            ),
        ];
        for (app, said, wanted, total) in cases {
            let mut series = ProfileSeries::new(Labels::default(), said.parse().expect("an id"));
            series.samples.push(Sample::new(StackId(0), 3));
            NamedType::of(app, 100).complete(&mut series);
            assert_eq!(series.profile_type.to_string(), wanted, "{app} {said}");
            assert_eq!(series.total(), total, "{app} {said}");
        }
        let mut series = ProfileSeries::new(
            Labels::default(),
            "a:b:nanoseconds::".parse().expect("an id"),
        );
        NamedType::of("app", 0).complete(&mut series);
        assert_eq!(
            series.profile_type.to_string(),
            "process_cpu:cpu:nanoseconds:cpu:nanoseconds"
        );
    }
}
