//! One damaged byte at every offset of a small log, and of the file that identifies it: what is
//! whole is kept, what is lost is counted. Records have their sequences as values.

use std::fs;
use std::path::Path;
use std::path::PathBuf;

use crate::common::NOON_NS;
use crate::common::block_on;
use crate::common::options;
use crate::common::totals;
use candela_model::FrameKind;
use candela_model::Labels;
use candela_model::Location;
use candela_model::Profile;
use candela_model::ProfileSeries;
use candela_model::Sample;
use candela_store::Store;
use candela_store::StoreOptions;
use tempfile::TempDir;

const HEADER_BYTES: usize = 32;
/// How much of what is allocated behind the records is damaged, too.
const TAIL_BYTES: usize = 16;
/// One flipped bit, and another byte altogether.
const MASKS: [u8; 2] = [0x01, 0xff];

/// In memory where there is such a file system: stores are opened some thousand times, and no power
/// is cut here.
fn data_directory() -> TempDir {
    let memory = Path::new("/dev/shm");
    let directory = if memory.is_dir() {
        tempfile::tempdir_in(memory)
    } else {
        tempfile::tempdir()
    };
    directory.expect("a temporary directory")
}

fn open(directory: &Path) -> Store {
    let options = StoreOptions {
        segment_bytes: 2048,
        ..options(directory)
    };
    Store::open(options).expect("opens")
}

/// One of few bytes.
fn profile(value: i64) -> Profile {
    let mut profile = Profile::default();
    let place = Location::new(FrameKind::Native, 16);
    let leaf = profile.symbols.intern_location(&place, &[]);
    let stack = profile.stacks.intern(&[leaf]);
    let profile_type = "a:b:c:d:e".parse().expect("a type");
    let labels = Labels::from_pairs([("service_name", "a")]);
    let mut series = ProfileSeries::new(labels, profile_type);
    series.start_ns = NOON_NS;
    series.samples.push(Sample::new(stack, value));
    profile.series.push(series);
    profile
}

fn append(store: &Store, values: impl IntoIterator<Item = i64>) {
    block_on(async {
        for value in values {
            store.append("t", profile(value)).await.expect("appends");
        }
    });
}

fn reopened(directory: &Path) -> Found {
    let store = open(directory);
    let status = store.status();
    Found {
        values: totals(&store, "t"),
        damaged_records: status.damaged_records,
        torn_tails: status.torn_tails,
    }
}

/// What a start finds.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Found {
    values: Vec<i64>,
    damaged_records: u64,
    torn_tails: u64,
}

/// A log as it was at some moment.
struct Log {
    directory: PathBuf,
    segments: Vec<Segment>,
    /// What identifies it.
    identity: (PathBuf, Vec<u8>),
}

/// A segment, its records, and a few bytes of what is allocated behind them.
struct Segment {
    path: PathBuf,
    content: Vec<u8>,
    /// Where records begin, and behind the last one where it ends.
    offsets: Vec<usize>,
    /// The sequence of the first record.
    first: i64,
}

impl Log {
    fn of(data_dir: &Path) -> Self {
        let directory = data_dir.join("wal");
        let entries = fs::read_dir(&directory).expect("the log");
        let paths = entries.map(|entry| entry.expect("an entry").path());
        let mut segments: Vec<Segment> = paths.filter_map(Segment::at).collect();
        segments.sort_by_key(|segment| segment.first);
        let path = directory.join("identity");
        let identity = fs::read(&path).expect("beside the log from the start");
        Self {
            directory,
            segments,
            identity: (path, identity),
        }
    }

    fn restore(&self) {
        fs::remove_dir_all(&self.directory).expect("removes");
        fs::create_dir(&self.directory).expect("makes");
        for segment in &self.segments {
            fs::write(&segment.path, &segment.content).expect("writes");
        }
        let (path, content) = &self.identity;
        fs::write(path, content).expect("writes");
    }
}

impl Segment {
    /// `None` for other files.
    fn at(path: PathBuf) -> Option<Self> {
        let first = path.file_name()?.to_str()?.strip_suffix(".wal")?;
        let first = first.parse().expect("a sequence");
        let mut content = fs::read(&path).expect("reads");
        let mut offsets = vec![HEADER_BYTES];
        loop {
            let offset = offsets[offsets.len() - 1];
            match content[offset..].first_chunk() {
                Some(length) if *length != [0; 4] => {
                    offsets.push(offset + 8 + u32::from_le_bytes(*length) as usize);
                }
                _ => {
                    content.truncate(offset + TAIL_BYTES);
                    return Some(Self {
                        path,
                        content,
                        offsets,
                        first,
                    });
                }
            }
        }
    }

    /// The value of the record that has this byte.
    fn value_at(&self, offset: usize) -> Option<i64> {
        let mut records = self.offsets.windows(2).zip(self.first..);
        let hit = records.find(|(ends, _)| (ends[0]..ends[1]).contains(&offset));
        hit.map(|(_, value)| value)
    }

    /// Whether this byte is behind all records that have another one behind them.
    fn is_of_end(&self, offset: usize) -> bool {
        offset >= self.offsets[self.offsets.len() - 2]
    }
}

/// What a start is to find when a byte is damaged, of a log whose first records may be in blocks too.
fn expected(log: &Log, damaged: &Segment, offset: usize, last: i64, in_blocks: i64) -> Found {
    let lost = damaged.value_at(offset).filter(|&value| value > in_blocks);
    let is_newest = damaged.first == log.segments[log.segments.len() - 1].first;
    // Nobody can tell it from a record that was being written when the power went.
    let is_torn = is_newest && damaged.is_of_end(offset);
    Found {
        values: (1..=last).filter(|&value| Some(value) != lost).collect(),
        damaged_records: u64::from(lost.is_some() && !is_torn),
        torn_tails: u64::from(is_torn),
    }
}

