//! One process as the agent knows it.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use candela_model::Labels;

use crate::labels::AttributeKey;
use crate::labels::Unsettled;
use crate::processes::mappings::Code;
use crate::processes::mappings::Mappings;
use crate::processes::object::Object;
use crate::processes::thread_context::ContextWait;

/// Shortest and longest time between two readings of a process's maps because an address was in
/// none of them. Code that a just-in-time compiler maps anew all the time must not make the agent
/// read for ever.
const FIRST_RESCAN_DELAY_NS: u64 = 100_000_000;
const LONGEST_RESCAN_DELAY_NS: u64 = 25_600_000_000;

/// A process between two execs.
#[derive(Clone, Debug)]
pub(crate) struct Process {
    pub(crate) identity: ProcessIdentity,
    /// CLOCK_BOOTTIME, nanoseconds; 0 until its first sample tells.
    pub(crate) start_ns: u64,
    /// When it was forked or replaced its program, CLOCK_MONOTONIC in nanoseconds; 0 when it is older than the agent.
    pub(crate) began_ns: u64,
    /// The process that forked it, whose program it runs.
    pub(crate) parent: Option<u32>,
    /// The name that exec gave it; empty when it is older than the agent.
    pub(crate) command: String,
    pub(crate) mappings: Mappings,
    /// Whether `mappings` has everything that was mapped so far.
    pub(crate) is_complete: bool,
    /// Whether the kernel has its mappings.
    pub(crate) is_registered: bool,
    /// Since when (CLOCK_MONOTONIC, nanoseconds): samples of before may say otherwise.
    pub(crate) registered_ns: u64,
    /// The generation that the kernel has.
    registered_generation: u32,
    /// Where its OpenTelemetry process context lies.
    pub(crate) context_address: Option<u64>,
    /// The names of attributes of its threads, by their numbers.
    pub(crate) attribute_keys: Arc<[AttributeKey]>,
    /// When these may be read again.
    pub(crate) attribute_keys_wait: ContextWait,
    /// Set while something exports a thread context and it is not known where it lies.
    pub(crate) thread_context_wait: Option<ContextWait>,
    pub(crate) labels: Option<Arc<Labels>>,
    /// Set while the labels lack what a container runtime is being asked for.
    pub(crate) unsettled: Option<Arc<Unsettled>>,
    /// When container runtimes may be asked again (CLOCK_MONOTONIC, nanoseconds).
    pub(crate) names_again_ns: u64,
    /// Whether a rule leaves its samples out.
    pub(crate) is_unwanted: bool,
    /// How often the labels were made without a command line.
    pub(crate) label_attempts: u8,
    pub(crate) rescan: RescanDelay,
    pub(crate) registration: RegistrationPace,
    pub(crate) context_check: ContextCheck,
}

/// Which process, and which state of its mappings: two equal stacks of raw addresses are the same
/// stack only if these are equal too.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct ProcessIdentity {
    pub(crate) pid: u32,
    /// Tells a process from an earlier one with its pid, and from itself before an exec.
    pub(crate) serial: u32,
    /// Grows with each change of the mappings.
    pub(crate) generation: u32,
}

/// When the maps of a process may be read again.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct RescanDelay {
    not_before_ns: u64,
    delay_ns: u64,
}

/// When the kernel may hear of a process's mappings again: one with very many of them, which change
/// all the time, must not keep the sampling thread busy.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct RegistrationPace {
    not_before_ns: u64,
}

/// No process comes as far.
const NO_GENERATION: u32 = u32::MAX;

/// Time between two registrations per mapping: a hundred times what one takes.
const REGISTRATION_PAUSE_NS: u64 = 10_000;

/// When to look for a process context. It is published while a program starts, at a time that
/// nothing announces, so it is looked for three times: at the first sample, and twice later.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct ContextCheck {
    done: usize,
    first_ns: u64,
}

/// Times of the checks after the first sample.
const CONTEXT_CHECKS_NS: [u64; 3] = [0, 5_000_000_000, 60_000_000_000];

// === impl Process ===

impl Process {
    pub(crate) fn new(pid: u32, serial: u32) -> Self {
        Self {
            identity: ProcessIdentity {
                pid,
                serial,
                generation: 0,
            },
            start_ns: 0,
            began_ns: 0,
            parent: None,
            command: String::new(),
            mappings: Mappings::default(),
            is_complete: false,
            is_registered: false,
            registered_ns: 0,
            registered_generation: 0,
            context_address: None,
            attribute_keys: Arc::default(),
            attribute_keys_wait: ContextWait::default(),
            thread_context_wait: None,
            labels: None,
            unsettled: None,
            names_again_ns: u64::MAX,
            is_unwanted: false,
            label_attempts: 0,
            rescan: RescanDelay::default(),
            registration: RegistrationPace::default(),
            context_check: ContextCheck::default(),
        }
    }

