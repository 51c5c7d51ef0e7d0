//! What the events of Linux's perf are called, and the profile types of their periods.

use candela_model::ProfileType;

use crate::naming;

/// The type of the values of an event by its name, such as `cycles:u` or `cpu-clock`: each sample
/// stands for its period, which is in nanoseconds for clocks and a count for all else.
pub(crate) fn profile_type(event: &str) -> ProfileType {
    match without_modifiers(event) {
        "cpu-clock" | "task-clock" => {
            let time = ("cpu", "nanoseconds");
            naming::profile_type(time, time, None)
        }
        "page-faults" | "faults" => {
            let faults = ("faults", "count");
            naming::profile_type(faults, faults, None)
        }
        name => counted(name, "count"),
    }
}

/// The type of another event whose name without modifiers was taken already: `task-clock` beside
/// `cpu-clock`, `cycles:k` beside `cycles:u`.
pub(crate) fn second_profile_type(event: &str) -> ProfileType {
    let is_clock = profile_type(event).sample_unit == "nanoseconds";
    counted(event, if is_clock { "nanoseconds" } else { "count" })
}

/// Whether the event counts nothing: perf opens it for the records of processes and their mappings.
pub(crate) fn is_dummy(event: &str) -> bool {
    without_modifiers(event) == "dummy"
}

fn counted(event: &str, unit: &str) -> ProfileType {
    naming::typed(event, (event, unit), (event, unit))
}

/// A name without the letters that say where an event counts and how exactly: `cycles:ppu`. What
/// else stands behind a colon is a part of the name: `sched:sched_switch`.
fn without_modifiers(event: &str) -> &str {
    const MODIFIERS: &str = "ukhIGHpPSDWeb";
    match event.rsplit_once(':') {
        Some((name, modifiers))
            if !name.is_empty() && modifiers.chars().all(|letter| MODIFIERS.contains(letter)) =>
        {
            name
        }
        _ => event,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_have_their_types() {
        let cases = [
            ("cpu-clock:u", "process_cpu:cpu:nanoseconds:cpu:nanoseconds"),
            ("task-clock", "process_cpu:cpu:nanoseconds:cpu:nanoseconds"),
            ("cycles:ppp", "cycles:cycles:count:cycles:count"),
            ("page-faults", "page_faults:faults:count:faults:count"),
            (
                "sched:sched_switch",
                "sched_sched_switch:sched_sched_switch:count:sched_sched_switch:count",
            ),
            (
                "cpu_core/cycles/P",
                "cpu_core/cycles/P:cpu_core/cycles/P:count:cpu_core/cycles/P:count",
            ),
        ];
        for (event, id) in cases {
            assert_eq!(profile_type(event).to_string(), id);
        }
        assert_eq!(
            second_profile_type("cycles:k").to_string(),
            "cycles_k:cycles_k:count:cycles_k:count"
        );
        assert!(is_dummy("dummy:HG") && !is_dummy("dummy:x"));
    }
}
