//! The windows of a source: one for each kind of sample that it takes.

use crate::allocations::AllocationNumber;
use crate::allocations::InUse;
use crate::kinds::Kind;
use crate::kinds::Kinds;
use crate::symbolize::Scale;
use crate::window::Amount;
use crate::window::Moment;
use crate::window::ProcessView;
use crate::window::RawStack;
use crate::window::Window;

/// Which window.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum WindowId {
    Kind(Kind),
    /// Of an event that somebody named, by its place among them.
    Event(u16),
}

/// The windows that a sample is added to.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Destination {
    Kinds(Kinds),
    Event(u16),
}

/// One window for each kind and named event; those of kinds that are not taken stay empty.
#[derive(Debug)]
pub(crate) struct Windows {
    keeps_times: bool,
    keeps_cpus: bool,
    kinds: [Window; Kind::ALL.len()],
    events: Vec<Window>,
    /// Those that are whole when they come: what is in use, and heaps that were read.
    others: Vec<(Window, Scale)>,
    /// What is in use of sampled allocations.
    pub(crate) in_use: InUse,
}

// === impl Destination ===

impl Destination {
    pub(crate) fn windows(self) -> impl Iterator<Item = WindowId> {
        let (kinds, event) = match self {
            Self::Kinds(kinds) => (kinds, None),
            Self::Event(event) => (Kinds::from([]), Some(event)),
        };
        let kinds = kinds.iter().map(WindowId::Kind);
        kinds.chain(event.map(WindowId::Event))
    }
}

// === impl Windows ===

impl Windows {
    /// Empty windows of a recording. With `keeps_times` each sample is kept with its time and thread.
    pub(crate) fn new(keeps_times: bool) -> Self {
        Self::with(keeps_times, InUse::Recorded(Vec::new()))
    }

    /// Those of the continuous agent.
    pub(crate) fn continuous(keeps_times: bool) -> Self {
        Self::with(keeps_times, InUse::Held(Box::default()))
    }

    fn with(keeps_times: bool, in_use: InUse) -> Self {
        Self {
            in_use,
            keeps_times,
            keeps_cpus: false,
            kinds: std::array::from_fn(|_| Window::new(keeps_times)),
            events: Vec::new(),
            others: Vec::new(),
        }
    }

    /// The same, which keep the CPU of each sample that is kept with its time.
    pub(crate) fn keep_cpus(self, keeps_cpus: bool) -> Self {
        Self { keeps_cpus, ..self }
    }

    pub(crate) fn of(&mut self, window: WindowId) -> &mut Window {
        let event = match window {
            WindowId::Kind(kind) => return &mut self.kinds[kind as usize],
            WindowId::Event(event) => usize::from(event),
        };
        while self.events.len() <= event {
            self.events.push(Window::new(self.keeps_times));
        }
        &mut self.events[event]
    }

    /// Adds a sample.
    pub(crate) fn add(
        &mut self,
        id: WindowId,
        process: &ProcessView,
        stack: &RawStack<'_>,
        moment: Moment<'_>,
        amount: Amount,
    ) {
        let moment = Moment {
            cpu: moment.cpu.filter(|_| self.keeps_cpus),
            ..moment
        };
        self.of(id).add(process, stack, moment, amount);
        if moment.allocation != AllocationNumber::NONE {
            self.in_use.add(moment.allocation, process, stack, amount);
        }
    }

    /// Adds a window of what is in use at `time_ns` (CLOCK_MONOTONIC).
    pub(crate) fn push_in_use(&mut self, time_ns: u64) {
        let allocated = &self.kinds[Kind::Alloc as usize];
        let in_use = self.in_use.window(allocated, time_ns);
        self.push(in_use, Scale::in_use());
    }

    /// Adds a whole window, with what the values of its samples are.
    pub(crate) fn push(&mut self, window: Window, scale: Scale) {
        self.others.push((window, scale));
    }

    pub(crate) fn take_others(&mut self) -> Vec<(Window, Scale)> {
        std::mem::take(&mut self.others)
    }
}
