//! The heaps of all Go programs that are to be watched.

use std::io;
use std::sync::Arc;

use hashbrown::HashMap;

use crate::cpu::Naming;
use crate::go_heaps::discovery::ProgramIdentity;
use crate::go_heaps::discovery::runs_go;
use crate::go_heaps::error::GoHeapError;
use crate::go_heaps::process::GoProcess;
use crate::go_heaps::process::HeapWindows;
use crate::go_heaps::room::HeapRoom;
use crate::go_heaps::room::HeapSize;
use crate::go_heaps::room::MOST_PROGRAMS;
use crate::kinds::Kind;
use crate::ledger::DropReason;
use crate::ledger::Ledger;
use crate::options::AgentTargets;
use crate::processes::ProcessTable;
use crate::symbolize::Scale;
use crate::window::RESULT_CODES;
use crate::window::Window;

/// The heaps of Go programs, as they were when they were last read.
#[derive(Debug)]
pub(crate) struct GoHeaps {
    targets: AgentTargets,
    naming: Naming,
    ledger: Arc<Ledger>,
    keeps_times: bool,
    processes: ProcessTable,
    known: HashMap<u32, KnownProcess>,
}

#[derive(Debug)]
struct KnownProcess {
    identity: ProgramIdentity,
    /// `None` where it runs no Go program, or one whose heap profile is not found.
    heap: Option<Box<GoProcess>>,
    /// Why it was not read the last time.
    refused: Option<GoHeapError>,
}

// === impl GoHeaps ===

impl GoHeaps {
    /// With `keeps_times` each place that allocates is a sample with the time of its reading.
    pub(crate) fn new(
        targets: AgentTargets,
        naming: Naming,
        ledger: Arc<Ledger>,
        keeps_times: bool,
    ) -> Self {
        Self {
            targets,
            naming,
            processes: ProcessTable::new(Arc::clone(&ledger)),
            ledger,
            keeps_times,
            known: HashMap::new(),
        }
    }

    /// What was allocated so far is nobody's.
    pub(crate) fn begin(&mut self) {
        self.look();
        let mut room = self.room();
        for known in self.known.values_mut() {
            if let Some(process) = &mut known.heap {
                let before = process.size();
                let forgotten = process.forget_allocated(room.of_process(before));
                room.changed(before, process.size());
                known.was_read(forgotten, &self.ledger);
            }
        }
    }

    /// How many could be read the last time.
    pub(crate) fn count(&self) -> usize {
        let is_read = |known: &&KnownProcess| known.heap.is_some() && known.refused.is_none();
        self.known.values().filter(is_read).count()
    }

    /// Go programs whose heaps could not be read the last time, and why.
    pub(crate) fn refused(&self) -> impl Iterator<Item = (u32, &GoHeapError)> {
        let known = self.known.iter();
        known.filter_map(|(&pid, known)| Some((pid, known.refused.as_ref()?)))
    }

    /// One of them, as an error to keep.
    pub(crate) fn take_refused(&mut self) -> Option<(u32, GoHeapError)> {
        let mut known = self.known.iter_mut();
        known.find_map(|(&pid, known)| Some((pid, known.refused.take()?)))
    }

