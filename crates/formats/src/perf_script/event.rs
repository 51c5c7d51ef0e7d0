//! What the events of perf count.

use candela_model::ProfileType;

use crate::naming;

/// The letters behind a colon that say what of an event is counted: user code, the kernel …
const MODIFIERS: &[u8] = b"ukhGHpPSDIWebR";

/// The profile type of an event. With a period a sample counts for so many of what the event
/// counts, without one only samples are counted. Clocks count nanoseconds.
pub(crate) fn event_type(event: &str, has_period: bool) -> ProfileType {
    let event = without_modifiers(event);
    let cpu = ("cpu", "nanoseconds");
    let samples = ("samples", "count");
    match (clock_or_event(event), has_period) {
        ("cpu-clock", true) => naming::profile_type(cpu, cpu, None),
        ("cpu-clock", false) => naming::profile_type(samples, cpu, None),
        ("page-faults", _) => {
            let faults = ("faults", "count");
            naming::profile_type(faults, faults, None)
        }
        ("offcpu-time", true) => naming::profile_type(("off_cpu", "nanoseconds"), ("", ""), None),
        ("", _) => naming::typed("samples", samples, ("", "")),
        (_, true) => naming::typed(event, (event, "count"), (event, "count")),
        // Tracepoints have a period of 1 that perf leaves out.
        (_, false) if event.contains(':') => event_type(event, true),
        (_, false) => naming::typed(event, samples, (event, "count")),
    }
}

/// The event that is written for a type, which reads back as this type if the type has an event.
pub(crate) fn event_of(profile_type: &ProfileType) -> String {
    let name = &profile_type.name;
    let sample_type = &profile_type.sample_type;
    let event = match (name.as_str(), sample_type.as_str()) {
        ("process_cpu", "cpu") => "cpu-clock".to_owned(),
        ("page_faults", "faults") => "page-faults".to_owned(),
        ("off_cpu", "off_cpu") => "offcpu-time".to_owned(),
        (name, sample_type) if name == sample_type => name.to_owned(),
        (name, sample_type) => format!("{name}:{sample_type}"),
    };
    event.replace(|c: char| c.is_whitespace() || c.is_control(), "_")
}

/// The type of an event that counts the same as one before, under its own name: `task-clock` beside
/// `cpu-clock`, `cycles:k` beside `cycles:u`.
pub(crate) fn second_event_type(event: &str, has_period: bool) -> ProfileType {
    let first = event_type(event, has_period);
    let sample_type = match has_period {
        true => event,
        false => &first.sample_type,
    };
    let sample = (sample_type, first.sample_unit.as_str());
    naming::typed(event, sample, (event, &first.period_unit))
}

/// Without `:u` and the like. What is behind the colon of a tracepoint has other letters, too.
pub(crate) fn without_modifiers(event: &str) -> &str {
    match event.rsplit_once(':') {
        Some((name, modifiers))
            if !name.is_empty() && modifiers.bytes().all(|byte| MODIFIERS.contains(&byte)) =>
        {
            name
        }
        _ => event,
    }
}

/// One name for the events of one meaning.
fn clock_or_event(event: &str) -> &str {
    let name = event.split('/').next().unwrap_or(event);
    match name {
        "cpu-clock" | "cpu_clock" | "task-clock" | "task_clock" => "cpu-clock",
        "page-faults" | "faults" => "page-faults",
        _ => event,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_have_the_types_of_the_field() {
        let cases = [
            (
                "cpu-clock:uhH",
                true,
                "process_cpu:cpu:nanoseconds:cpu:nanoseconds",
            ),
            (
                "task-clock:ppp",
                true,
                "process_cpu:cpu:nanoseconds:cpu:nanoseconds",
            ),
            (
                "cpu-clock",
                false,
                "process_cpu:samples:count:cpu:nanoseconds",
            ),
            (
                "cpu-clock/call-graph=no/",
                true,
                "process_cpu:cpu:nanoseconds:cpu:nanoseconds",
            ),
            ("cycles:uppp", true, "cycles:cycles:count:cycles:count"),
            ("cycles", false, "cycles:samples:count:cycles:count"),
            (
                "cpu/cycles/u",
                true,
                "cpu/cycles/u:cpu/cycles/u:count:cpu/cycles/u:count",
            ),
            (
                "page-faults:u",
                true,
                "page_faults:faults:count:faults:count",
            ),
            (
                "offcpu-time",
                true,
                "off_cpu:off_cpu:nanoseconds:off_cpu:nanoseconds",
            ),
            (
                "sched:sched_switch",
                false,
                "sched_sched_switch:sched_sched_switch:count:sched_sched_switch:count",
            ),
            (
                "sched:sched_switch",
                true,
                "sched_sched_switch:sched_sched_switch:count:sched_sched_switch:count",
            ),
            ("", true, "samples:samples:count::"),
        ];
        for (event, has_period, expected) in cases {
            assert_eq!(
                event_type(event, has_period).to_string(),
                expected,
                "{event}"
            );
        }
    }

    #[test]
    fn a_second_event_of_a_kind_has_its_own_type() {
        let cases = [
            (
                "task-clock",
                true,
                "task-clock:task-clock:nanoseconds:task-clock:nanoseconds",
            ),
            (
                "task-clock",
                false,
                "task-clock:samples:count:task-clock:nanoseconds",
            ),
            ("cycles:k", true, "cycles_k:cycles_k:count:cycles_k:count"),
            ("cycles:k", false, "cycles_k:samples:count:cycles_k:count"),
        ];
        for (event, has_period, expected) in cases {
            assert_eq!(second_event_type(event, has_period).to_string(), expected);
        }
    }

    #[test]
    fn types_of_events_read_back() {
        for event in [
            "cpu-clock",
            "cycles",
            "page-faults",
            "offcpu-time",
            "cpu/cycles/",
        ] {
            let profile_type = event_type(event, true);
            assert_eq!(event_of(&profile_type), event);
        }
        let memory = ProfileType::new("memory", "alloc space", "bytes", "space", "bytes");
        assert_eq!(event_of(&memory), "memory:alloc_space");
    }
}
