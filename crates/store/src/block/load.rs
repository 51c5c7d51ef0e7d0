//! Files of the small tables to memory. What they refer to is checked here, once, so that queries
//! need not.

use std::sync::Arc;

use arrow_array::Array;
use arrow_array::BooleanArray;
use arrow_array::Int64Array;
use arrow_array::MapArray;
use arrow_array::RecordBatch;
use arrow_array::StringArray;
use arrow_array::TimestampNanosecondArray;
use arrow_array::UInt32Array;
use arrow_array::UInt64Array;
use bytes::Bytes;
use candela_model::FrameKind;
use candela_model::LabelSetId;
use candela_model::LabelValue;
use candela_model::Labels;
use candela_model::ProfileType;
use candela_model::StringId;
use hashbrown::HashMap;
use parquet::arrow::ProjectionMask;
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;

use super::label_rows::TextLabel;
use super::label_rows::intern_text_labels;
use super::rows::symbol_state;
use super::schema::SCHEMA_VERSION;
use super::schema::Table;
use super::schema::VERSION_KEY;
use super::tables::LabelTable;
use super::tables::ProfileRow;
use super::tables::ProfileTable;
use super::tables::StackTree;
use crate::head::NO_LOCATION;
use crate::locations::LocationRow;
use crate::locations::LocationTable;

const BATCH_ROWS: usize = 64 << 10;

/// Hands over batches of the named columns.
pub(super) fn for_each_batch(
    table: Table,
    content: Bytes,
    names: &[&str],
    mut visit: impl FnMut(&RecordBatch) -> Result<(), String>,
) -> Result<(), String> {
    let context = |error: &dyn std::fmt::Display| format!("{}: {error}", table.name());
    let builder =
        ParquetRecordBatchReaderBuilder::try_new(content).map_err(|error| context(&error))?;
    let metadata = builder.metadata().file_metadata();
    let version = metadata
        .key_value_metadata()
        .and_then(|entries| entries.iter().find(|entry| entry.key == VERSION_KEY))
        .and_then(|entry| entry.value.as_ref()?.parse::<u32>().ok());
    if version.is_none_or(|version| version > SCHEMA_VERSION) {
        let found = version.map_or("none".to_owned(), |version| version.to_string());
        return Err(context(&format!(
            "schema version {found}, this program knows {SCHEMA_VERSION}"
        )));
    }
    let mask = ProjectionMask::columns(metadata.schema_descr(), names.iter().copied());
    let reader = builder
        .with_projection(mask)
        .with_batch_size(BATCH_ROWS)
        .build()
        .map_err(|error| context(&error))?;
    for batch in reader {
        let batch = batch.map_err(|error| context(&error))?;
        visit(&batch).map_err(|error| context(&error))?;
    }
    Ok(())
}

/// The column of this name and kind.
pub(super) fn column<'a, A: Array + 'static>(
    batch: &'a RecordBatch,
    name: &str,
) -> Result<&'a A, String> {
    let column = batch
        .column_by_name(name)
        .ok_or_else(|| format!("column {name} is missing"))?;
    column.as_any().downcast_ref::<A>().ok_or_else(|| {
        format!(
            "column {name} is {}, which it should not be",
            column.data_type()
        )
    })
}

pub(super) fn label_sets(content: Bytes) -> Result<LabelTable, String> {
    let mut table = LabelTable::default();
    let mut next = 0_u32;
    let names = ["label_set_id", "labels", "number_units"];
    for_each_batch(Table::LabelSets, content, &names, |batch| {
        let ids: &UInt32Array = column(batch, "label_set_id")?;
        let labels: &MapArray = column(batch, "labels")?;
        let units: &MapArray = column(batch, "number_units")?;
        for row in 0..batch.num_rows() {
            let units: HashMap<String, String> = entries(units, row)?.into_iter().collect();
            let set: Vec<TextLabel> = entries(labels, row)?
                .into_iter()
                .map(|(name, value)| TextLabel {
                    unit: units.get(&name).cloned(),
                    name,
                    value,
                })
                .collect();
            let id = intern_text_labels(&mut table, &set);
            if ids.value(row) != next || id.0 != next {
                return Err(format!(
                    "label_set_id {} is not in its place",
                    ids.value(row)
                ));
            }
            next += 1;
        }
        Ok(())
    })?;
    Ok(table)
}

