//! What the tests of the store share.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;
use std::time::Instant;

use candela_model::FrameKind;
use candela_model::Labels;
use candela_model::Location;
use candela_model::Profile;
use candela_model::ProfileSeries;
use candela_model::Sample;
use candela_store::ManualClock;
use candela_store::Store;
use candela_store::StoreOptions;
use candela_store::TimeRange;

pub(crate) const NOON_NS: i64 = 1_732_190_400_000_000_000;

/// Nothing takes so long, unless it never comes.
const PATIENCE: Duration = Duration::from_secs(60);

/// Waits for what a thread of the store does by itself.
pub(crate) fn eventually(what: &str, mut is_so: impl FnMut() -> bool) {
    let deadline = Instant::now() + PATIENCE;
    while !is_so() {
        assert!(Instant::now() < deadline, "not in {PATIENCE:?}: {what}");
        std::thread::park_timeout(Duration::from_millis(10));
    }
}

/// Small segments, a clock that stands still, and merges only when a test asks for them.
pub(crate) fn options(directory: &Path) -> StoreOptions {
    StoreOptions {
        segment_bytes: 1 << 20,
        compaction_cpu_percent: 0,
        clock: Arc::new(ManualClock::at(NOON_NS)),
        ..StoreOptions::new(directory)
    }
}

/// One sample of a stack of its own; the value tells profiles apart.
pub(crate) fn profile(value: i64) -> Profile {
    profile_of("demo", NOON_NS, value)
}

pub(crate) fn profile_of(service: &str, start_ns: i64, value: i64) -> Profile {
    let mut profile = Profile::default();
    let name = format!("function_{value}");
    let symbols = &mut profile.symbols;
    let outer = symbols.intern_function("main", "", "main.c", 1);
    let inner = symbols.intern_function(&name, "", "main.c", 10);
    let place = Location::new(FrameKind::Native, 16);
    let leaf = symbols.intern_location(&place, &[(inner, 12, 0)]);
    let root = symbols.intern_location(&place, &[(outer, 3, 0)]);
    let stack = profile.stacks.intern(&[leaf, root]);
    let profile_type = "process_cpu:cpu:nanoseconds:cpu:nanoseconds"
        .parse()
        .expect("a type");
    let labels = Labels::from_pairs([("service_name", service)]);
    let mut series = ProfileSeries::new(labels, profile_type);
    series.start_ns = start_ns;
    series.duration_ns = 10_000_000_000;
    series.period = 10_000_000;
    series.samples.push(Sample::new(stack, value));
    profile.series.push(series);
    profile
}

/// The totals of all readable profiles, sorted; and that blocks agree with their samples.
pub(crate) fn totals(store: &Store, tenant: &str) -> Vec<i64> {
    let snapshot = store.snapshot(tenant, TimeRange::ALL).expect("a snapshot");
    let mut totals = Vec::new();
    for block in &snapshot.blocks {
        let table = block.profiles().expect("a profile table");
        totals.extend(table.rows.iter().map(|row| row.total));
    }
    for head in &snapshot.heads {
        totals.extend(head.profiles.iter().map(|profile| profile.total));
    }
    totals.sort_unstable();
    totals
}

pub(crate) fn block_on<T>(future: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_multi_thread()
        .worker_threads(1)
        .build()
        .expect("a runtime")
        .block_on(future)
}
