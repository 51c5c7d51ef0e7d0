//! The reader of samples sees what the general reader sees, whichever rows are asked for.

use std::fs::File;
use std::ops::ControlFlow;
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;

use arrow_array::Array;
use arrow_array::Int64Array;
use arrow_array::UInt32Array;
use arrow_array::cast::AsArray;
use arrow_array::types::Int64Type;
use arrow_array::types::TimestampNanosecondType;
use arrow_array::types::UInt32Type;
use candela_model::FrameKind;
use candela_model::LabelSetId;
use candela_model::Labels;
use candela_model::Link;
use candela_model::Location;
use candela_model::Profile;
use candela_model::ProfileSeries;
use candela_model::Sample;
use candela_model::SampleLabel;
use candela_model::StackId;
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;

use super::reader::Block;
use super::samples::SampleColumns;
use super::schema::Table;
use crate::clock::ManualClock;
use crate::options::StoreOptions;
use crate::snapshot::TimeRange;
use crate::store::Store;

const PROFILES: u64 = 40;
const STACKS: usize = 3000;
const SAMPLES: u64 = 5000;

/// The same numbers in each run (SplitMix64).
struct Random(u64);

/// Row, stack, value, label set, link and time.
type Row = (u64, u32, i64, u32, Link, i64);

/// Columns that not every reader asks for.
const ALL_COLUMNS: SampleColumns = SampleColumns {
    label_sets: true,
    links: true,
    times: true,
};

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ mixed >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ mixed >> 31
    }

    fn below(&mut self, bound: u64) -> u64 {
        self.next() % bound
    }
}

/// Values are of all widths and signs; labels are in some profiles and at some samples there.
fn profile(number: u64, random: &mut Random) -> Profile {
    let mut profile = Profile::default();
    let stacks: Vec<StackId> = (0..STACKS)
        .map(|stack| {
            let name = format!("function_{stack}");
            let function = profile.symbols.intern_function(&name, "", "", 0);
            let place = Location::new(FrameKind::Native, stack as u64);
            let location = profile.symbols.intern_location(&place, &[(function, 1, 0)]);
            profile.stacks.intern(&[location])
        })
        .collect();
    let key = profile.symbols.strings.intern("request");
    let sets: Vec<LabelSetId> = (0..50)
        .map(|value| {
            let value = profile.symbols.strings.intern(&value.to_string());
            profile
                .label_sets
                .intern(vec![SampleLabel::text(key, value)])
        })
        .collect();
    let labels = Labels::from_pairs([("service_name", format!("s{}", number % 3).as_str())]);
    let profile_type = "x:y:bytes:z:bytes".parse().expect("five parts");
    let mut series = ProfileSeries::new(labels, profile_type);
    series.start_ns = number as i64;
    let is_labeled = number % 3 != 1;
    // Long stretches of one profile are without labels: pages of nulls alone.
    let is_rare = number % 3 == 2;
    for _ in 0..SAMPLES {
        let stack = stacks[random.below(STACKS as u64) as usize];
        let value = match number % 4 {
            0 => 1 + random.below(3) as i64,
            1 => random.next().cast_signed() >> random.below(60),
            2 => 10_000_000,
            _ => random.next().cast_signed() >> 8,
        };
        let has_label = is_labeled && (!is_rare || random.below(2000) == 0);
        let label_set = match has_label {
            true => sets[random.below(50) as usize],
            false => LabelSetId(0),
        };
        // Few spans in most profiles; in some so many traces that no dictionary takes them.
        let link = match number % 5 {
            0 => Link::default(),
            1 => link_of(0, random.next()),
            2 => link_of(1 + random.below(7), random.below(3)),
            _ => link_of(random.next(), random.next()),
        };
        let link = profile.intern_link(link);
        series.samples.push(Sample {
            label_set,
            link,
            // No time in every fourth profile, and at some samples elsewhere.
            time_ns: match (number % 4, random.below(9)) {
                (3, _) | (_, 0) => 0,
                _ => 1 + random.below(1 << 40).cast_signed(),
            },
            ..Sample::new(stack, value)
        });
    }
    profile.series.push(series);
    profile
}

fn link_of(trace: u64, span: u64) -> Link {
    let mut link = Link::default();
    link.trace_id[4..12].copy_from_slice(&trace.to_be_bytes());
    link.span_id.copy_from_slice(&span.to_be_bytes());
    link
}

