//! Merging blocks changes where profiles are and nothing else; rollups are their sums.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use crate::common;
use crate::common::NOON_NS;
use crate::common::block_on;
use candela_model::FrameKind;
use candela_model::Labels;
use candela_model::Link;
use candela_model::Location;
use candela_model::Profile;
use candela_model::ProfileSeries;
use candela_model::Sample;
use candela_model::SampleLabel;
use candela_store::AppendError;
use candela_store::Block;
use candela_store::Erasure;
use candela_store::Level;
use candela_store::ManualClock;
use candela_store::RetentionRule;
use candela_store::SampleColumns;
use candela_store::Store;
use candela_store::StoreOptions;
use candela_store::SyncMode;
use candela_store::Tier;
use candela_store::TimeRange;
use parquet::file::reader::FileReader;
use parquet::file::reader::SerializedFileReader;
use proptest::prelude::*;

const SECOND_NS: i64 = 1_000_000_000;
const HOUR_NS: i64 = 3600 * SECOND_NS;
const CPU: &str = "process_cpu:cpu:nanoseconds:cpu:nanoseconds";
const INUSE: &str = "memory:inuse_space:bytes:space:bytes";

/// A profile as a test chooses it: service, pod, type, seconds after the start, and samples with
/// frames from the root, a label and a value.
#[derive(Clone, Debug)]
struct Plain {
    service: u8,
    pod: u8,
    is_gauge: bool,
    second: i64,
    samples: Vec<(Vec<u8>, Option<u8>, i64)>,
}

/// A sample in words.
type Row = (String, String, i64, i64, Vec<String>, String, i64);

fn plain() -> impl Strategy<Value = Plain> {
    let sample = (
        prop::collection::vec(0..4_u8, 0..5),
        prop::option::of(0..3_u8),
        -5..100_i64,
    );
    let samples = prop::collection::vec(sample, 0..8);
    (0..3_u8, 0..3_u8, any::<bool>(), 0..30_000_i64, samples).prop_map(
        |(service, pod, is_gauge, second, samples)| Plain {
            service,
            pod,
            is_gauge,
            second,
            samples,
        },
    )
}

fn profile_of(plain: &Plain) -> Profile {
    let mut profile = Profile::default();
    let labels = Labels::from_pairs([
        ("service_name", format!("service-{}", plain.service)),
        ("pod", format!("pod-{}", plain.pod)),
        ("version", "v1".to_owned()),
    ]);
    let profile_type = if plain.is_gauge { INUSE } else { CPU };
    let mut series = ProfileSeries::new(labels, profile_type.parse().expect("a type"));
    series.start_ns = NOON_NS + plain.second * SECOND_NS;
    series.duration_ns = 10 * SECOND_NS;
    series.period = 1;
    for (frames, label, value) in &plain.samples {
        let mut stack = Vec::new();
        for frame in frames.iter().rev() {
            let name = format!("function_{frame}");
            let function = profile.symbols.intern_function(&name, "", "main.c", 1);
            let place = Location::new(FrameKind::Native, 16);
            let lines = [(function, u32::from(*frame), 0)];
            stack.push(profile.symbols.intern_location(&place, &lines));
        }
        let stack = profile.stacks.intern(&stack);
        let mut sample = Sample::new(stack, *value);
        if let Some(label) = label {
            let strings = &mut profile.symbols.strings;
            let (key, text) = (
                strings.intern("thread"),
                strings.intern(&format!("t{label}")),
            );
            sample.label_set = profile
                .label_sets
                .intern(vec![SampleLabel::text(key, text)]);
            sample.time_ns = NOON_NS + i64::from(*label);
            sample.link = profile.intern_link(Link {
                trace_id: [*label + 1; 16],
                span_id: [*label + 1; 8],
            });
        }
        series.samples.push(sample);
    }
    profile.series.push(series);
    profile
}

