//! Counters of the kernel and the CPU by the names of `perf list`, as `perf_event_open(2)` numbers them.

use libbpf_rs::libbpf_sys;
use std::borrow::Cow;

const HARDWARE: u32 = libbpf_sys::PERF_TYPE_HARDWARE;
const SOFTWARE: u32 = libbpf_sys::PERF_TYPE_SOFTWARE;
const CACHE: u32 = libbpf_sys::PERF_TYPE_HW_CACHE;
const RAW: u32 = libbpf_sys::PERF_TYPE_RAW;

/// Clocks, whose ticks are nanoseconds.
const CPU_CLOCK: u64 = 0;
const TASK_CLOCK: u64 = 1;

/// Name, another name or none, type, number.
const COUNTERS: [(&str, &str, u32, u64); 20] = [
    ("cycles", "cpu-cycles", HARDWARE, 0),
    ("instructions", "", HARDWARE, 1),
    ("cache-references", "", HARDWARE, 2),
    ("cache-misses", "", HARDWARE, 3),
    ("branches", "branch-instructions", HARDWARE, 4),
    ("branch-misses", "", HARDWARE, 5),
    ("bus-cycles", "", HARDWARE, 6),
    (
        "stalled-cycles-frontend",
        "idle-cycles-frontend",
        HARDWARE,
        7,
    ),
    ("stalled-cycles-backend", "idle-cycles-backend", HARDWARE, 8),
    ("ref-cycles", "", HARDWARE, 9),
    ("cpu-clock", "", SOFTWARE, CPU_CLOCK),
    ("task-clock", "", SOFTWARE, TASK_CLOCK),
    ("page-faults", "faults", SOFTWARE, 2),
    ("context-switches", "cs", SOFTWARE, 3),
    ("cpu-migrations", "migrations", SOFTWARE, 4),
    ("minor-faults", "", SOFTWARE, 5),
    ("major-faults", "", SOFTWARE, 6),
    ("alignment-faults", "", SOFTWARE, 7),
    ("emulation-faults", "", SOFTWARE, 8),
    ("cgroup-switches", "", SOFTWARE, 11),
];

/// Caches, and which of [`CACHE_OPERATIONS`] they have, as bits.
const CACHES: [(&str, u64, u8); 7] = [
    ("L1-dcache", 0, 0b111),
    ("L1-icache", 1, 0b101),
    ("LLC", 2, 0b111),
    ("dTLB", 3, 0b111),
    ("iTLB", 4, 0b001),
    ("branch", 5, 0b001),
    ("node", 6, 0b111),
];

/// Accesses and misses by what they are for.
const CACHE_OPERATIONS: [[&str; 2]; 3] = [
    ["-loads", "-load-misses"],
    ["-stores", "-store-misses"],
    ["-prefetches", "-prefetch-misses"],
];

/// What error messages say of the names that [`names`] leaves out.
pub(crate) const OTHER_NAMES: &str =
    "LLC-load-misses and the like of L1-dcache, L1-icache, dTLB, iTLB, branch and node, rHEX";

/// A counter of `perf_event_open(2)`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PerfCounter {
    /// As `perf list` has it; of several names always the same.
    pub name: Cow<'static, str>,
    /// `perf_event_attr.type`.
    pub event_type: u32,
    /// `perf_event_attr.config`.
    pub config: u64,
    /// Where it counts.
    pub space: CounterSpace,
}

/// Where a counter counts: perf's modifiers `:u` and `:k`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum CounterSpace {
    /// In programs and in the kernel.
    #[default]
    Everywhere,
    /// In programs alone.
    Programs,
    /// In the kernel alone.
    Kernel,
}

// === impl CounterSpace ===

impl CounterSpace {
    /// By perf's letters; none for others of its modifiers.
    pub(crate) fn of_modifiers(letters: &str) -> Option<CounterSpace> {
        let known = !letters.is_empty() && letters.bytes().all(|letter| b"uk".contains(&letter));
        let has = |letter: char| letters.contains(letter);
        known.then(|| match (has('u'), has('k')) {
            (true, false) => CounterSpace::Programs,
            (false, true) => CounterSpace::Kernel,
            _ => CounterSpace::Everywhere,
        })
    }

    /// The letter behind the name of a counter, where there is one.
    pub(crate) fn modifier(self) -> Option<char> {
        match self {
            CounterSpace::Everywhere => None,
            CounterSpace::Programs => Some('u'),
            CounterSpace::Kernel => Some('k'),
        }
    }
}

// === impl PerfCounter ===