    /// What was allocated since the last reading, and what is in use (`time_ns`, CLOCK_MONOTONIC).
    pub(crate) fn read(&mut self, time_ns: u64) -> [(Window, Scale); 2] {
        self.look();
        let mut windows = HeapWindows::new(self.keeps_times);
        let mut room = self.room();
        for known in self.known.values_mut() {
            let Some(process) = &mut known.heap else {
                continue;
            };
            // What ends at this moment is missed by the next look.
            if let Some(view) = process.view(&mut self.processes, &self.naming, time_ns) {
                let before = process.size();
                let of_process = room.of_process(before);
                let added = process.add_to(&mut windows, (&view, time_ns), of_process);
                room.changed(before, process.size());
                // The memory that was opened is no longer the process's: it runs its program from the start.
                let is_replaced = matches!(&added, Err(GoHeapError::Unreadable(error))
                    if error.kind() == io::ErrorKind::UnexpectedEof);
                known.was_read(added, &self.ledger);
                if is_replaced {
                    known.identity = ProgramIdentity::NONE;
                }
            }
        }
        let HeapWindows {
            mut allocated,
            mut in_use,
        } = windows;
        // The runtime has walked these stacks.
        allocated.results = [0; RESULT_CODES];
        in_use.results = [0; RESULT_CODES];
        [
            (allocated, Scale::of(Kind::Alloc, 1)),
            (in_use, Scale::in_use()),
        ]
    }

    /// What profiles may take besides those that are known.
    fn room(&self) -> HeapRoom {
        let heaps = self.known.values().filter_map(|it| it.heap.as_ref());
        HeapRoom::beside(HeapSize::MOST_OF_ALL, heaps.map(|heap| heap.size()))
    }

    /// Finds what has come, and forgets what has gone.
    fn look(&mut self) {
        let mut before = std::mem::take(&mut self.known);
        // What has gone makes room for the next look.
        let mut open = before.values().filter(|it| it.heap.is_some()).count();
        for pid in self.targets.processes() {
            let Some(identity) = ProgramIdentity::of(pid) else {
                continue;
            };
            let known = before.remove(&pid);
            let known = match known {
                Some(known) if known.identity == identity && !known.may_open(open) => known,
                replaced => {
                    let had_heap = replaced.as_ref().is_some_and(|it| it.heap.is_some());
                    self.ledger.add(DropReason::GoHeapGone, had_heap.into());
                    open -= usize::from(had_heap);
                    let mut opened = self.open(pid, identity, open);
                    if let Some(heap) = &mut opened.heap {
                        open += 1;
                        if replaced.is_some_and(|it| it.identity == identity) {
                            heap.pass_over();
                        }
                    }
                    opened
                }
            };
            self.known.insert(pid, known);
        }
        let gone = before.into_values();
        let gone = gone.filter(|known| known.heap.is_some());
        self.ledger.add(DropReason::GoHeapGone, gone.count() as u64);
        self.processes.remove_vanished();
        self.processes.objects.sweep();
    }

    /// Beside so many that are open.
    fn open(&mut self, pid: u32, identity: ProgramIdentity, others: usize) -> KnownProcess {
        let mut known = KnownProcess {
            identity,
            heap: None,
            refused: None,
        };
        if !runs_go(pid) {
            return known;
        }
        let opened = match others < MOST_PROGRAMS {
            true => GoProcess::open(pid, &mut self.processes),
            false => Err(GoHeapError::TooMany {
                most: MOST_PROGRAMS,
            }),
        };
        let opened = opened.map(|process| known.heap = Some(Box::new(process)));
        known.was_read(opened, &self.ledger);
        known
    }
}

// === impl KnownProcess ===

impl KnownProcess {
    /// Whether it waits for others to end, of which so many are open now.
    fn may_open(&self, others: usize) -> bool {
        let waits = matches!(self.refused, Some(GoHeapError::TooMany { .. }));
        waits && others < MOST_PROGRAMS
    }

    /// Notes how a reading went. What cannot be read counts once, however often it is tried.
    fn was_read(&mut self, reading: Result<(), GoHeapError>, ledger: &Ledger) {
        let Err(error) = reading else {
            self.refused = None;
            return;
        };
        let reason = reason_of(&error);
        let before = self.refused.replace(error);
        if before.is_none_or(|before| reason_of(&before) != reason) {
            ledger.add(reason, 1);
        }
    }
}

fn reason_of(error: &GoHeapError) -> DropReason {
    match error {
        GoHeapError::Off => DropReason::GoHeapOff,
        _ => DropReason::GoHeapUnread,
    }
}