    /// What `fork` makes of it.
    pub(crate) fn forked(&self, pid: u32, serial: u32, time_ns: u64) -> Self {
        Self {
            identity: ProcessIdentity {
                pid,
                serial,
                generation: 0,
            },
            start_ns: 0,
            began_ns: time_ns,
            parent: Some(self.identity.pid),
            registered_generation: match self.is_registration_current() {
                true => 0,
                false => NO_GENERATION,
            },
            // The publisher marks its context MADV_DONTFORK.
            context_address: None,
            context_check: ContextCheck::default(),
            ..self.clone()
        }
    }

    /// The kernel has its mappings as they are.
    pub(crate) fn note_registration(&mut self, now_ns: u64) {
        self.is_registered = true;
        self.registered_ns = now_ns;
        self.registered_generation = self.identity.generation;
    }

    /// Whether the kernel has its mappings as they are.
    pub(crate) fn is_registration_current(&self) -> bool {
        self.is_registered && self.registered_generation == self.identity.generation
    }

    /// The path of its program.
    pub(crate) fn executable(&self) -> &str {
        self.program().map_or("", |object| &object.path)
    }

    /// Remembers that its program is one that gets sampled, so that the kernel hears of the next
    /// process that runs it before its first sample.
    pub(crate) fn mark_program_sampled(&self) {
        if let Some(program) = self.program() {
            program.was_sampled.store(true, Ordering::Relaxed);
        }
    }

    /// Whether another process that ran the same program was sampled.
    pub(crate) fn is_program_sampled(&self) -> bool {
        self.program()
            .is_some_and(|program| program.was_sampled.load(Ordering::Relaxed))
    }

    /// The first file that exec maps; programs lie below their libraries.
    fn program(&self) -> Option<&Object> {
        self.mappings
            .iter()
            .find_map(|mapping| match &mapping.code {
                Code::Object(object) if object.path.starts_with('/') => Some(&**object),
                _ => None,
            })
    }
}

// === impl RescanDelay ===

impl RescanDelay {
    /// Whether the maps may be read now; if so, the next time is twice as far away.
    pub(crate) fn try_now(&mut self, now_ns: u64) -> bool {
        if now_ns < self.not_before_ns {
            return false;
        }
        self.delay_ns = (self.delay_ns * 2).clamp(FIRST_RESCAN_DELAY_NS, LONGEST_RESCAN_DELAY_NS);
        self.not_before_ns = now_ns + self.delay_ns;
        true
    }
}

// === impl RegistrationPace ===

impl RegistrationPace {
    pub(crate) fn is_too_early(&self, now_ns: u64) -> bool {
        now_ns < self.not_before_ns
    }

    /// Notes that so many mappings are being registered.
    pub(crate) fn begin(&mut self, now_ns: u64, mappings: usize) {
        self.not_before_ns = now_ns + mappings as u64 * REGISTRATION_PAUSE_NS;
    }
}

// === impl ContextCheck ===

impl ContextCheck {
    /// Whether it is time for the next check, which then counts as done.
    pub(crate) fn try_now(&mut self, now_ns: u64) -> bool {
        let Some(after) = CONTEXT_CHECKS_NS.get(self.done) else {
            return false;
        };
        if self.done == 0 {
            self.first_ns = now_ns;
        }
        let is_time = now_ns.saturating_sub(self.first_ns) >= *after;
        self.done += usize::from(is_time);
        is_time
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn contexts_are_looked_for_three_times() {
        let mut check = ContextCheck::default();
        let times: Vec<u64> = (100..200)
            .filter(|second| check.try_now(second * 1_000_000_000))
            .collect();
        assert_eq!(times, [100, 105, 160]);
    }

    #[test]
    fn many_mappings_are_registered_rarely() {
        let mut pace = RegistrationPace::default();
        assert!(!pace.is_too_early(0));
        pace.begin(0, 30);
        assert!(
            pace.is_too_early(299_999),
            "a usual process: not twice at once"
        );
        assert!(!pace.is_too_early(300_000));
        pace.begin(0, 5_000);
        assert!(pace.is_too_early(49_999_999));
    }

    #[test]
    fn rescans_become_rarer() {
        let mut delay = RescanDelay::default();
        assert!(delay.try_now(0));
        assert!(!delay.try_now(99_000_000));
        assert!(delay.try_now(100_000_000));
        assert!(!delay.try_now(299_000_000));
        let mut now = 0;
        let rescans = (0..1000).filter(|second| {
            now = second * 1_000_000_000;
            delay.try_now(now)
        });
        assert!(rescans.count() < 50);
    }
}
