//! What the store finds on disk.

use std::fs;
use std::path::Path;
use std::sync::LazyLock;

use candela_model::FlameTree;
use candela_model::FlameTreeBuilder;
use candela_model::FrameKind;
use candela_model::LabelValue;
use candela_model::Labels;
use candela_model::Link;
use candela_model::Location;
use candela_model::Mapping;
use candela_model::Profile;
use candela_model::ProfileSeries;
use candela_model::Sample;
use candela_model::SampleLabel;
use candela_store::BlockMeta;
use candela_store::Store;
use candela_store::StoreOptions;
use candela_store::SyncMode;
use candela_store::Table;
use candela_store::TimeRange;
use candela_store::fuzzing;
use tempfile::TempDir;
use twox_hash::XxHash3_64;

const TENANT: &str = "fuzz";
const PROFILES: i64 = 5;
/// Bytes of a segment before its first record.
const SEGMENT_HEADER: usize = 32;

/// What a real store wrote, once for the process.
#[derive(Debug)]
struct Sound {
    /// A segment of the log with all profiles, as it is after a clean end.
    segment: Vec<u8>,
    /// The payloads of its records.
    payloads: Vec<Vec<u8>>,
    /// The same profiles in a block, which is in a directory of its own.
    block: BlockMeta,
    directory: TempDir,
}

static SOUND: LazyLock<Sound> = LazyLock::new(Sound::new);

impl Sound {
    fn new() -> Self {
        let directory = memory_directory();
        let runtime = tokio::runtime::Builder::new_current_thread()
            .build()
            .expect("a runtime");
        let options = || StoreOptions {
            sync: SyncMode::Os,
            readable_stacks: true,
            max_age: None,
            max_bytes: None,
            max_volume_percent: None,
            segment_bytes: 1 << 16,
            ..StoreOptions::new(directory.path())
        };
        let store = Store::open(options()).expect("opens");
        runtime.block_on(async {
            for number in 0..PROFILES {
                let profile = profile(number);
                store.append(TENANT, profile).await.expect("appends");
            }
        });
        drop(store);
        let segment = directory.path().join("wal/00000000000000000001.wal");
        let segment = fs::read(segment).expect("reads");
        let store = Store::open(options()).expect("opens");
        runtime.block_on(store.flush()).expect("flushes");
        let snapshot = store.snapshot(TENANT, TimeRange::ALL).expect("a snapshot");
        let block = snapshot.blocks.first().expect("a block").meta().clone();
        let payloads = (0..PROFILES).map(|it| fuzzing::encode_payload(&profile(it)));
        Self {
            segment,
            payloads: payloads.collect(),
            block,
            directory,
        }
    }
}

/// In memory where there is such a file system: nothing is lost when it is.
fn memory_directory() -> TempDir {
    let memory = Path::new("/dev/shm");
    let directory = if memory.is_dir() {
        tempfile::tempdir_in(memory)
    } else {
        tempfile::tempdir()
    };
    directory.expect("a temporary directory")
}

/// One of everything that a profile may have.
pub(crate) fn example_profile() -> Profile {
    profile(1)
}

fn profile(number: i64) -> Profile {
    let mut profile = Profile::default();
    let symbols = &mut profile.symbols;
    let file = symbols.strings.intern("/usr/bin/demo");
    let build_id = symbols.strings.intern("c0ffee");
    let mapping = symbols.intern_mapping(Mapping {
        memory_start: 0x40_0000,
        memory_limit: 0x50_0000,
        file_offset: 0x1000,
        file,
        build_id,
    });
    let outer = symbols.intern_function("main", "_Z4main", "main.c", 10);
    let inner = symbols.intern_function("walk", "", "walk.c", 20);
    let place = Location::new(FrameKind::Native, 0x40_1000).in_mapping(mapping);
    let inlined = symbols.intern_location(&place, &[(inner, 21, 3), (outer, 12, 0)]);
    let bare = symbols.intern_location(&Location::new(FrameKind::Kernel, 7), &[]);
    let unit = symbols.strings.intern("bytes");
    let short = profile.stacks.intern(&[inlined]);
    let long = profile.stacks.intern(&[bare, inlined, inlined]);
    let label_set = profile.label_sets.intern(vec![
        SampleLabel::text(file, build_id),
        SampleLabel {
            key: build_id,
            value: LabelValue::Number { value: -5, unit },
        },
    ]);
    let link = profile.intern_link(Link {
        trace_id: [7; 16],
        span_id: [9; 8],
    });
    for (name, service) in [
        ("process_cpu:cpu:nanoseconds:cpu:nanoseconds", "api"),
        ("memory:inuse_space:bytes:space:bytes", "web"),
    ] {
        let labels = Labels::from_pairs([("service_name", service), ("pod", "p-1")]);
        let profile_type = name.parse().expect("a type");
        let mut series = ProfileSeries::new(labels, profile_type);
        series.start_ns = 1_732_190_400_000_000_000 + number;
        series.duration_ns = 10_000_000_000;
        series.period = 10_000_000;
        series.samples.push(Sample {
            stack: long,
            value: 100 + number,
            label_set,
            link,
            time_ns: series.start_ns + 5,
        });
        series.samples.push(Sample::new(short, 1));
        profile.series.push(series);
    }
    profile
}

/// Stacks for filters.
pub(crate) fn example_tree() -> FlameTree {
    let mut builder = FlameTreeBuilder::new();
    let profile = example_profile();
    builder.add_series(&profile, 0);
    builder.finish()
}