/// Starts twice with a file that has one byte damaged.
fn assert_found(
    log: &Log,
    file: (&Path, &[u8]),
    (offset, masks): (usize, &[u8]),
    expected: &Found,
) {
    let data_dir = log.directory.parent().expect("the data directory");
    let (path, content) = file;
    // What was torn is cut off, and counted once.
    let again = Found {
        torn_tails: 0,
        ..expected.clone()
    };
    for mask in masks {
        log.restore();
        let mut damaged = content.to_vec();
        damaged[offset] ^= mask;
        fs::write(path, damaged).expect("writes");
        let context = format!("{}, byte {offset} with {mask:#x}", path.display());
        assert_eq!(reopened(data_dir), *expected, "{context}");
        assert_eq!(reopened(data_dir), again, "{context}, again");
    }
}

/// Damages each byte of the log of so many records, of which the first may be in blocks, too.
fn damage_each_byte(log: &Log, masks: &[u8], last: i64, in_blocks: i64) {
    for segment in &log.segments {
        let file = (&*segment.path, &*segment.content);
        for offset in 0..segment.content.len() {
            let expected = expected(log, segment, offset, last, in_blocks);
            assert_found(log, file, (offset, masks), &expected);
        }
    }
    let (path, content) = &log.identity;
    let all = Found {
        values: (1..=last).collect(),
        damaged_records: 0,
        torn_tails: 0,
    };
    for offset in 0..content.len() {
        assert_found(log, (path, content), (offset, masks), &all);
    }
}

#[test]
fn a_damaged_byte_before_the_first_flush_loses_its_record_at_most() {
    let directory = data_directory();
    let store = open(directory.path());
    append(&store, 1..=3);
    // While it is written to, so that there is what is allocated behind the records.
    let log = Log::of(directory.path());
    drop(store);
    damage_each_byte(&log, &MASKS, 3, 0);
}

#[test]
fn so_it_does_in_a_log_of_two_segments() {
    let directory = data_directory();
    append(&open(directory.path()), 1..=2);
    let store = open(directory.path());
    append(&store, [3]);
    let log = Log::of(directory.path());
    drop(store);
    assert_eq!(log.segments.len(), 2);
    damage_each_byte(&log, &MASKS[..1], 3, 0);
}

#[test]
fn what_is_in_a_block_is_not_read_again_from_a_damaged_log() {
    let directory = data_directory();
    let store = open(directory.path());
    append(&store, 1..=2);
    block_on(store.flush()).expect("flushes");
    let log = Log::of(directory.path());
    drop(store);
    assert_eq!(log.segments.len(), 1, "the newest one stays");
    damage_each_byte(&log, &MASKS[..1], 2, 2);
}

#[test]
fn a_log_of_before_there_was_an_identity_gets_one() {
    let directory = data_directory();
    append(&open(directory.path()), 1..=3);
    let path = directory.path().join("wal/identity");
    let identity = fs::read(&path).expect("beside the log from the start");
    fs::remove_file(&path).expect("removes");
    assert_eq!(reopened(directory.path()).values, [1, 2, 3]);
    assert_eq!(fs::read(&path).expect("it is there"), identity);
    damage_headers(directory.path());
    let found = reopened(directory.path());
    assert_eq!((found.values, found.damaged_records), (vec![1, 2, 3], 0));
}

fn damage_headers(data_dir: &Path) {
    for Segment { path, content, .. } in &Log::of(data_dir).segments {
        let mut damaged = content.clone();
        damaged[12] ^= 1;
        fs::write(path, damaged).expect("writes");
    }
}

#[test]
fn a_log_that_nothing_identifies_is_set_aside_and_counted() {
    for is_in_block in [false, true] {
        let directory = data_directory();
        let store = open(directory.path());
        append(&store, 1..=3);
        if is_in_block {
            block_on(store.flush()).expect("flushes");
        }
        drop(store);
        damage_headers(directory.path());
        fs::write(directory.path().join("wal/identity"), "").expect("writes");
        let in_blocks = if is_in_block {
            vec![1, 2, 3]
        } else {
            Vec::new()
        };
        for damaged_records in [3, 0] {
            let found = reopened(directory.path());
            assert_eq!(found.values, in_blocks, "each once at most");
            assert_eq!(found.damaged_records, damaged_records);
        }
        let aside = format!("wal/{:020}.wal.damaged", 1);
        assert!(directory.path().join(aside).is_file());
        append(&open(directory.path()), [4]);
        assert_eq!(
            reopened(directory.path()).values,
            [in_blocks, vec![4]].concat()
        );
    }
}

#[test]
fn segments_of_another_log_are_right_about_themselves() {
    let other = data_directory();
    append(&open(other.path()), [4, 5]);
    let directory = data_directory();
    let store = open(directory.path());
    append(&store, 1..=3);
    block_on(store.flush()).expect("flushes");
    drop(store);
    // By the identity of this one, both of the other's records would be in its block.
    let (there, here) = (Log::of(other.path()), Log::of(directory.path()));
    for segment in here.segments {
        fs::remove_file(segment.path).expect("removes");
    }
    for Segment { path, content, .. } in there.segments {
        let name = path.file_name().expect("a name");
        fs::write(here.directory.join(name), content).expect("writes");
    }
    for _ in 0..2 {
        assert_eq!(reopened(directory.path()).values, [1, 2, 3, 4, 5]);
        // With the identity that the first start noted.
        damage_headers(directory.path());
    }
}