fn expected_rows(block: &Block, directory: &Path) -> Vec<Row> {
    let mut files = block.meta().files.iter();
    let file = files.find(|file| file.table == Table::Samples.name());
    let path = directory
        .join("blocks/v1")
        .join(&file.expect("samples").path);
    let file = File::open(path).expect("opens");
    let builder = ParquetRecordBatchReaderBuilder::try_new(file).expect("Parquet");
    assert!(
        builder.metadata().num_row_groups() > 2,
        "several row groups"
    );
    let mut rows = Vec::new();
    for batch in builder.build().expect("a reader") {
        let batch = batch.expect("a batch");
        let column = |name| batch.column_by_name(name).expect("a column");
        let stacks: &UInt32Array = column("stack_id").as_primitive::<UInt32Type>();
        let values: &Int64Array = column("value").as_primitive::<Int64Type>();
        let sets: &UInt32Array = column("label_set_id").as_primitive::<UInt32Type>();
        let traces = column("trace_id").as_fixed_size_binary();
        let spans = column("span_id").as_fixed_size_binary();
        let times = column("event_time").as_primitive::<TimestampNanosecondType>();
        for index in 0..batch.num_rows() {
            let set = if sets.is_null(index) {
                0
            } else {
                sets.value(index)
            };
            let mut link = Link::default();
            if traces.is_valid(index) {
                link.trace_id.copy_from_slice(traces.value(index));
            }
            if spans.is_valid(index) {
                link.span_id.copy_from_slice(spans.value(index));
            }
            let row = rows.len() as u64;
            let time_ns = if times.is_null(index) {
                0
            } else {
                times.value(index)
            };
            let (stack, value) = (stacks.value(index), values.value(index));
            rows.push((row, stack, value, set, link, time_ns));
        }
    }
    rows
}

fn scanned_rows(block: &Block, ranges: &[Range<u64>], columns: SampleColumns) -> Vec<Row> {
    let mut rows = Vec::new();
    let scanned = block.scan_samples(ranges, columns, &mut |chunk| {
        for (index, (&stack, &value)) in chunk.stack_ids.iter().zip(chunk.values).enumerate() {
            let set = chunk.label_sets.get(index).copied().unwrap_or(0);
            let link = Link {
                trace_id: chunk.trace_ids.get(index).copied().unwrap_or_default(),
                span_id: chunk.span_ids.get(index).copied().unwrap_or_default(),
            };
            let row = chunk.first_row + index as u64;
            let time_ns = chunk.times_ns.get(index).copied().unwrap_or(0);
            rows.push((row, stack, value, set, link, time_ns));
        }
        ControlFlow::Continue(())
    });
    scanned.expect("scans");
    rows
}

/// Ascending, some empty, some touching, most short.
fn random_ranges(random: &mut Random, rows: u64) -> Vec<Range<u64>> {
    let mut ranges = Vec::new();
    let mut row = random.below(rows / 4);
    while row < rows {
        let longest = [5, 300, 9000, 70_000][random.below(4) as usize];
        let end = rows.min(row + random.below(longest));
        ranges.push(row..end);
        let gap = [1, 5000, 90_000][random.below(3) as usize];
        row = end + random.below(gap);
        if ranges.len() > 40 {
            break;
        }
    }
    ranges
}

#[test]
fn scans_equal_the_general_reader() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let mut options = StoreOptions::new(directory.path());
    options.max_age = None;
    options.max_bytes = None;
    options.max_volume_percent = None;
    // Nothing is flushed or merged by itself.
    options.compaction_cpu_percent = 0;
    options.clock = Arc::new(ManualClock::default());
    let store = Store::open(options).expect("opens");
    let runtime = tokio::runtime::Builder::new_current_thread().build();
    let runtime = runtime.expect("a runtime");
    let mut random = Random(7);
    runtime.block_on(async {
        for number in 0..PROFILES {
            let profile = profile(number, &mut random);
            store.append("t", profile).await.expect("appends");
        }
        store.flush().await.expect("flushes");
    });
    let snapshot = store.snapshot("t", TimeRange::ALL).expect("a snapshot");
    let [block] = &snapshot.blocks[..] else {
        panic!("one block");
    };
    let all = expected_rows(block, directory.path());
    assert!(all.len() > 190_000, "{} rows", all.len());
    assert_eq!(all.len() as u64, block.meta().rows);
    for round in 0..30 {
        let whole = 0..block.meta().rows;
        let ranges = match round {
            0 => vec![whole],
            _ => random_ranges(&mut random, block.meta().rows),
        };
        let columns = SampleColumns {
            label_sets: round % 2 == 0,
            links: round % 3 == 0,
            times: round % 5 < 2,
        };
        let expected = ranges.iter().cloned().flatten().map(|row| {
            let (row, stack, value, set, link, time_ns) = all[row as usize];
            let set = if columns.label_sets { set } else { 0 };
            let link = if columns.links { link } else { Link::default() };
            let time_ns = if columns.times { time_ns } else { 0 };
            (row, stack, value, set, link, time_ns)
        });
        let found = scanned_rows(block, &ranges, columns);
        assert!(found.iter().copied().eq(expected), "{ranges:?}");
    }
    assert!(block.has_links().expect("a footer"));
    assert!(block.has_times().expect("a footer"));
    let present = all.iter().find(|row| row.4.trace_id != [0; 16]);
    let present = present.expect("a trace").4.trace_id;
    assert!(block.may_have_traces(&[present]).expect("filters"));
    let absent = (1..200_u8).filter(|&id| block.may_have_traces(&[[id; 16]]).expect("filters"));
    assert!(
        absent.count() < 40,
        "most traces that are not there are ruled out"
    );
    // Each thread of a query has its own part of the ranges.
    let halves = std::thread::scope(|scope| {
        let middle = block.meta().rows / 2 + 17;
        let parts = [0..middle, middle..block.meta().rows];
        let threads = parts.map(|part| scope.spawn(|| scanned_rows(block, &[part], ALL_COLUMNS)));
        threads.map(|thread| thread.join().expect("no panic"))
    });
    assert!(halves.concat() == all, "two threads at once");
}
