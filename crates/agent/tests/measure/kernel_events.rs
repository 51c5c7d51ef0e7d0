//! Waits for a CPU, a disk and a lock of the kernel, against what the scheduler and the programs count.

use candela_agent::Kind;

use crate::host::kernel_events::Contention;
use crate::host::kernel_events::Lost;
use crate::host::kernel_events::Told;
use crate::host::kernel_events::lost_cpu;
use crate::host::kernel_events::record;
use crate::host::kernel_events::waited_by_reason;
use crate::host::kernel_events::waited_for_cpu;
use crate::support;

/// A recording that loses nothing.
fn record_all(kind: Kind, program: &str, arguments: &[&str]) -> Told {
    let told = record(kind, program, arguments);
    assert_eq!(told.recording.report.lost_samples(), 0);
    told
}

#[test]
fn waits_for_a_cpu_are_what_the_scheduler_counted() {
    if support::cannot_sample_off_cpu() || support::lacks("gcc") {
        return;
    }
    let _turn = support::turn();
    let told = record_all(Kind::RunQueue, "queue", &["2000"]);
    let ratio = waited_for_cpu(&told, 100);
    assert!((0.98..1.02).contains(&ratio), "{ratio}");
}

#[test]
fn a_cpu_that_another_thread_takes_is_all_that_is_lost() {
    if support::cannot_sample_off_cpu() || support::lacks("gcc") {
        return;
    }
    let _turn = support::turn();
    let told = record_all(Kind::OffCpu, "queue", &["2000", "busy"]);
    let Lost { ratio, others } = lost_cpu(&told);
    assert!((0.98..1.02).contains(&ratio), "{ratio}");
    assert!(others < 0.02, "{others}");
}

#[test]
fn what_is_written_past_the_page_cache_waits_for_nothing_but_the_disk() {
    if support::cannot_sample_off_cpu() || support::lacks("gcc") {
        return;
    }
    let told = record_all(Kind::OffCpu, "requests", &["500", "blocks"]);
    let Some(&elapsed_ns) = told.truth.first() else {
        support::skipped("the temporary directory has no block device behind it");
        return;
    };
    // The writes before, which go to the page cache, seldom wait for anything.
    let mut waited_ns = waited_by_reason(&told.recording.profile);
    let disk_ns = waited_ns.remove("disk").unwrap_or_default();
    assert!(disk_ns > elapsed_ns / 10, "{disk_ns} of {elapsed_ns} ns");
    waited_ns.remove("preempted");
    assert!(waited_ns.is_empty(), "{waited_ns:?}");
}

#[test]
fn threads_sleep_for_the_lock_of_the_kernel_and_nothing_else() {
    if support::cannot_sample() || support::lacks("gcc") {
        return;
    }
    let _turn = support::turn();
    let waits = Contention::of(&record_all(Kind::KernelLock, "contend", &["1000"]));
    // Four threads take turns: most of their time is waiting, and none is counted twice.
    assert!(
        waits.waited_ns > waits.spent_ns / 4 && waits.waited_ns < waits.spent_ns,
        "{waits:?}"
    );
    // They spin for it, too, which is time on a CPU as any other: how much of that is waiting only the kernel knows.
    let samples = waits.waited_ns as f64 / 1e6;
    let chance = 5.0 / samples.sqrt();
    assert!(
        waits.waited_ns as f64 >= waits.slept_ns as f64 * (1.0 - chance),
        "{waits:?}"
    );
    assert!(waits.count > 100, "{waits:?}");
}