/// Everything that blocks say, through the tables that queries read.
fn rows_of(blocks: &[Arc<Block>]) -> Vec<Row> {
    let mut rows = Vec::new();
    for block in blocks {
        let profiles = block.profiles().expect("profiles");
        let (stacks, locations) = (
            block.stacks().expect("stacks"),
            block.locations().expect("locations"),
        );
        let labels = block.labels().expect("labels");
        for profile in &profiles.rows {
            let range = profile.first_row..profile.first_row + u64::from(profile.sample_count);
            let columns = SampleColumns {
                label_sets: true,
                ..SampleColumns::default()
            };
            let visited = block.scan_samples(&[range], columns, &mut |chunk| {
                for index in 0..chunk.values.len() {
                    let mut frames = Vec::new();
                    let mut node = stacks.node_of_stack[chunk.stack_ids[index] as usize];
                    while stacks.parents[node as usize] != node {
                        let location = stacks.locations[node as usize];
                        frames.push(locations.display_name(location).into_owned());
                        node = stacks.parents[node as usize];
                    }
                    frames.reverse();
                    let set = candela_model::LabelSetId(chunk.label_sets[index]);
                    let texts = labels.sets.get(set).iter();
                    let texts = texts.map(|label| labels.strings.get(label.key).to_owned());
                    rows.push((
                        profiles.series[profile.series as usize].to_string(),
                        profiles.types[profile.profile_type as usize].to_string(),
                        profile.start_ns,
                        profile.duration_ns,
                        frames,
                        texts.collect::<Vec<_>>().join(","),
                        chunk.values[index],
                    ));
                }
                std::ops::ControlFlow::Continue(())
            });
            visited.expect("samples");
        }
    }
    rows.sort();
    rows
}

fn options(directory: &Path) -> (StoreOptions, Arc<ManualClock>) {
    let clock = Arc::new(ManualClock::at(NOON_NS));
    let options = StoreOptions {
        clock: Arc::<ManualClock>::clone(&clock),
        sync: SyncMode::Os,
        ..common::options(directory)
    };
    (options, clock)
}

fn store_with(directory: &Path, flushes: &[Vec<Plain>], limits: (u64, u64)) -> Store {
    let (mut options, _) = options(directory);
    (options.compaction_rows, options.compaction_profiles) = limits;
    let store = Store::open(options).expect("opens");
    for profiles in flushes {
        for profile in profiles {
            block_on(store.append("t", profile_of(profile))).expect("is stored");
        }
        block_on(store.flush()).expect("is flushed");
    }
    store
}

fn blocks(store: &Store) -> Vec<Arc<Block>> {
    store
        .snapshot("t", TimeRange::ALL)
        .expect("a snapshot")
        .blocks
}

fn rollups(store: &Store, tier: Tier) -> Vec<Arc<Block>> {
    let mut blocks = store
        .snapshot("t", TimeRange::ALL)
        .expect("a snapshot")
        .rollups;
    blocks.retain(|block| block.tier() == tier);
    blocks
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 16, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn merging_changes_nothing_and_rollups_are_sums(
        flushes in prop::collection::vec(prop::collection::vec(plain(), 0..6), 1..6),
        rows in 1..40_u64,
        profiles in 1..8_u64,
    ) {
        let directory = tempfile::tempdir().expect("a temporary directory");
        let store = store_with(directory.path(), &flushes, (rows, profiles));
        let before = rows_of(&blocks(&store));
        store.compact().expect("merges");
        prop_assert_eq!(rows_of(&blocks(&store)), before.clone());
        check_rollup(&store, Tier::TenMinutes, &before);
        check_rollup(&store, Tier::Hourly, &before);
        let status = store.status();
        prop_assert_eq!(status.compaction.failed_jobs, 0);
        drop(store);
        let (options, _) = options(directory.path());
        let store = Store::open(options.clone()).expect("opens again");
        prop_assert_eq!(rows_of(&blocks(&store)), before.clone());
        drop(store);
        std::fs::remove_file(directory.path().join("catalog.sqlite")).expect("a catalog");
        let store = Store::open(options).expect("opens without a catalog");
        // What the log still has is read from there.
        block_on(store.flush()).expect("is flushed");
        store.compact().expect("merges");
        prop_assert_eq!(rows_of(&blocks(&store)), before.clone());
        check_rollup(&store, Tier::TenMinutes, &before);
    }
}

/// Sums by service, type, bucket and function path, without what was cut.
fn check_rollup(store: &Store, tier: Tier, rows: &[Row]) {
    let totals = |rows: &[Row]| {
        let mut totals: BTreeMap<(String, String, i64), i64> = BTreeMap::new();
        for (labels, profile_type, start_ns, _, _, _, value) in rows {
            let service = labels.split("service-").nth(1).expect("a service");
            let bucket = start_ns - start_ns.rem_euclid(tier.bucket_ns());
            let key = (service[..1].to_owned(), profile_type.clone(), bucket);
            *totals.entry(key).or_default() += value;
        }
        totals.retain(|_, total| *total != 0);
        totals
    };
    let rolled_up = rows_of(&rollups(store, tier));
    assert_eq!(totals(&rolled_up), totals(rows), "{tier:?}");
    for (labels, profile_type, _, duration_ns, _, label, _) in &rolled_up {
        assert_eq!(*duration_ns, tier.bucket_ns());
        assert_eq!(label, "");
        let is_gauge = profile_type == INUSE;
        assert_eq!(
            labels.contains("pod"),
            is_gauge,
            "{labels} of {profile_type}"
        );
    }
}

