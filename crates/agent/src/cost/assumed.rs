//! What programs in the kernel are taken to cost where it does not measure them: so much for each run, which they
//! count, and so much for each event that they hand over.

use crate::cpu::EventCounts;
use crate::cpu::EventKind;

/// A sample in the kernel: that of a stack of some thirty frames.
pub(super) const SAMPLE_NS: u64 = 15_000;

/// What a program does in a window.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct AssumedWork {
    pub(super) runs: u64,
    pub(super) run_time_ns: u64,
}

/// What a program is taken to cost, in nanoseconds.
struct Price {
    program: &'static str,
    /// Of a run that hands nothing over.
    run_ns: u64,
    /// What it hands over, and what that costs besides.
    event: Option<(EventKind, u64)>,
}

/// Those of switches and page faults were measured on a virtual machine, with what it takes to get into a program; the
/// others are estimated after them.
const PRICES: [Price; 17] = [
    price("sample_cpu", 0, Some((EventKind::Cpu, SAMPLE_NS))),
    price("off_cpu_switch", 110, Some((EventKind::OffCpu, SAMPLE_NS))),
    price("off_cpu_call_ends", 150, None),
    price("off_cpu_wake", 90, None),
    price("fault_in_user", 90, Some((EventKind::Fault, SAMPLE_NS))),
    price("fault_in_kernel", 90, None),
    price("growth_begin", 90, None),
    price("growth_end", 70, Some((EventKind::Growth, SAMPLE_NS))),
    price("kernel_lock_begin", 110, None),
    price(
        "kernel_lock_end",
        110,
        Some((EventKind::KernelLock, SAMPLE_NS)),
    ),
    price("block_io_begin", 110, Some((EventKind::BlockIo, SAMPLE_NS))),
    price("block_io_end", 110, None),
    price("alloc_sampled", 0, Some((EventKind::Alloc, SAMPLE_NS))),
    price("alloc_freed", 0, Some((EventKind::Free, 2_000))),
    price("process_fork", 0, Some((EventKind::Fork, 1_000))),
    price("process_exec", 0, Some((EventKind::Exec, 1_000))),
    price("process_exit", 0, Some((EventKind::Exit, 1_000))),
];

const fn price(program: &'static str, run_ns: u64, event: Option<(EventKind, u64)>) -> Price {
    Price {
        program,
        run_ns,
        event,
    }
}

/// What a program is taken to have done that has run so often, by its own count, while these events came.
pub(super) fn work(program: &str, counted_runs: u64, events: &EventCounts) -> AssumedWork {
    let Some(price) = PRICES.iter().find(|price| price.program == program) else {
        return AssumedWork {
            runs: counted_runs,
            run_time_ns: 0,
        };
    };
    let (handed_over, event_ns) = match price.event {
        Some((kind, event_ns)) => (events.of(kind), event_ns),
        None => (0, 0),
    };
    AssumedWork {
        // Some programs are known by their events alone.
        runs: counted_runs.max(handed_over),
        run_time_ns: counted_runs * price.run_ns + handed_over * event_ns,
    }
}

#[cfg(test)]
mod tests {
    use candela_ebpf::Event;

    use super::*;

    #[test]
    fn runs_and_events_cost_something() {
        let mut events = EventCounts::default();
        for _ in 0..3 {
            events.count(&Event::Exit { pid: 1, time_ns: 1 });
        }
        let assumed = |program, counted_runs| {
            let AssumedWork { runs, run_time_ns } = work(program, counted_runs, &events);
            (runs, run_time_ns)
        };
        assert_eq!(assumed("off_cpu_switch", 1_000), (1_000, 110_000));
        assert_eq!(assumed("process_exit", 0), (3, 3_000));
        assert_eq!(assumed("off_cpu_visit", 1_000), (1_000, 0));
    }

    #[test]
    fn each_kind_of_event_has_one_price() {
        let mut kinds: Vec<usize> = PRICES
            .iter()
            .filter_map(|price| price.event.map(|(kind, _)| kind as usize))
            .collect();
        let all = kinds.len();
        kinds.sort_unstable();
        kinds.dedup();
        assert_eq!(kinds.len(), all);
    }
}
