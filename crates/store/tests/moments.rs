//! Times, traces and spans of single samples are the same after merges.
#![expect(clippy::expect_used, reason = "a test says what went wrong by failing")]

use std::path::Path;
use std::path::PathBuf;

use crate::common::NOON_NS;
use crate::common::block_on;
use crate::common::options;
use crate::common::profile;
use candela_model::Link;
use candela_model::Profile;
use candela_model::Sample;
use candela_store::Store;
use candela_store::StoreOptions;
use candela_store::TimeRange;
use parquet::file::reader::FileReader;
use parquet::file::reader::SerializedFileReader;
use parquet::record::RowAccessor;

/// Value, event time, trace id and span id of each sample of the files below a folder.
type Moment = (i64, Option<i64>, Option<Vec<u8>>, Option<Vec<u8>>);

/// The first sample has all, the second a time, the third a span without a time, the last nothing.
fn profile_with_moments(number: u8) -> Profile {
    let mut profile = profile(1);
    let stack = profile.series[0].samples[0].stack;
    let value = i64::from(number) * 10;
    let link = profile.intern_link(Link {
        trace_id: [number; 16],
        span_id: [number + 100; 8],
    });
    let time_ns = NOON_NS + value;
    profile.series[0].samples = vec![
        Sample {
            time_ns,
            link,
            ..Sample::new(stack, value + 1)
        },
        Sample {
            time_ns: time_ns + 1,
            ..Sample::new(stack, value + 2)
        },
        Sample {
            link,
            ..Sample::new(stack, value + 3)
        },
        Sample::new(stack, value + 4),
    ];
    profile
}

fn moments(directory: &Path, store: &Store) -> Vec<Moment> {
    let snapshot = store.snapshot("t", TimeRange::ALL).expect("a snapshot");
    let files = snapshot.blocks.iter().flat_map(|block| &block.meta().files);
    let files: Vec<PathBuf> = files
        .filter(|file| file.table == "samples")
        .map(|file| directory.join("blocks/v1").join(&file.path))
        .collect();
    let mut moments: Vec<Moment> = files.iter().flat_map(|file| moments_of(file)).collect();
    moments.sort();
    moments
}

fn moments_of(file: &Path) -> Vec<Moment> {
    let reader = SerializedFileReader::try_from(file).expect("a Parquet file");
    let columns = reader.metadata().file_metadata().schema_descr();
    let position = |name: &str| {
        let mut columns = columns.columns().iter();
        columns
            .position(|column| column.name() == name)
            .expect("a column")
    };
    let names = ["value", "event_time", "trace_id", "span_id"];
    let [value, time, trace, span] = names.map(position);
    let rows = reader.get_row_iter(None).expect("rows");
    let moments = rows.map(|row| {
        let row = row.expect("a row");
        let bytes = |position| row.get_bytes(position).ok().map(|it| it.data().to_vec());
        (
            row.get_long(value).expect("a value"),
            row.get_timestamp_micros(time)
                .or_else(|_| row.get_long(time))
                .ok(),
            bytes(trace),
            bytes(span),
        )
    });
    moments.collect()
}

#[test]
fn merges_keep_the_moment_of_each_sample() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let store = Store::open(StoreOptions {
        rollups: Vec::new(),
        ..options(directory.path())
    });
    let store = store.expect("opens");
    for number in 1..=3 {
        block_on(store.append("t", profile_with_moments(number))).expect("appends");
        block_on(store.flush()).expect("flushes");
    }
    let before = moments(directory.path(), &store);
    assert_eq!(before.len(), 12);
    let expected = (
        11,
        Some(NOON_NS + 10),
        Some(vec![1; 16]),
        Some(vec![101; 8]),
    );
    assert_eq!(before[0], expected);
    assert_eq!(before[3], (14, None, None, None));
    store.compact().expect("merges");
    let snapshot = store.snapshot("t", TimeRange::ALL).expect("a snapshot");
    assert_eq!(snapshot.blocks.len(), 1, "one block of three");
    assert_eq!(moments(directory.path(), &store), before);
}