fn simple(second: i64, value: i64) -> Plain {
    Plain {
        service: 1,
        pod: 0,
        is_gauge: false,
        second,
        samples: vec![(vec![1, 2], None, value)],
    }
}

fn levels(store: &Store) -> Vec<u32> {
    let snapshot = store.snapshot("t", TimeRange::ALL).expect("a snapshot");
    let all = snapshot.blocks.iter().chain(&snapshot.rollups);
    let mut levels: Vec<u32> = all.map(|block| block.meta().level).collect();
    levels.sort_unstable();
    levels
}

#[test]
fn hours_are_merged_when_they_are_over_and_days_when_they_are() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let (options, clock) = options(directory.path());
    let store = Store::open(options).expect("opens");
    for second in [1, 60, 3700] {
        block_on(store.append("t", profile_of(&simple(second, second)))).expect("is stored");
        block_on(store.flush()).expect("is flushed");
    }
    store.compact_due().expect("looks");
    assert_eq!(levels(&store), [0, 0, 0]);
    clock.advance(HOUR_NS + 600 * SECOND_NS);
    store.compact_due().expect("merges the first hour");
    assert_eq!(levels(&store), [0, 1, 10, 11]);
    clock.advance(HOUR_NS);
    store.compact_due().expect("merges the second hour");
    assert_eq!(levels(&store), [1, 1, 10, 10, 11, 11]);
    clock.advance(11 * HOUR_NS);
    store.compact_due().expect("merges the day");
    let lasting = [Level::Day, Level::HourlyDay, Level::TenMinutesDay].map(Level::number);
    let mut lasting = lasting.to_vec();
    lasting.sort_unstable();
    assert_eq!(levels(&store), lasting);
    assert_eq!(common::totals(&store, "t"), [1, 60, 3700]);
}

#[test]
fn hours_that_are_over_are_merged_by_themselves() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let (mut options, clock) = options(directory.path());
    options.compaction_cpu_percent = 50;
    let store = Store::open(options).expect("opens");
    for second in [1, 60] {
        block_on(store.append("t", profile_of(&simple(second, second)))).expect("is stored");
        block_on(store.flush()).expect("is flushed");
    }
    clock.advance(HOUR_NS + 600 * SECOND_NS);
    common::eventually("the hour is merged", || levels(&store) == [1, 10, 11]);
    assert_eq!(common::totals(&store, "t"), [1, 60]);
}

#[test]
fn what_is_merged_leaves_no_files_of_before() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let store = store_with(
        directory.path(),
        &[vec![simple(1, 5)], vec![simple(2, 6)]],
        (1000, 1000),
    );
    store.compact().expect("merges");
    store.apply_retention().expect("forgets what is gone");
    let mut manifests = Vec::new();
    let folder = directory.path().join("blocks/v1/_blocks");
    for entry in std::fs::read_dir(folder).expect("a folder") {
        manifests.push(entry.expect("an entry").file_name());
    }
    assert_eq!(manifests.len(), 3, "{manifests:?}");
}

#[test]
fn a_damaged_block_is_set_aside_and_the_others_are_merged() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let flushes: Vec<Vec<Plain>> = (0..3).map(|n| vec![simple(n, 10 + n)]).collect();
    let store = store_with(directory.path(), &flushes, (1000, 1000));
    let damaged = &blocks(&store)[1];
    let samples = &damaged.meta().files[0];
    let path = directory.path().join("blocks/v1").join(&samples.path);
    damage(&path);
    let error = store.compact().expect_err("one is damaged");
    assert!(error.to_string().contains("checksum"), "{error}");
    store.compact().expect("merges the others");
    assert_eq!(common::totals(&store, "t"), [10, 12]);
    let status = store.status();
    assert_eq!(status.quarantined.len(), 1);
    assert_eq!(status.compaction.failed_jobs, 1);
}

