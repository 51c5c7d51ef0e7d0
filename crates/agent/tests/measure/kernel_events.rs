//! Waits for a CPU, a disk and a lock of the kernel, against what the scheduler and the programs count.

use std::ops::Bound;

use candela_agent::Kind;

use crate::host::kernel_events::Contention;
use crate::host::kernel_events::Lost;
use crate::host::kernel_events::Told;
use crate::host::kernel_events::lost_cpu;
use crate::host::kernel_events::record;
use crate::host::kernel_events::waited_by_reason;
use crate::host::kernel_events::waited_for_cpu;
use crate::support;
use candela_testing::expect_within;
use candela_testing::more_than;

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
    expect_within(
        "time in run queues / the scheduler's",
        ratio,
        0.98..1.02,
        "",
    );
}

#[test]
fn a_cpu_that_another_thread_takes_is_all_that_is_lost() {
    if support::cannot_sample_off_cpu() || support::lacks("gcc") {
        return;
    }
    let _turn = support::turn();
    let told = record_all(Kind::OffCpu, "queue", &["2000", "busy"]);
    let Lost { ratio, others } = lost_cpu(&told);
    let what = "preempted time / that which the program lost";
    expect_within(what, ratio, 0.98..1.02, "");
    expect_within("other waits / preempted time", others, ..0.02, "");
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
    let share = disk_ns as f64 / elapsed_ns as f64;
    expect_within(
        "share of time that waits for the disk",
        share,
        more_than(0.1),
        elapsed_ns,
    );
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
    let share = waits.waited_ns as f64 / waits.spent_ns as f64;
    let what = "share of the threads' time that waits for the lock";
    let bound = (Bound::Excluded(0.25), Bound::Excluded(1.0));
    expect_within(what, share, bound, format_args!("{waits:?}"));
    // They spin for it, too, which is time on a CPU as any other: how much of that is waiting only the kernel knows.
    let samples = waits.waited_ns as f64 / 1e6;
    let chance = 5.0 / samples.sqrt();
    let ratio = waits.waited_ns as f64 / waits.slept_ns as f64;
    let what = "waits for the lock / time asleep";
    expect_within(what, ratio, 1.0 - chance.., format_args!("{waits:?}"));
    let count = waits.count as f64;
    expect_within(
        "waits for the lock",
        count,
        more_than(100.0),
        format_args!("{waits:?}"),
    );
}
