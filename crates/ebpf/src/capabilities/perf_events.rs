//! What this host allows of perf events: the clock that samples, records of what starts and maps, and counters.

use super::Check;
use crate::options::{Options, Target};
use crate::perf_counter::PerfCounter;
use crate::privileges::{Capability, GRANT};
use crate::{Error, TaskSampler, host, perf_event, sideband::Sideband};

/// From here up the kernel lets nobody without CAP_PERFMON look into itself.
const PARANOID: i32 = 2;

/// Slow enough that opening a counter for a moment costs nobody anything.
const TRIAL_RATE_HZ: u32 = 1;

const NO_COUNTERS_FIX: &str = "record on a machine that has counters, or let this virtual one have them \
    (QEMU: -cpu host,pmu=on); -e cpu-clock and other software counters work everywhere";

pub(super) fn checks() -> [Check; 5] {
    [
        cpu_clock(),
        sideband(),
        perf_event_paranoid(),
        own_processes(),
        counters(),
    ]
}

fn cpu_clock() -> Check {
    let opened = first_cpu().and_then(|cpu| {
        perf_event::open_cpu_clock(cpu, 1_000_000_000).map_err(|error| error.to_string())
    });
    Check {
        name: "cpu_clock",
        ok: opened.is_ok(),
        required: true,
        detail: opened
            .err()
            .unwrap_or_else(|| "perf event opens".to_owned()),
        fix: Some(GRANT),
    }
    .done()
}

fn sideband() -> Check {
    let opened =
        first_cpu().and_then(|cpu| Sideband::open(cpu, false).map_err(|error| error.to_string()));
    Check {
        name: "side_band",
        ok: opened.is_ok(),
        required: true,
        detail: opened
            .err()
            .unwrap_or_else(|| "exec and mapping records open".to_owned()),
        fix: Some(GRANT),
    }
    .done()
}

/// What is left to those who may not load BPF.
fn own_processes() -> Check {
    let paranoid = host::perf_event_paranoid();
    let level = paranoid.map_or_else(|| "not readable".to_owned(), |level| level.to_string());
    let started = TaskSampler::start(&Options {
        target: Target::Processes {
            pids: vec![std::process::id()],
            follow_forks: true,
        },
        ..Options::default()
    });
    let found = match &started {
        Ok(sampler) if sampler.sees_kernel() => "can be sampled without BPF".to_owned(),
        Ok(_) => "can be sampled without BPF, but not their time in the kernel: sudo sysctl \
                  kernel.perf_event_paranoid=1 shows that, too"
            .to_owned(),
        Err(error) => format!("cannot be sampled without BPF: {error}"),
    };
    Check {
        name: "own_processes",
        ok: started.is_ok(),
        required: false,
        detail: format!("own processes {found} (kernel.perf_event_paranoid = {level})"),
        fix: Some("sudo sysctl kernel.perf_event_paranoid=2, or 1 for the time in the kernel, too"),
    }
    .done()
}

/// The kernel's bound for those who have no capability: with CAP_PERFMON it is none.
fn perf_event_paranoid() -> Check {
    let level = host::perf_event_paranoid();
    let is_exempt = Capability::PERFMON.is_held();
    paranoid_check(level, is_exempt)
}

fn paranoid_check(level: Option<i32>, is_exempt: bool) -> Check {
    let shown = level.map_or_else(|| "not readable".to_owned(), |level| level.to_string());
    let meaning = match (level, is_exempt) {
        (_, true) => "which bounds only those without cap_perfmon, not this process",
        (None, false) => "so that perf events may be forbidden without cap_perfmon",
        (Some(..PARANOID), false) => {
            "which lets own processes be seen with their time in the kernel"
        }
        (Some(PARANOID), false) => "which hides the time in the kernel without cap_perfmon",
        (Some(_), false) => "which forbids perf events to all without cap_perfmon",
    };
    Check {
        name: "perf_event_paranoid",
        ok: is_exempt || level.is_some_and(|level| level < PARANOID),
        required: false,
        detail: format!("kernel.perf_event_paranoid = {shown}, {meaning}"),
        fix: Some("sudo sysctl kernel.perf_event_paranoid=1, or run with cap_perfmon"),
    }
    .done()
}

/// What `record -e cycles` and the like need: each counter of the CPU is opened once.
fn counters() -> Check {
    // Where CPUs cannot be listed the check of the clock says so.
    let cpu = first_cpu().unwrap_or_default();
    let opened = PerfCounter::hardware().map(|counter| {
        let file = perf_event::open_counter(&counter, Some(TRIAL_RATE_HZ), cpu);
        (counter.name.into_owned(), file.map(drop))
    });
    counters_check(&opened.collect::<Vec<_>>())
}

fn counters_check(opened: &[(String, Result<(), Error>)]) -> Check {
    let names = |is_wanted: fn(&Result<(), Error>) -> bool| {
        let wanted = opened.iter().filter(|(_, result)| is_wanted(result));
        let names = wanted.map(|(name, _)| name.as_str());
        names.collect::<Vec<_>>().join(", ")
    };
    let (there, absent) = (names(Result::is_ok), names(Result::is_err));
    let mut refusals = opened
        .iter()
        .filter_map(|(_, result)| result.as_ref().err());
    let refusal = refusals.next();
    Check {
        name: "kind:counters",
        ok: !there.is_empty(),
        required: false,
        detail: match refusal {
            None => format!("{there} can be counted"),
            Some(_) if !there.is_empty() => {
                format!("{there} can be counted; this machine has no {absent}")
            }
            Some(refusal) => refusal.to_string(),
        },
        fix: match refusal {
            Some(Error::MissingCapability { .. }) => Some(GRANT),
            _ => Some(NO_COUNTERS_FIX),
        },
    }
    .done()
}

fn first_cpu() -> Result<u32, String> {
    let cpus = host::online_cpus().map_err(|error| error.to_string())?;
    cpus.first()
        .copied()
        .ok_or_else(|| "no CPU is online".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_level_bounds_only_those_without_the_capability() {
        assert!(paranoid_check(Some(4), true).ok);
        for (level, is_ok) in [(-1, true), (0, true), (1, true), (2, false), (3, false)] {
            let check = paranoid_check(Some(level), false);
            assert_eq!(check.ok, is_ok, "{level}");
            assert!(
                check.detail.contains(&format!("= {level},")),
                "{}",
                check.detail
            );
            let fix = check.fix.unwrap_or_default();
            assert_eq!(
                fix.contains("sysctl kernel.perf_event_paranoid=1"),
                !is_ok,
                "{fix}"
            );
        }
        assert!(!paranoid_check(None, false).ok);
    }

    #[test]
    fn counters_that_are_not_there_are_named() {
        let refused = |name: &str| {
            let error = Error::Event {
                event: name.to_owned(),
                reason: "this machine has no such counter".to_owned(),
            };
            (name.to_owned(), Err(error))
        };
        let some = counters_check(&[("cycles".to_owned(), Ok(())), refused("bus-cycles")]);
        assert!(some.ok && some.fix.is_none());
        assert_eq!(
            some.detail,
            "cycles can be counted; this machine has no bus-cycles"
        );
        let none = counters_check(&[refused("cycles"), refused("bus-cycles")]);
        assert!(!none.ok && none.fix.is_some_and(|fix| fix.contains("cpu-clock")));
        assert!(none.detail.contains("no such counter"), "{}", none.detail);
    }
}