fn damage(path: &Path) {
    let mut content = std::fs::read(path).expect("reads");
    let middle = content.len() / 2;
    content[middle] ^= 0x55;
    std::fs::write(path, content).expect("writes");
}

fn service_profile(service: u8, pod: u8, second: i64, value: i64) -> Plain {
    Plain {
        service,
        pod,
        ..simple(second, value)
    }
}

fn erasure(selector: &str) -> Erasure {
    Erasure {
        selector: selector.parse().expect("a selector"),
        profile_type: None,
        range: TimeRange::ALL,
    }
}

fn total(blocks: &[Arc<Block>]) -> i64 {
    let services = blocks.iter().flat_map(|block| &block.meta().services);
    services.map(|service| service.total).sum()
}

#[test]
fn what_is_erased_is_in_no_file() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let (options, _) = options(directory.path());
    let store = Store::open(options).expect("opens");
    for n in 0..6 {
        let mut profile = profile_of(&service_profile(n % 2, n, 10 * i64::from(n), 1 << n));
        if n % 2 == 1 {
            let name = "a_secret_that_nobody_else_has";
            let function = profile.symbols.intern_function(name, "", "", 0);
            let place = Location::new(FrameKind::Native, 99);
            let location = profile.symbols.intern_location(&place, &[(function, 1, 0)]);
            let stack = profile.stacks.intern(&[location]);
            profile.series[0].samples.push(Sample::new(stack, 1));
        }
        block_on(store.append("t", profile)).expect("is stored");
        match n {
            1 => block_on(store.flush()).expect("is flushed"),
            3 => {
                block_on(store.flush()).expect("is flushed");
                store.compact().expect("merges");
            }
            _ => {}
        }
    }
    assert!(!files_with(directory.path(), b"service-1").is_empty());
    let erased = block_on(store.erase("t", erasure(r#"{service_name="service-1"}"#)));
    let erased = erased.expect("erases");
    assert_eq!(
        (erased.profiles, erased.samples, erased.kept_sums),
        (3, 6, 0)
    );
    assert_eq!(common::totals(&store, "t"), [1, 4, 16]);
    for tier in [Tier::TenMinutes, Tier::Hourly] {
        assert_eq!(total(&rollups(&store, tier)), 1 + 4);
    }
    store.compact().expect("merges");
    assert_eq!(total(&rollups(&store, Tier::Hourly)), 1 + 4 + 16);
    for text in [&b"a_secret_that_nobody_else_has"[..], b"service-1"] {
        assert_eq!(files_with(directory.path(), text), [""; 0]);
    }
}

/// Files that have a text, in whatever table and compressed or not: Parquet is read as a whole.
fn files_with(directory: &Path, text: &[u8]) -> Vec<String> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(directory).expect("a folder") {
        let path = entry.expect("an entry").path();
        if path.is_dir() {
            found.extend(files_with(&path, text));
            continue;
        }
        let mut content = std::fs::read(&path).expect("reads");
        if path
            .extension()
            .is_some_and(|extension| extension == "parquet")
        {
            let file = bytes::Bytes::from(content.clone());
            let reader = SerializedFileReader::new(file).expect("parquet");
            for row in reader.get_row_iter(None).expect("rows") {
                content.extend(row.expect("a row").to_string().into_bytes());
            }
        }
        if content.windows(text.len()).any(|window| window == text) {
            found.push(path.display().to_string());
        }
    }
    found
}

#[test]
fn erasing_by_a_label_that_sums_do_not_have_leaves_the_sums_of_the_others() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let profiles: Vec<Plain> = (0..4)
        .map(|pod| service_profile(1, pod, 30 * i64::from(pod), 1 << pod))
        .collect();
    let store = store_with(directory.path(), &[profiles], (1000, 1000));
    store.compact().expect("merges");
    let erased = block_on(store.erase("t", erasure(r#"{pod="pod-2"}"#))).expect("erases");
    assert_eq!((erased.profiles, erased.kept_sums), (1, 0));
    assert_eq!(common::totals(&store, "t"), [1, 2, 8]);
    for tier in [Tier::TenMinutes, Tier::Hourly] {
        assert_eq!(total(&rollups(&store, tier)), 11, "{tier:?}");
    }
    let nothing = block_on(store.erase("t", erasure(r#"{pod="pod-7"}"#))).expect("erases");
    assert_eq!((nothing.profiles, nothing.blocks), (0, 0));
}

const DAY: Duration = Duration::from_secs(24 * 3600);

fn rule(selector: &str, keep: Duration) -> RetentionRule {
    RetentionRule {
        tenant: None,
        selector: selector.parse().expect("a selector"),
        profile_type: None,
        keep,
    }
}

#[test]
fn rules_on_labels_that_sums_do_not_keep_leave_the_sums_of_all() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let (mut options, clock) = options(directory.path());
    options.retention_rules = vec![
        rule(r#"{pod="pod-0"}"#, DAY),
        rule(r#"{pod="pod-1"}"#, 1000 * DAY),
    ];
    let store = Store::open(options).expect("opens");
    for pod in 0..3 {
        for is_gauge in [false, true] {
            let plain = service_profile(1, pod, 5, 1 << pod);
            let profile = profile_of(&Plain { is_gauge, ..plain });
            block_on(store.append("t", profile)).expect("is stored");
        }
    }
    block_on(store.flush()).expect("is flushed");
    store.compact().expect("merges");
    let after = |days: i64| {
        clock.advance(days * 24 * HOUR_NS);
        store.compact_due().expect("applies the rules");
        store.apply_retention().expect("applies the limits");
        let raw = common::totals(&store, "t");
        let sums = |wanted: &str| {
            let rows = rows_of(&rollups(&store, Tier::TenMinutes));
            let of_type = rows.iter().filter(|row| row.1 == wanted);
            of_type.map(|row| row.6).sum::<i64>()
        };
        (raw, sums(CPU), sums(INUSE))
    };
    assert_eq!(after(2), (vec![2, 2, 4, 4], 7, 6));
    assert_eq!(after(20), (vec![2, 2], 7, 6));
    assert_eq!(after(80), (vec![2, 2], 0, 2));
}

#[test]
fn a_job_that_fails_does_not_keep_what_rules_expire() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let (mut options, clock) = options(directory.path());
    options.retention_rules = vec![rule(r#"{service_name="service-0"}"#, DAY)];
    let store = Store::open(options).expect("opens");
    for service in 0..2 {
        let profile = profile_of(&service_profile(service, 0, 5, 1));
        block_on(store.append("t", profile)).expect("is stored");
        block_on(store.flush()).expect("is flushed");
        if service == 0 {
            store.compact().expect("merges");
        }
    }
    let found = blocks(&store);
    let damaged = found.iter().find(|block| block.meta().level == 0);
    let samples = &damaged.expect("what was flushed").meta().files[0];
    damage(&directory.path().join("blocks/v1").join(&samples.path));
    clock.advance(48 * HOUR_NS);
    let error = store.compact_due().expect_err("one is damaged");
    assert!(error.to_string().contains("checksum"), "{error}");
    assert_eq!(common::totals(&store, "t"), [0; 0]);
}

#[test]
fn rules_keep_some_for_less_and_some_for_more_time() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let (mut options, clock) = options(directory.path());
    options.retention_rules = vec![
        rule(r#"{service_name="service-0"}"#, DAY),
        rule(r#"{service_name="service-2"}"#, 30 * DAY),
    ];
    let store = Store::open(options).expect("opens");
    let days = |store: &Store, clock: &ManualClock, days: i64| {
        clock.advance(days * 24 * HOUR_NS);
        store.compact_due().expect("applies the rules");
        store.apply_retention().expect("applies the limits");
        common::totals(store, "t")
    };
    let old = |service| {
        let profile = profile_of(&service_profile(service, 0, -20 * 24 * 3600, 64));
        block_on(store.append("t", profile))
    };
    assert!(matches!(old(1), Err(AppendError::TooOld { .. })), "no rule");
    assert!(
        matches!(old(0), Err(AppendError::TooOld { .. })),
        "a short one"
    );
    old(2).expect("its rule keeps it");
    block_on(store.erase("t", erasure("{}"))).expect("erases");
    for service in 0..3 {
        let profile = profile_of(&service_profile(service, 0, 5, 1 << service));
        block_on(store.append("t", profile)).expect("is stored");
    }
    block_on(store.flush()).expect("is flushed");
    assert_eq!(days(&store, &clock, 1), [1, 2, 4]);
    assert_eq!(days(&store, &clock, 1), [2, 4]);
    assert_eq!(days(&store, &clock, 13), [4]);
    assert_eq!(total(&rollups(&store, Tier::Hourly)), 2 + 4);
    assert_eq!(days(&store, &clock, 16), [0; 0]);
    assert_eq!(total(&rollups(&store, Tier::Hourly)), 2);
}
