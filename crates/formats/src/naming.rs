//! Profile types from what formats write down: a sample type and a period type, without the name
//! that Pyroscope and the contract put in front.

use candela_model::ProfileType;

/// A kind of value with its unit, as pprof and OTLP have it.
pub(crate) type TypeAndUnit<'a> = (&'a str, &'a str);

/// The profile type of a value column. `given_name` decides where the types alone do not.
pub(crate) fn profile_type(
    sample: TypeAndUnit<'_>,
    period: TypeAndUnit<'_>,
    given_name: Option<&str>,
) -> ProfileType {
    let known = known_name(sample.0, period.0);
    let name = match known {
        // Go writes `block` and `mutex` with the same types; only the caller can know.
        Some("mutex") => given_name.unwrap_or("mutex"),
        Some(name) => name,
        None => given_name.unwrap_or(sample.0),
    };
    let period = if period.0.is_empty() && known.is_some() {
        usual_period(name, sample)
    } else {
        period
    };
    typed(name, sample, period)
}

/// What samplers that ask no clock of the CPU measure: whether a thread runs or waits, they see it.
/// The caller may know better (`profile_name`).
pub(crate) fn sampled_type(given_name: Option<&str>, is_time: bool) -> ProfileType {
    let kind = match given_name {
        Some("cpu" | "process_cpu") => "cpu",
        _ => "wall",
    };
    let period = (kind, "nanoseconds");
    let sample = if is_time {
        period
    } else {
        ("samples", "count")
    };
    profile_type(sample, period, given_name)
}

/// A profile type from its parts, without the separator inside a part.
pub(crate) fn typed(name: &str, sample: TypeAndUnit<'_>, period: TypeAndUnit<'_>) -> ProfileType {
    let sample_type = if sample.0.is_empty() {
        "unknown"
    } else {
        sample.0
    };
    let name = if name.is_empty() { sample_type } else { name };
    let mut made = ProfileType::new(name, sample_type, sample.1, period.0, period.1);
    let parts = [
        &mut made.name,
        &mut made.sample_type,
        &mut made.sample_unit,
        &mut made.period_type,
        &mut made.period_unit,
    ];
    for part in parts {
        if part.contains(':') {
            *part = part.replace(':', "_");
        }
    }
    made
}

/// Whether a sample type, with the period type it stands beside, tells the name of its profile type.
#[must_use]
pub fn is_known_type(sample_type: &str, period_type: &str) -> bool {
    known_name(sample_type, period_type).is_some()
}

/// The name that everybody uses for these types (`pyroscope-api` and the contract's table).
fn known_name(sample: &str, period: &str) -> Option<&'static str> {
    let name = match (sample, period) {
        ("cpu", _) | ("samples" | "sample", "cpu") => "process_cpu",
        ("wall", _) | ("samples" | "sample", "wall") => "wall",
        ("off_cpu", _) | (_, "off_cpu") => "off_cpu",
        ("goroutine" | "goroutines", _) => "goroutine",
        ("faults", _) => "page_faults",
        ("growth", _) => "memory_growth",
        (_, "runq") => "runq",
        (_, "requests") => "block_io",
        ("contentions" | "delay", "block") => "block",
        ("contentions" | "delay", _) => "mutex",
        _ if sample.starts_with("alloc_") || sample.starts_with("inuse_") => "memory",
        _ => return None,
    };
    Some(name)
}

/// The period type for a format or an agent that leaves it out.
fn usual_period<'a>(name: &str, sample: TypeAndUnit<'a>) -> TypeAndUnit<'a> {
    match name {
        "process_cpu" => ("cpu", "nanoseconds"),
        "memory" => ("space", "bytes"),
        "mutex" | "block" => ("contentions", "count"),
        _ => sample,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn types_get_their_usual_names() {
        let cases = [
            (
                ("cpu", "nanoseconds"),
                ("cpu", "nanoseconds"),
                "process_cpu:cpu:nanoseconds:cpu:nanoseconds",
            ),
            (
                ("samples", "count"),
                ("cpu", "nanoseconds"),
                "process_cpu:samples:count:cpu:nanoseconds",
            ),
            (
                ("inuse_space", "bytes"),
                ("space", "bytes"),
                "memory:inuse_space:bytes:space:bytes",
            ),
            (
                ("alloc_objects", "count"),
                ("", ""),
                "memory:alloc_objects:count:space:bytes",
            ),
            (
                ("delay", "nanoseconds"),
                ("contentions", "count"),
                "mutex:delay:nanoseconds:contentions:count",
            ),
            (
                ("off_cpu", "nanoseconds"),
                ("", ""),
                "off_cpu:off_cpu:nanoseconds:off_cpu:nanoseconds",
            ),
            (
                ("goroutine", "count"),
                ("goroutine", "count"),
                "goroutine:goroutine:count:goroutine:count",
            ),
            (
                ("faults", "count"),
                ("faults", "count"),
                "page_faults:faults:count:faults:count",
            ),
            (("cobol", "cards"), ("", ""), "cobol:cobol:cards::"),
            (
                ("sched:wake", "count"),
                ("", ""),
                "sched_wake:sched_wake:count::",
            ),
            (("", ""), ("", ""), "unknown:unknown:::"),
        ];
        for (sample, period, id) in cases {
            assert_eq!(profile_type(sample, period, None).to_string(), id);
        }
    }

    #[test]
    fn the_given_name_decides_what_types_do_not() {
        let contentions = (("contentions", "count"), ("contentions", "count"));
        let block = profile_type(contentions.0, contentions.1, Some("block"));
        assert_eq!(block.name, "block");
        let cpu = profile_type(
            ("cpu", "nanoseconds"),
            ("cpu", "nanoseconds"),
            Some("block"),
        );
        assert_eq!(cpu.name, "process_cpu");
        assert_eq!(
            profile_type(("x", "y"), ("", ""), Some("mine")).name,
            "mine"
        );
    }
}