impl PerfCounter {
    /// By one of its names, or `rHEX`, which is what the CPU itself calls it.
    pub(crate) fn find(text: &str) -> Option<PerfCounter> {
        // Most have no other name.
        let is_called =
            |it: &&(&str, &str, u32, u64)| !text.is_empty() && [it.0, it.1].contains(&text);
        if let Some(&(name, _, event_type, config)) = COUNTERS.iter().find(is_called) {
            return Some(PerfCounter {
                name: Cow::Borrowed(name),
                event_type,
                config,
                space: CounterSpace::Everywhere,
            });
        }
        let of_cache = cache_config(text).map(|config| (CACHE, config));
        let (event_type, config) = of_cache.or_else(|| Some((RAW, raw_config(text)?)))?;
        Some(PerfCounter {
            name: Cow::Owned(text.to_owned()),
            event_type,
            config,
            space: CounterSpace::Everywhere,
        })
    }

    /// Those of the CPU that have a name of their own.
    pub(crate) fn hardware() -> impl Iterator<Item = PerfCounter> {
        let hardware = COUNTERS.into_iter().filter(|it| it.2 == HARDWARE);
        hardware.map(|(name, _, event_type, config)| PerfCounter {
            name: Cow::Borrowed(name),
            event_type,
            config,
            space: CounterSpace::Everywhere,
        })
    }

    /// Whether there are so many that the kernel chooses how many make a sample.
    pub(crate) fn is_frequent(&self) -> bool {
        self.event_type != SOFTWARE || matches!(self.config, CPU_CLOCK | TASK_CLOCK)
    }
}

/// The names of those that have one of their own.
pub(crate) fn names() -> String {
    COUNTERS.map(|(name, ..)| name).join(", ")
}

/// `LLC-load-misses`: cache, operation and result are a byte each.
fn cache_config(text: &str) -> Option<u64> {
    let (cache, number, operations) = CACHES
        .iter()
        .find(|(cache, ..)| text.starts_with(&format!("{cache}-")))?;
    let rest = &text[cache.len()..];
    let mut named = (0_u64..).zip(CACHE_OPERATIONS);
    named.find_map(|(operation, names)| {
        let result = names.iter().position(|name| *name == rest)? as u64;
        let is_there = operations >> operation & 1 == 1;
        is_there.then_some(number | operation << 8 | result << 16)
    })
}

/// `r00c0`: what the manual of the CPU has, in hexadecimal digits.
fn raw_config(text: &str) -> Option<u64> {
    let digits = text.strip_prefix('r')?;
    let is_number = digits.bytes().all(|byte| byte.is_ascii_hexdigit());
    // A sign is no digit, though numbers may have one.
    let digits = is_number.then_some(digits)?;
    u64::from_str_radix(digits, 16).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn numbers(text: &str) -> Option<(u32, u64)> {
        PerfCounter::find(text).map(|counter| (counter.event_type, counter.config))
    }

    #[test]
    fn counters_have_the_numbers_of_the_kernel() {
        // Those of perf itself: `perf stat -vv -e NAME true` prints type and config.
        for (name, expected) in [
            ("cycles", (0, 0)),
            ("ref-cycles", (0, 9)),
            ("cpu-clock", (1, 0)),
            ("faults", (1, 2)),
            ("cs", (1, 3)),
            ("emulation-faults", (1, 8)),
            ("L1-dcache-loads", (3, 0)),
            ("LLC-load-misses", (3, 0x1_0002)),
            ("dTLB-store-misses", (3, 0x1_0103)),
            ("node-prefetches", (3, 0x206)),
            ("r00c0", (4, 0xc0)),
            ("r1A8", (4, 0x1a8)),
        ] {
            assert_eq!(numbers(name), Some(expected), "{name}");
        }
        for name in [
            "",
            "r",
            "runq",
            "r+1",
            "r11223344556677889",
            "LLC",
            "LLC-loads-misses",
            "iTLB-stores",
            "L1-icache-store-misses",
        ] {
            assert_eq!(numbers(name), None, "{name}");
        }
    }

    #[test]
    fn two_names_of_a_counter_are_one_counter() {
        assert_eq!(
            PerfCounter::find("cs"),
            PerfCounter::find("context-switches")
        );
        for (name, other, ..) in COUNTERS {
            let counter = PerfCounter::find(name).expect("it is a name");
            assert_eq!(counter.name, name);
            if !other.is_empty() {
                assert_eq!(PerfCounter::find(other), Some(counter));
            }
        }
    }

    #[test]
    fn modifiers_say_where_it_counts() {
        for (letters, space) in [
            ("u", Some(CounterSpace::Programs)),
            ("k", Some(CounterSpace::Kernel)),
            ("uk", Some(CounterSpace::Everywhere)),
            ("ku", Some(CounterSpace::Everywhere)),
            ("", None),
            ("p", None),
            ("upp", None),
        ] {
            assert_eq!(CounterSpace::of_modifiers(letters), space, "{letters}");
        }
    }

    #[test]
    fn of_what_comes_all_the_time_the_kernel_chooses() {
        let is_frequent = |name| PerfCounter::find(name).is_some_and(|it| it.is_frequent());
        assert!(["cycles", "cpu-clock", "LLC-loads", "r00c0"].map(is_frequent) == [true; 4]);
        assert!(["faults", "cs", "cgroup-switches"].map(is_frequent) == [false; 3]);
    }
}
