//! Flipped bytes in every kind of file: what is damaged is named and set aside, the rest answers,
//! and no number is wrong.

use std::fs;
use std::ops::ControlFlow;
use std::path::Path;
use std::path::PathBuf;
use std::sync::Arc;

use crate::common::block_on;
use crate::common::options;
use crate::common::profile;
use crate::common::totals;
use candela_store::Block;
use candela_store::BlockError;
use candela_store::ProfileRow;
use candela_store::SampleColumns;
use candela_store::Store;
use candela_store::TimeRange;
use candela_store::rebuild_catalog;
use candela_store::verify_blocks;

const TABLES: [&str; 5] = [
    "samples",
    "profiles",
    "label_sets",
    "stack_nodes",
    "locations",
];

/// All that is stored: 1 and 2 in a block, 3 in another, 4, 5 and 6 in the log.
const ALL: [i64; 6] = [1, 2, 3, 4, 5, 6];

/// Numbers that look like chance and are the same in every run.
struct Numbers(u64);

impl Numbers {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    fn below(&mut self, bound: usize) -> usize {
        (self.next() % bound as u64) as usize
    }
}

/// How many positions of each kind of file are tried; `CANDELA_CORRUPTION_ROUNDS` for more.
fn rounds(usual: u64) -> std::ops::Range<u64> {
    let wanted = std::env::var("CANDELA_CORRUPTION_ROUNDS").ok();
    0..wanted
        .and_then(|rounds| rounds.parse().ok())
        .unwrap_or(usual)
}

fn pristine() -> tempfile::TempDir {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let store = Store::open(options(directory.path())).expect("opens");
    block_on(async {
        for values in [&[1, 2][..], &[3][..]] {
            for &value in values {
                store.append("t", profile(value)).await.expect("appends");
            }
            store.flush().await.expect("flushes");
        }
        for value in [4, 5, 6] {
            store.append("t", profile(value)).await.expect("appends");
        }
    });
    directory
}

fn copy(from: &Path) -> tempfile::TempDir {
    let to = tempfile::tempdir().expect("a temporary directory");
    for path in files_below(from) {
        let target = to.path().join(path.strip_prefix(from).expect("below it"));
        fs::create_dir_all(target.parent().expect("a folder")).expect("makes");
        fs::copy(&path, target).expect("copies");
    }
    to
}

fn files_below(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).expect("a folder") {
        let path = entry.expect("an entry").path();
        if path.is_dir() {
            found.extend(files_below(&path));
        } else {
            found.push(path);
        }
    }
    found.sort();
    found
}

/// Changes one to four bytes.
fn flip(path: &Path, numbers: &mut Numbers) {
    let mut content = fs::read(path).expect("reads");
    for _ in 0..=numbers.below(4) {
        let position = numbers.below(content.len());
        content[position] ^= 1 << numbers.below(8);
    }
    fs::write(path, content).expect("writes");
}

/// The values in a block, each found by way of its stack's innermost function.
fn values(block: &Block) -> Result<Vec<i64>, BlockError> {
    let (profiles, stacks) = (block.profiles()?, block.stacks()?);
    let (labels, locations) = (block.labels()?, block.locations()?);
    let mut found = Vec::new();
    for &ProfileRow {
        first_row,
        sample_count,
        total,
        series,
        ..
    } in &profiles.rows
    {
        let labels_of_series = &profiles.series[series as usize];
        assert_eq!(labels_of_series.get("service_name"), Some("demo"));
        assert!(labels.sets.len() >= 2);
        let rows = first_row..first_row + u64::from(sample_count);
        block.scan_samples(&[rows], SampleColumns::default(), &mut |chunk| {
            for (&stack, &value) in chunk.stack_ids.iter().zip(chunk.values) {
                let node = stacks.node_of_stack[stack as usize];
                let location = stacks.locations[node as usize];
                let name = locations.text(locations.get(location).function_name);
                assert_eq!(name, format!("function_{value}"));
                assert_eq!(value, total);
                found.push(value);
            }
            ControlFlow::Continue(())
        })?;
    }
    Ok(found)
}

/// What a store answers, after whatever cannot be read was reported, as queries do.
fn answer(store: &Store) -> Vec<i64> {
    let snapshot = store.snapshot("t", TimeRange::ALL).expect("a snapshot");
    let mut found = Vec::new();
    for block in &snapshot.blocks {
        match values(block) {
            Ok(values) => found.extend(values),
            Err(error) => store.report(&error).expect("notes it"),
        }
    }
    let heads = snapshot.heads.iter().flat_map(|head| &head.profiles);
    found.extend(heads.map(|profile| profile.total));
    found.sort_unstable();
    found
}

fn reasons(store: &Store) -> String {
    let quarantined = store.status().quarantined;
    let reasons = quarantined.into_iter().map(|block| block.reason);
    reasons.collect::<Vec<_>>().join("; ")
}

