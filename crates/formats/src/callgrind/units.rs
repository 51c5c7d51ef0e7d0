//! What the name of an event says of its unit: `Time_(10ns)`, `cpu(ms)`, `Memory_(bytes)`.

use candela_model::ProfileType;

use crate::naming;

/// What the values of an event are.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Meaning {
    pub(crate) profile_type: ProfileType,
    /// What a value is multiplied by.
    pub(crate) factor: i64,
    /// Whether values were counted. Those of a unit in parentheses were measured and rounded, so
    /// that small differences between them mean nothing.
    pub(crate) is_exact: bool,
}

/// pprof counts in powers of two.
const UNITS: [(&str, &str, i64); 14] = [
    ("ns", "nanoseconds", 1),
    ("nanoseconds", "nanoseconds", 1),
    ("us", "nanoseconds", 1_000),
    ("µs", "nanoseconds", 1_000),
    ("ms", "nanoseconds", 1_000_000),
    ("s", "nanoseconds", 1_000_000_000),
    ("mins", "nanoseconds", 60_000_000_000),
    ("hrs", "nanoseconds", 3_600_000_000_000),
    ("B", "bytes", 1),
    ("bytes", "bytes", 1),
    ("kB", "bytes", 1 << 10),
    ("MB", "bytes", 1 << 20),
    ("GB", "bytes", 1 << 30),
    ("count", "count", 1),
];

/// The meaning of an event called `name`; `long_name` is what an `event:` line calls it.
pub(crate) fn meaning(name: &str, long_name: Option<&str>, given_name: Option<&str>) -> Meaning {
    // Our own files name the type, as the short name has no place for it.
    if let Some(profile_type) = long_name.and_then(|text| text.parse::<ProfileType>().ok()) {
        return Meaning {
            profile_type,
            factor: 1,
            is_exact: true,
        };
    }
    let parts = name
        .strip_suffix(')')
        .and_then(|rest| rest.rsplit_once('('));
    let known = parts.and_then(|(base, unit)| {
        let digits = unit.bytes().take_while(u8::is_ascii_digit).count();
        let (number, unit) = unit.split_at(digits);
        let multiple: i64 = if number.is_empty() {
            1
        } else {
            number.parse().ok()?
        };
        let &(_, unit, factor) = UNITS.iter().find(|known| known.0 == unit)?;
        let base = base.trim_end_matches('_');
        Some((base, unit, factor.checked_mul(multiple)?)).filter(|_| multiple > 0)
    });
    let (base, unit, factor) = known.unwrap_or((name, "count", 1));
    Meaning {
        profile_type: naming::profile_type((base, unit), ("", ""), given_name),
        factor,
        is_exact: known.is_none(),
    }
}

/// The name with its unit of an event of Xdebug that has none, as that of older versions: microseconds
/// up to version 2, hundredths of them from 3 on.
pub(crate) fn xdebug_name(creator: &str, event: &str) -> Option<&'static str> {
    let version = creator.strip_prefix("xdebug ")?;
    let major = version.split('.').next()?;
    let major: u32 = major.parse().ok()?;
    match event {
        "Time" if major <= 2 => Some("Time_(µs)"),
        "Time" => Some("Time_(10ns)"),
        "Memory" => Some("Memory_(bytes)"),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn units_stand_in_parentheses() {
        let cases = [
            ("Ir", "Ir:Ir:count::", 1),
            ("Time_(10ns)", "Time:Time:nanoseconds::", 10),
            ("Memory_(bytes)", "Memory:Memory:bytes::", 1),
            (
                "cpu(ms)",
                "process_cpu:cpu:nanoseconds:cpu:nanoseconds",
                1_000_000,
            ),
            (
                "inuse_space(MB)",
                "memory:inuse_space:bytes:space:bytes",
                1 << 20,
            ),
            ("odd(cards)", "odd(cards):odd(cards):count::", 1),
            ("odd(0ns)", "odd(0ns):odd(0ns):count::", 1),
        ];
        for (name, id, factor) in cases {
            let found = meaning(name, None, None);
            assert_eq!(found.profile_type.to_string(), id);
            assert_eq!(found.factor, factor, "{name}");
        }
    }

    #[test]
    fn the_version_of_xdebug_tells_the_unit_of_bare_names() {
        let cases = [
            ("xdebug 2.9.8", "Time", Some("Time_(µs)")),
            ("xdebug 2.2.0-dev", "Memory", Some("Memory_(bytes)")),
            ("xdebug 3.0.4 (PHP 8.0.3)", "Time", Some("Time_(10ns)")),
            ("xdebug 3.0.4 (PHP 8.0.3)", "Time_(10ns)", None),
            ("xdebug", "Time", None),
            ("filo 2.0", "Time", None),
        ];
        for (creator, event, expected) in cases {
            assert_eq!(xdebug_name(creator, event), expected, "{creator} {event}");
        }
    }

    #[test]
    fn a_long_name_may_be_a_type() {
        let id = "block:delay:nanoseconds:contentions:count";
        let found = meaning("delay_(ns)", Some(id), None);
        assert_eq!(found.profile_type.to_string(), id);
        let found = meaning("Ir", Some("Instruction Fetches"), None);
        assert_eq!(found.profile_type.to_string(), "Ir:Ir:count::");
    }
}