fn entries(map: &MapArray, row: usize) -> Result<Vec<(String, String)>, String> {
    let entries = map.value(row);
    let texts = |index: usize| {
        let texts = entries.column(index).as_any().downcast_ref::<StringArray>();
        texts.ok_or("a map is not of texts")
    };
    let (names, values) = (texts(0)?, texts(1)?);
    let pairs = (0..entries.len()).map(|index| {
        (
            names.value(index).to_owned(),
            values.value(index).to_owned(),
        )
    });
    Ok(pairs.collect())
}

pub(super) fn profiles(
    content: Bytes,
    labels: &LabelTable,
    sample_rows: u64,
) -> Result<ProfileTable, String> {
    let mut table = ProfileTable::default();
    let mut series_of_set: HashMap<u32, u32> = HashMap::new();
    let mut type_of_text: HashMap<String, u32> = HashMap::new();
    let names = [
        "series_id",
        "profile_type",
        "time",
        "duration_ns",
        "period",
        "total_value",
        "sample_count",
        "first_row",
        "merged_profiles",
    ];
    for_each_batch(Table::Profiles, content, &names, |batch| {
        let series: &UInt32Array = column(batch, "series_id")?;
        let types: &StringArray = column(batch, "profile_type")?;
        let starts: &TimestampNanosecondArray = column(batch, "time")?;
        let durations: &Int64Array = column(batch, "duration_ns")?;
        let periods: &Int64Array = column(batch, "period")?;
        let totals: &Int64Array = column(batch, "total_value")?;
        let counts: &UInt32Array = column(batch, "sample_count")?;
        let first_rows: &UInt64Array = column(batch, "first_row")?;
        // Tables of version 1 have no rollups and not this column.
        let merged = batch.column_by_name("merged_profiles");
        let merged: Option<&UInt32Array> = match merged {
            Some(_) => Some(column(batch, "merged_profiles")?),
            None => None,
        };
        for row in 0..batch.num_rows() {
            let set = series.value(row);
            if set as usize >= labels.sets.len() {
                return Err(format!("series {set} has no labels"));
            }
            let series = *series_of_set.entry(set).or_insert_with(|| {
                table.series.push(Arc::new(series_labels(labels, set)));
                table.series.len() as u32 - 1
            });
            let text = types.value(row);
            let known = type_of_text.get(text).copied();
            let profile_type = match known {
                Some(number) => number,
                None => {
                    let parsed: ProfileType = text
                        .parse()
                        .map_err(|error| format!("profile type: {error}"))?;
                    let number = table.types.len() as u32;
                    table.types.push(Arc::new(parsed));
                    type_of_text.insert(text.to_owned(), number);
                    number
                }
            };
            let (first_row, sample_count) = (first_rows.value(row), counts.value(row));
            let end = first_row.checked_add(sample_count.into());
            if end.is_none_or(|end| end > sample_rows) {
                return Err(format!(
                    "rows {first_row} +{sample_count} are not in the block"
                ));
            }
            table.rows.push(ProfileRow {
                series,
                profile_type,
                start_ns: starts.value(row),
                duration_ns: durations.value(row),
                period: periods.value(row),
                total: totals.value(row),
                first_row,
                sample_count,
                merged_profiles: merged.map_or(1, |merged| merged.value(row)),
            });
        }
        Ok(())
    })?;
    Ok(table)
}

fn series_labels(table: &LabelTable, set: u32) -> Labels {
    let labels = table.sets.get(LabelSetId(set)).iter();
    Labels::from_pairs(labels.map(|label| {
        let value = match label.value {
            LabelValue::Text(text) => table.strings.get(text).to_owned(),
            LabelValue::Number { value, .. } => value.to_string(),
        };
        (table.strings.get(label.key), value)
    }))
}