/// The first byte says how the rest damages a sound segment.
///
/// Even: the rest is an offset of two bytes and what is mixed into the segment from there on. What
/// is read back then is what was written, less what was hit. Odd: the rest is a segment of its own,
/// whose checksums are made right, so that what is behind them is read too.
pub(crate) fn log(bytes: &[u8]) {
    let Some((&mode, rest)) = bytes.split_first() else {
        return;
    };
    let sound = &*SOUND;
    let is_damage = mode % 2 == 0;
    let segment = if is_damage {
        let Some((offset, mixed_in)) = rest.split_first_chunk::<2>() else {
            return;
        };
        let offset = usize::from(u16::from_le_bytes(*offset)) % sound.segment.len();
        let mut segment = sound.segment.clone();
        for (byte, mixed) in segment[offset..].iter_mut().zip(mixed_in) {
            *byte ^= mixed;
        }
        if mode == 2 {
            segment.truncate(offset);
        }
        segment
    } else {
        let mut segment = rest.to_vec();
        mend_checksums(&mut segment);
        segment
    };
    let directory = memory_directory();
    fs::write(directory.path().join("00000000000000000001.wal"), segment).expect("writes");
    let Ok(records) = fuzzing::replay_log(directory.path()) else {
        return;
    };
    let sequences: Vec<u64> = records.iter().map(|record| record.sequence).collect();
    assert!(sequences.is_sorted_by(|a, b| a < b), "{sequences:?}");
    if is_damage {
        let mut written = sound.payloads.iter();
        for record in &records {
            let is_one = written.any(|payload| Some(payload) == record.payload.as_ref());
            assert!(is_one, "record {} was never written", record.sequence);
        }
    }
    let again = fuzzing::replay_log(directory.path()).expect("a second start reads the same");
    assert_eq!(again, records);
}

/// Of the header and of each record as far as lengths lead.
fn mend_checksums(segment: &mut [u8]) {
    if let Some((header, _)) = segment.split_first_chunk_mut::<SEGMENT_HEADER>() {
        let (content, checksum) = header.split_at_mut(SEGMENT_HEADER - 4);
        checksum.copy_from_slice(&crc32c::crc32c(content).to_le_bytes());
    }
    let mut offset = SEGMENT_HEADER;
    while let Some(head) = segment.get(offset..offset + 8) {
        let length = head.first_chunk().map_or(0, |it| u32::from_le_bytes(*it)) as usize;
        let start = offset + 8;
        let Some(body) = segment.get(start..start + length).filter(|_| length > 0) else {
            return;
        };
        let checksum = crc32c::crc32c(body).to_le_bytes();
        segment[offset + 4..start].copy_from_slice(&checksum);
        offset = start + length;
    }
}

pub(crate) fn log_seeds() -> Vec<Vec<u8>> {
    let segment = &SOUND.segment;
    let whole = [&[1], &segment[..]].concat();
    let first_two = [&[1], &segment[..segment.len() / 2]].concat();
    vec![
        whole,
        first_two,
        vec![0, 40, 0, 1],
        vec![2, 200, 0, 0],
        [&[0, 90, 0][..], &[0xff; 300]].concat(),
    ]
}

/// What decodes is valid or says why not, and is encoded to what decodes to the same.
pub(crate) fn payload(bytes: &[u8]) {
    let Some(profile) = fuzzing::decode_payload(bytes) else {
        return;
    };
    let encoded = fuzzing::encode_payload(&profile);
    let again = fuzzing::decode_payload(&encoded).expect("own encoding");
    assert_eq!(fuzzing::encode_payload(&again), encoded);
}

pub(crate) fn payload_seeds() -> Vec<Vec<u8>> {
    SOUND.payloads[..2].to_vec()
}

/// The first byte chooses a table of a sound block, the rest takes its file's place; the manifest
/// says that this is what was written, or nothing of the content would be read.
pub(crate) fn block(bytes: &[u8]) {
    let Some((&table, content)) = bytes.split_first() else {
        return;
    };
    let sound = &*SOUND;
    let directory = memory_directory();
    let mut meta = sound.block.clone();
    let replaced = Table::ALL[usize::from(table) % Table::ALL.len()].name();
    for file in &mut meta.files {
        let target = directory.path().join(&file.path);
        fs::create_dir_all(target.parent().expect("a folder")).expect("makes");
        if file.table == replaced {
            fs::write(target, content).expect("writes");
            file.bytes = content.len() as u64;
            file.hash = format!("{:016x}", XxHash3_64::oneshot(content));
            file.chunk_hashes.clear();
            continue;
        }
        let source = sound.directory.path().join("blocks/v1").join(&file.path);
        fs::hard_link(source, target).expect("links");
    }
    let Ok(read) = fuzzing::read_block(directory.path(), meta) else {
        return;
    };
    let mut counted = vec![0_u32; read.samples_of_stacks.len()];
    for id in read.stack_ids {
        counted[id as usize] += 1;
    }
    assert_eq!(
        counted, read.samples_of_stacks,
        "with more columns the rows are the same"
    );
}

pub(crate) fn block_seeds() -> Vec<Vec<u8>> {
    let sound = &*SOUND;
    let tables = Table::ALL.iter().enumerate();
    tables
        .map(|(number, table)| {
            let mut files = sound.block.files.iter();
            let file = files.find(|file| file.table == table.name());
            let path = &file.expect("each table has a file").path;
            let content = fs::read(sound.directory.path().join("blocks/v1").join(path));
            [&[number as u8], &content.expect("reads")[..]].concat()
        })
        .collect()
}
