//! Blocks are plain Parquet: the general reader sees the tables as they are documented.

use std::collections::BTreeMap;
use std::fs::File;

use crate::common::NOON_NS;
use crate::common::block_on;
use crate::common::options;
use crate::common::profile;
use crate::common::profile_of;
use crate::common::totals;
use arrow_array::Array;
use arrow_array::Int64Array;
use arrow_array::ListArray;
use arrow_array::RecordBatch;
use arrow_array::StringArray;
use arrow_array::UInt32Array;
use candela_store::Store;
use candela_store::StoreOptions;
use candela_store::TimeRange;
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;

/// The columns of each table, as `docs/storage.md` has them.
const COLUMNS: [(&str, &[&str]); 5] = [
    (
        "samples",
        &[
            "block_id",
            "service_name",
            "profile_type",
            "time",
            "profile_id",
            "stack_id",
            "value",
            "label_set_id",
            "event_time",
            "trace_id",
            "span_id",
        ],
    ),
    (
        "profiles",
        &[
            "block_id",
            "profile_id",
            "series_id",
            "service_name",
            "profile_type",
            "value_unit",
            "time",
            "duration_ns",
            "period",
            "temporality",
            "total_value",
            "sample_count",
            "first_row",
            "source",
            "merged_profiles",
        ],
    ),
    (
        "label_sets",
        &[
            "block_id",
            "label_set_id",
            "labels",
            "number_units",
            "namespace",
            "pod",
            "container",
            "node",
            "host",
            "version",
        ],
    ),
    (
        "stack_nodes",
        &[
            "block_id",
            "service_name",
            "node_id",
            "parent_id",
            "depth",
            "subtree_end",
            "location_id",
            "stack_id",
            "is_recursive",
            "frames",
        ],
    ),
    (
        "locations",
        &[
            "block_id",
            "location_id",
            "kind",
            "function_name",
            "system_name",
            "file_name",
            "line",
            "column",
            "start_line",
            "is_inlined",
            "mapping_file",
            "build_id",
            "address",
            "mapping_start",
            "mapping_limit",
            "mapping_offset",
            "symbol_state",
        ],
    ),
];

fn column<'a, A: 'static>(batch: &'a RecordBatch, name: &str) -> &'a A {
    let column = batch.column_by_name(name).expect(name);
    column.as_any().downcast_ref().expect(name)
}

#[test]
fn another_reader_sees_the_documented_tables() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let store = Store::open(StoreOptions {
        readable_stacks: true,
        ..options(directory.path())
    });
    let store = store.expect("opens");
    block_on(async {
        store.append("t", profile(5)).await.expect("appends");
        for value in [7, 7, 9] {
            let profile = profile_of("a", NOON_NS, value);
            store.append("t", profile).await.expect("appends");
        }
        store.flush().await.expect("flushes");
    });
    assert_eq!(totals(&store, "t"), [5, 7, 7, 9]);
    let snapshot = store.snapshot("t", TimeRange::ALL).expect("a snapshot");
    let meta = snapshot.blocks[0].meta();
    let mut tables: BTreeMap<&str, RecordBatch> = BTreeMap::new();
    for (file, (table, columns)) in meta.files.iter().zip(COLUMNS) {
        assert_eq!(file.table, table);
        let expected = format!(
            "{table}/tenant=t/date=2024-11-21/level=0/{}.parquet",
            meta.block_id
        );
        assert_eq!(file.path, expected);
        let path = directory.path().join("blocks/v1").join(&file.path);
        let builder = ParquetRecordBatchReaderBuilder::try_new(File::open(path).expect("opens"))
            .expect("Parquet");
        let metadata = builder.metadata().file_metadata();
        let entries = metadata.key_value_metadata().expect("explanations");
        for name in columns {
            let key = format!("candela.column.{name}");
            assert!(entries.iter().any(|entry| entry.key == key), "{key}");
        }
        let version = entries
            .iter()
            .find(|entry| entry.key == "candela.schema_version");
        assert_eq!(version.and_then(|entry| entry.value.as_deref()), Some("2"));
        let batches: Vec<RecordBatch> = builder
            .build()
            .expect("a reader")
            .collect::<Result<_, _>>()
            .expect("rows");
        let schema = batches[0].schema();
        let found: Vec<&str> = schema
            .fields()
            .iter()
            .map(|it| it.name().as_str())
            .collect();
        assert_eq!(found, columns);
        let all = arrow_select::concat::concat_batches(&schema, &batches).expect("one batch");
        tables.insert(table, all);
    }
    let samples = &tables["samples"];
    let services: &StringArray = column(samples, "service_name");
    let stacks: &UInt32Array = column(samples, "stack_id");
    let values: &Int64Array = column(samples, "value");
    let rows: Vec<(&str, u32, i64)> = (0..samples.num_rows())
        .map(|row| (services.value(row), stacks.value(row), values.value(row)))
        .collect();
    // The most frequent stack of the first service is 0.
    assert_eq!(
        rows,
        [("a", 0, 7), ("a", 0, 7), ("a", 1, 9), ("demo", 2, 5)]
    );
    let nodes = &tables["stack_nodes"];
    let ends: &UInt32Array = column(nodes, "subtree_end");
    let ends: Vec<u32> = ends.iter().flatten().collect();
    // A root, main and two leaves; a root, main and one leaf.
    assert_eq!(ends, [4, 4, 3, 4, 7, 7, 7]);
    let parents: &UInt32Array = column(nodes, "parent_id");
    let parents: Vec<Option<u32>> = parents.iter().collect();
    let expected = [None, Some(0), Some(1), Some(1), None, Some(4), Some(5)];
    assert_eq!(parents, expected);
    let frames: &ListArray = column(nodes, "frames");
    assert!(frames.is_null(1), "no stack ends in main");
    let stack = frames.value(2);
    let stack: &StringArray = stack.as_any().downcast_ref().expect("texts");
    let stack: Vec<&str> = stack.iter().flatten().collect();
    assert_eq!(stack, ["main", "function_7"]);
}
