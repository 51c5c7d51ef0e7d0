//! Heaps in the continuous agent: a thread of its own, because a reading takes as long as a heap profile is large.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering;
use std::sync::mpsc::SyncSender;
use std::time::Duration;

use candela_ebpf::Clock;
use candela_ebpf::monotonic_ns;

use crate::go_heaps::source::GoHeaps;
use crate::ledger::DropReason;
use crate::pipeline::FinishedWindow;
use crate::pipeline::finish_window;
use crate::schedule::Schedule;
use crate::status::StatusBoard;

/// How long a stop may go unnoticed.
const TURN: Duration = Duration::from_millis(200);

/// Readings take one part of so many of a CPU at most.
const SHARE_OF_TIME: u64 = 200;

/// But heaps are told once in this time, whatever they cost.
const LONGEST_PAUSE_NS: u64 = 60_000_000_000;

/// Reads the heaps of Go programs at the end of each window.
#[derive(Debug)]
pub(crate) struct GoHeapWatch {
    pub(crate) heaps: GoHeaps,
    pub(crate) windows: SyncSender<FinishedWindow>,
    pub(crate) board: Arc<StatusBoard>,
}

impl GoHeapWatch {
    /// Runs until the flag is set; the last window ends then.
    pub(crate) fn run(mut self, mut schedule: Schedule, stop: &AtomicBool) {
        let mut start_ns = monotonic_ns();
        self.heaps.begin();
        // What programs there are is looked at once: only readings are judged.
        let mut not_before_ns = 0;
        while !stop.load(Ordering::Relaxed) {
            let now_ns = monotonic_ns();
            if now_ns < schedule.next_ns {
                let left = Duration::from_nanos(schedule.next_ns - now_ns);
                std::thread::park_timeout(left.min(TURN));
                continue;
            }
            schedule.advance(now_ns, Clock::now());
            if now_ns >= not_before_ns {
                self.read(start_ns, now_ns);
                start_ns = now_ns;
                not_before_ns = Self::pause_after(now_ns);
            }
        }
        self.read(start_ns, monotonic_ns());
    }

    /// When the next reading may be, after one that began then.
    fn pause_after(began_ns: u64) -> u64 {
        let now_ns = monotonic_ns();
        let cost_ns = now_ns.saturating_sub(began_ns);
        let pause_ns = cost_ns.saturating_mul(SHARE_OF_TIME).min(LONGEST_PAUSE_NS);
        now_ns.saturating_add(pause_ns)
    }

    fn read(&mut self, start_ns: u64, end_ns: u64) {
        let clock = Clock::now();
        for (window, scale) in self.heaps.read(end_ns) {
            let finished = finish_window(window, scale, (start_ns, end_ns), clock, &self.board);
            let samples = finished.window.samples();
            if samples > 0 && self.windows.try_send(finished).is_err() {
                self.board.ledger.add(DropReason::SymbolizerBehind, samples);
            }
        }
    }
}
