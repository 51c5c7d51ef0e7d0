//! Which profile type an OTLP profile is.

use candela_model::ProfileType;

use crate::naming;
use crate::naming::TypeAndUnit;

/// A profile type and what its values are multiplied with to be of it.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct ChosenType {
    pub(crate) profile_type: ProfileType,
    pub(crate) factor: i64,
}

/// What a profile says about its values.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Described<'a> {
    pub(crate) sample: TypeAndUnit<'a>,
    pub(crate) period_type: TypeAndUnit<'a>,
    pub(crate) period: i64,
    /// `candela.profile.name`
    pub(crate) own_name: Option<&'a str>,
    /// A profile of CPU nanoseconds stands beside this one, as after a conversion from pprof.
    pub(crate) has_cpu_time: bool,
}

/// The profile type; `fallback_name` where types do not tell the name.
pub(crate) fn choose(described: &Described<'_>, fallback_name: Option<&str>) -> ChosenType {
    let Described {
        sample,
        period_type,
        ..
    } = *described;
    if let Some(name) = described.own_name {
        return plain(naming::typed(name, sample, period_type));
    }
    let cpu_time = ("cpu", "nanoseconds");
    let counts_cpu = matches!(sample.0, "samples" | "sample") && period_type == cpu_time;
    // Agents count samples; the contract has one type for CPU, which is time. With the time itself
    // in the same request the count would double it.
    if counts_cpu && described.period > 0 && !described.has_cpu_time {
        return ChosenType {
            profile_type: naming::typed("process_cpu", cpu_time, cpu_time),
            factor: described.period,
        };
    }
    let off_cpu_time = ("off_cpu", "nanoseconds");
    let is_off_cpu = sample == ("events", "nanoseconds") && matches!(period_type.0, "" | "off_cpu");
    if is_off_cpu {
        return plain(naming::typed("off_cpu", off_cpu_time, off_cpu_time));
    }
    plain(naming::profile_type(sample, period_type, fallback_name))
}

fn plain(profile_type: ProfileType) -> ChosenType {
    ChosenType {
        profile_type,
        factor: 1,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SAMPLES: Described<'static> = Described {
        sample: ("samples", "count"),
        period_type: ("cpu", "nanoseconds"),
        period: 52_631_578,
        own_name: None,
        has_cpu_time: false,
    };

    #[test]
    fn counted_cpu_samples_become_time() {
        let chosen = choose(&SAMPLES, None);
        let id = "process_cpu:cpu:nanoseconds:cpu:nanoseconds";
        assert_eq!(chosen.profile_type.to_string(), id);
        assert_eq!(chosen.factor, 52_631_578);
    }

    #[test]
    fn counts_stay_counts_where_time_is_there_or_the_name_is_ours() {
        let beside = Described {
            has_cpu_time: true,
            ..SAMPLES
        };
        let own = Described {
            own_name: Some("process_cpu"),
            ..SAMPLES
        };
        for described in [beside, own] {
            let chosen = choose(&described, None);
            let id = "process_cpu:samples:count:cpu:nanoseconds";
            assert_eq!(
                (chosen.profile_type.to_string().as_str(), chosen.factor),
                (id, 1)
            );
        }
    }

    #[test]
    fn off_cpu_has_one_type() {
        for sample in [("events", "nanoseconds"), ("off_cpu", "nanoseconds")] {
            let described = Described {
                sample,
                period_type: ("", ""),
                period: 0,
                ..SAMPLES
            };
            let id = choose(&described, None).profile_type.to_string();
            assert_eq!(id, "off_cpu:off_cpu:nanoseconds:off_cpu:nanoseconds");
        }
    }
}