pub(super) fn stack_nodes(content: Bytes, location_count: usize) -> Result<StackTree, String> {
    let mut tree = StackTree::default();
    let names = ["node_id", "parent_id", "location_id", "stack_id"];
    for_each_batch(Table::StackNodes, content, &names, |batch| {
        let nodes: &UInt32Array = column(batch, "node_id")?;
        let parents: &UInt32Array = column(batch, "parent_id")?;
        let locations: &UInt32Array = column(batch, "location_id")?;
        let stacks: &UInt32Array = column(batch, "stack_id")?;
        for row in 0..batch.num_rows() {
            let node = tree.parents.len() as u32;
            let is_root = parents.is_null(row);
            let parent = if is_root { node } else { parents.value(row) };
            let location = if is_root {
                NO_LOCATION
            } else {
                locations.value(row)
            };
            // Parents that come first are what makes walking up end.
            let is_sound = nodes.value(row) == node
                && (is_root || parent < node)
                && (is_root || (location as usize) < location_count);
            if !is_sound {
                return Err(format!("node {node} is not a node of a tree"));
            }
            tree.parents.push(parent);
            tree.locations.push(location);
            if !stacks.is_null(row) {
                let stack = stacks.value(row) as usize;
                if stack >= tree.node_of_stack.len() {
                    // Ids are dense, so there are never more than nodes in the end; a wild one
                    // must not be allocated for.
                    if stack > u32::MAX as usize / 16 {
                        return Err(format!("stack {stack} is out of range"));
                    }
                    tree.node_of_stack.resize(stack + 1, u32::MAX);
                }
                tree.node_of_stack[stack] = node;
            }
        }
        Ok(())
    })?;
    if tree.node_of_stack.contains(&u32::MAX) {
        return Err("stack_nodes: stack ids are not dense".to_owned());
    }
    Ok(tree)
}

pub(super) fn locations(content: Bytes) -> Result<LocationTable, String> {
    let mut table = LocationTable::default();
    let columns: Vec<&str> = Table::Locations
        .columns()
        .iter()
        .map(|column| column.name)
        .filter(|&name| name != "block_id" && name != "location_id")
        .collect();
    for_each_batch(Table::Locations, content, &columns, |batch| {
        let text = |name| column::<StringArray>(batch, name);
        let number = |name| column::<UInt32Array>(batch, name);
        let address = |name| column::<UInt64Array>(batch, name);
        let (kinds, states) = (text("kind")?, text("symbol_state")?);
        let (names, system_names) = (text("function_name")?, text("system_name")?);
        let (files, mappings) = (text("file_name")?, text("mapping_file")?);
        let build_ids = text("build_id")?;
        let (lines, columns) = (number("line")?, number("column")?);
        let start_lines = number("start_line")?;
        let inlined: &BooleanArray = column(batch, "is_inlined")?;
        let addresses = address("address")?;
        let (starts, limits) = (address("mapping_start")?, address("mapping_limit")?);
        let offsets = address("mapping_offset")?;
        for row in 0..batch.num_rows() {
            let is_symbolized = states.value(row) == symbol_state(true);
            let mut intern = |array: &StringArray| table.strings.intern(array.value(row));
            let new = LocationRow {
                kind: FrameKind::from_name(kinds.value(row)),
                function_name: if is_symbolized {
                    intern(names)
                } else {
                    StringId(0)
                },
                system_name: intern(system_names),
                file_name: intern(files),
                line: lines.value(row),
                column: columns.value(row),
                start_line: start_lines.value(row),
                is_inlined: inlined.value(row),
                is_symbolized,
                mapping_file: intern(mappings),
                build_id: intern(build_ids),
                address: addresses.value(row),
                mapping_start: starts.value(row),
                mapping_limit: limits.value(row),
                mapping_offset: offsets.value(row),
            };
            table.push(new);
        }
        Ok(())
    })?;
    Ok(table)
}