#[test]
fn a_damaged_table_takes_its_block_and_no_other() {
    let pristine = pristine();
    for table in TABLES {
        for round in rounds(6) {
            let mut numbers = Numbers(round);
            let directory = copy(pristine.path());
            let folder = directory.path().join("blocks/v1").join(table);
            let files = files_below(&folder);
            let path = &files[numbers.below(files.len())];
            flip(path, &mut numbers);
            let name = path.file_name().and_then(|name| name.to_str());
            let name = name.expect("a name");
            for start in 0..2 {
                let store = Store::open(options(directory.path())).expect("opens");
                let found = answer(&store);
                let rest = [&[1, 2, 4, 5, 6][..], &[3, 4, 5, 6][..]];
                let context = format!("{table}, round {round}, start {start}: {found:?}");
                assert!(rest.contains(&&found[..]), "{context}");
                assert_eq!(store.status().quarantined.len(), 1, "{context}");
                assert!(
                    reasons(&store).contains(name),
                    "{context}: {}",
                    reasons(&store)
                );
            }
            let mut damaged = Vec::new();
            let verified = verify_blocks(&options(directory.path()), &mut |check| {
                damaged.extend(check.faults.clone());
            });
            verified.expect("reads");
            assert_eq!(damaged.len(), 1, "{damaged:?}");
            assert!(damaged[0].contains(name), "{damaged:?}");
        }
    }
}

#[test]
fn a_damaged_manifest_is_named_when_the_catalog_is_lost() {
    let pristine = pristine();
    for round in rounds(40) {
        let mut numbers = Numbers(round);
        let directory = copy(pristine.path());
        let folder = directory.path().join("blocks/v1/_blocks");
        let files = files_below(&folder);
        let path = &files[numbers.below(files.len())];
        flip(path, &mut numbers);
        let store = Store::open(options(directory.path())).expect("opens");
        assert_eq!(answer(&store), ALL, "round {round}: the catalog has it too");
        drop(store);
        fs::remove_file(directory.path().join("catalog.sqlite")).expect("removes");
        let store = Store::open(options(directory.path())).expect("opens");
        let found = answer(&store);
        if found != ALL {
            let rest = [&[1, 2, 4, 5, 6][..], &[3, 4, 5, 6][..]];
            assert!(rest.contains(&&found[..]), "round {round}: {found:?}");
            let name = path.file_name().and_then(|name| name.to_str());
            let reasons = reasons(&store);
            assert!(
                reasons.contains(name.expect("a name")),
                "round {round}: {reasons}"
            );
        }
    }
}

#[test]
fn a_damaged_catalog_is_named_and_made_again() {
    let pristine = pristine();
    let mut refused = 0;
    for round in rounds(60) {
        let mut numbers = Numbers(round);
        let directory = copy(pristine.path());
        let path = directory.path().join("catalog.sqlite");
        flip(&path, &mut numbers);
        if let Err(error) = Store::open(options(directory.path())) {
            refused += 1;
            let message = error.to_string();
            assert!(
                message.contains("catalog.sqlite"),
                "round {round}: {message}"
            );
            let rebuilt = rebuild_catalog(&options(directory.path()));
            assert_eq!(rebuilt.expect("is made again").damaged, []);
        }
        let store = Store::open(options(directory.path())).expect("opens");
        assert_eq!(answer(&store), ALL, "round {round}");
    }
    assert!(refused > 0, "no flip hit what counts");
}

#[test]
fn a_damaged_log_loses_what_was_hit_and_says_so() {
    let pristine = pristine();
    for round in rounds(60) {
        let mut numbers = Numbers(round);
        let directory = copy(pristine.path());
        let files = files_below(&directory.path().join("wal"));
        let path = &files[numbers.below(files.len())];
        flip(path, &mut numbers);
        let store = Store::open(options(directory.path())).expect("opens");
        let found = answer(&store);
        assert!(found.starts_with(&[1, 2, 3]), "round {round}: {found:?}");
        assert!(
            found.iter().all(|value| ALL.contains(value)),
            "round {round}: {found:?}"
        );
        let mut unique = found.clone();
        unique.dedup();
        assert_eq!(unique, found, "round {round}");
        let status = store.status();
        let noted = status.damaged_records + status.torn_tails;
        assert!(found == ALL || noted > 0, "round {round}: {found:?}");
        block_on(store.append("t", profile(7))).expect("goes on");
        drop(store);
        let store = Store::open(options(directory.path())).expect("opens again");
        assert_eq!(answer(&store), [&found[..], &[7]].concat(), "round {round}");
    }
}

#[test]
fn what_the_lock_file_says_does_not_matter() {
    let pristine = pristine();
    let store = Arc::new(Store::open(options(pristine.path())).expect("opens"));
    let garbage = [0xff_u8, 0, 13, 27, 200];
    fs::write(pristine.path().join("LOCK"), garbage).expect("writes");
    let error = Store::open(options(pristine.path())).expect_err("in use");
    assert!(
        error.to_string().contains("in use by another server"),
        "{error}"
    );
    drop(store);
    let store = Store::open(options(pristine.path())).expect("opens");
    assert_eq!(answer(&store), ALL);
    assert_eq!(totals(&store, "t"), ALL);
}
