//! What the events of Linux's perf count, by their names.

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

/// Whether the event counts nothing: perf opens it for the records of processes and their mappings.
pub(crate) fn is_dummy(event: &str) -> bool {
    without_modifiers(event) == "dummy"
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
            (
                "cpu_core/cycles/P",
                true,
                "cpu_core/cycles/P:cpu_core/cycles/P:count:cpu_core/cycles/P:count",
            ),
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
    fn dummies_have_modifiers_too() {
        assert!(is_dummy("dummy:HG") && !is_dummy("dummy:x"));
    }
}
