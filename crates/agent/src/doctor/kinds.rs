//! Which kinds of profile this host gives. Each is begun as the agent begins it, of this process alone, and ended.

use candela_ebpf::Check;
use candela_ebpf::Error;
use candela_ebpf::ExplicitEvent;
use candela_ebpf::GRANT;
use candela_ebpf::Wakers;

use crate::allocations::LoadedLibrary;
use crate::allocations::PreloadedLibrary;
use crate::cpu::CpuCollector;
use crate::cpu::SamplingPlan;
use crate::error::AgentError;
use crate::kinds::Kind;
use crate::kinds::Kinds;

/// One that every kernel with scheduling events has, and that comes seldom.
const TRIED_TRACEPOINT: (&str, &str) = ("sched", "sched_process_exec");

const NO_LIBRARY_FIX: &str =
    "set TMPDIR to a folder of root's or of your own from which programs may load libraries";

/// The rate is of no consequence for whether something works.
const RATE_HZ: u32 = 19;

/// As the continuous agent has it, which takes smaller rings than a recording.
const WAIT_MEAN_NS: u64 = 1_000_000_000;

/// Something that `record -e` takes.
#[derive(Debug)]
struct Trial {
    name: &'static str,
    /// What it samples, for people.
    what: &'static str,
    subject: Result<Subject, String>,
}

/// What is to be sampled for it.
#[derive(Debug)]
enum Subject {
    Kind(Kind),
    /// The library is the one that is watched, so that there is something to watch on every host.
    Allocations(LoadedLibrary),
    Event(ExplicitEvent),
}

/// Tries each kind.
#[must_use]
pub fn kind_checks() -> Vec<Check> {
    let library = PreloadedLibrary::write();
    let trials = trials(library.as_ref());
    let subjects = trials.iter().filter_map(|it| it.subject.as_ref().ok());
    let mut outcomes = outcomes(&subjects.collect::<Vec<_>>()).into_iter();
    let check = |trial: &Trial| match &trial.subject {
        Err(reason) => failed(trial.name, reason.clone(), NO_LIBRARY_FIX),
        Ok(_) => {
            let outcome = outcomes.next().expect("one for each that can be tried");
            check_of(trial.name, trial.what, outcome)
        }
    };
    trials.iter().map(check).collect()
}

/// All at once takes as long as one of them; where that does not work, without those whose tracepoints are not
/// there; and one by one where that was not the reason.
fn outcomes(subjects: &[&Subject]) -> Vec<Result<(), AgentError>> {
    if CpuCollector::try_plan(&plan_of(subjects)).is_ok() {
        return subjects.iter().map(|_| Ok(())).collect();
    }
    let have_tracepoints: Vec<Result<(), AgentError>> = subjects
        .iter()
        .map(|&subject| CpuCollector::check_tracepoints(&plan_of(&[subject])))
        .collect();
    let others: Vec<&Subject> = subjects
        .iter()
        .zip(&have_tracepoints)
        .filter(|(_, has)| has.is_ok())
        .map(|(&subject, _)| subject)
        .collect();
    if others.len() < subjects.len() && CpuCollector::try_plan(&plan_of(&others)).is_ok() {
        return have_tracepoints;
    }
    have_tracepoints
        .into_iter()
        .zip(subjects)
        .map(|(has, &subject)| has.and_then(|()| CpuCollector::try_plan(&plan_of(&[subject]))))
        .collect()
}

fn trials(library: Result<&PreloadedLibrary, &AgentError>) -> Vec<Trial> {
    let library = library.map_err(|error| error.to_string());
    let of_kind = |kind: Kind| {
        let (name, what) = words(kind);
        let subject = match kind {
            Kind::Alloc => library.clone().and_then(|library| {
                let loaded = library.to_load().map_err(|error| error.to_string());
                loaded.map(Subject::Allocations)
            }),
            kind => Ok(Subject::Kind(kind)),
        };
        Trial {
            name,
            what,
            subject,
        }
    };
    let (subsystem, tracepoint) = TRIED_TRACEPOINT;
    let tracepoint = Trial {
        name: "kind:tracepoint",
        what: "tracepoints of the kernel",
        subject: Ok(Subject::Event(ExplicitEvent::Tracepoint {
            subsystem: subsystem.to_owned(),
            name: tracepoint.to_owned(),
        })),
    };
    let function = Trial {
        name: "kind:uprobe",
        what: "calls of functions of programs",
        subject: library.clone().map(|library| {
            Subject::Event(ExplicitEvent::Function {
                path: library.path().to_owned(),
                function: candela_preload::probes::SAMPLED.to_owned(),
            })
        }),
    };
    let kinds = Kind::ALL.into_iter().map(of_kind);
    kinds.chain([tracepoint, function]).collect()
}

fn words(kind: Kind) -> (&'static str, &'static str) {
    match kind {
        Kind::Cpu => ("kind:cpu", "what runs"),
        Kind::OffCpu => ("kind:off-cpu", "what waits"),
        Kind::Lock => ("kind:lock", "waits for locks"),
        Kind::RunQueue => ("kind:runq", "waits for a CPU"),
        Kind::Fault => ("kind:fault", "page faults"),
        Kind::Growth => ("kind:growth", "memory asked for"),
        Kind::BlockIo => ("kind:io", "requests to block devices"),
        Kind::KernelLock => ("kind:kernel-lock", "waits for locks of the kernel"),
        Kind::Alloc => ("kind:alloc", "allocations"),
    }
}

fn plan_of(subjects: &[&Subject]) -> SamplingPlan {
    let mut kinds = Vec::new();
    let mut events = Vec::new();
    let mut allocation_libraries = Vec::new();
    for &subject in subjects {
        match subject {
            Subject::Kind(kind) => kinds.push(*kind),
            Subject::Allocations(library) => {
                kinds.push(Kind::Alloc);
                allocation_libraries.push(library.clone());
            }
            Subject::Event(event) => events.push(event.clone()),
        }
    }
    SamplingPlan {
        rate_hz: RATE_HZ,
        kinds: kinds.into_iter().collect::<Kinds>(),
        events,
        allocation_libraries,
        wait_mean_ns: Some(WAIT_MEAN_NS),
        least_wait_ns: 0,
        wakers: Wakers::Untold,
    }
}

fn check_of(name: &'static str, what: &str, outcome: Result<(), AgentError>) -> Check {
    match outcome {
        Err(error) => failed(name, error.to_string(), fix_of(&error)),
        Ok(()) => Check {
            name,
            ok: true,
            required: false,
            detail: format!("{what} can be sampled"),
            fix: None,
        },
    }
}

/// A kind is nothing that sampling depends on: the others go on without it.
fn failed(name: &'static str, detail: String, fix: &'static str) -> Check {
    Check {
        name,
        ok: false,
        required: false,
        detail,
        fix: Some(fix),
    }
}

/// What mends it, as a command where one does.
fn fix_of(error: &AgentError) -> &'static str {
    const ELSEWHERE: &str = "see the message, and the checks above for the usual causes";
    let AgentError::Kernel(error) = error else {
        return ELSEWHERE;
    };
    match error {
        Error::MissingCapability { .. } => GRANT,
        Error::ProbesForbidden => "run as root what samples these",
        Error::NoTracepoint { .. } => "use a kernel that has it; all other kinds work without",
        Error::KernelTooOld { .. } => {
            "use Linux 6.1 or newer; of own processes cpu works without BPF: candela record -p PID"
        }
        Error::NoBtf { .. } => "use a kernel built with CONFIG_DEBUG_INFO_BTF=y",
        Error::Lockdown => "boot with lockdown=integrity or lockdown=none",
        Error::MemoryLock { .. } => "ulimit -l unlimited",
        _ => ELSEWHERE,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_kind_that_the_kernel_lacks_leaves_the_others() {
        let refusal = Error::NoTracepoint {
            name: "block_io_start".to_owned(),
        };
        let check = check_of("kind:io", "requests", Err(refusal.into()));
        assert!(!check.ok && !check.required);
        assert!(check.detail.contains("block_io_start"), "{}", check.detail);
        assert!(check.fix.is_some_and(|fix| fix.contains("other kinds")));
        let forbidden = check_of("kind:uprobe", "calls", Err(Error::ProbesForbidden.into()));
        assert!(forbidden.fix.is_some_and(|fix| fix.contains("root")));
    }

    mod host_tests {
        use super::*;

        #[test]
        fn every_kind_is_tried_and_what_fails_says_why() {
            let checks = kind_checks();
            let mut names: Vec<&str> = checks.iter().map(|check| check.name).collect();
            let kinds = Kind::ALL.map(|kind| format!("kind:{}", kind.name()));
            let events = ["kind:tracepoint", "kind:uprobe"].map(ToOwned::to_owned);
            for name in kinds.iter().chain(&events) {
                let place = names.iter().position(|it| it == name).expect(name);
                names.remove(place);
            }
            assert!(names.is_empty(), "once each: {names:?}");
            for check in checks {
                assert_ne!(check.ok, check.fix.is_some(), "{check:?}");
                assert!(!check.detail.is_empty(), "{check:?}");
            }
        }
    }
}
