//! Rows of the tables `profiles`, `label_sets` and `locations`, each small enough to be made at
//! once.

use std::sync::Arc;

use arrow_array::ArrayRef;
use arrow_array::BooleanArray;
use arrow_array::Int64Array;
use arrow_array::RecordBatch;
use arrow_array::StringArray;
use arrow_array::TimestampNanosecondArray;
use arrow_array::UInt32Array;
use arrow_array::UInt64Array;
use arrow_array::builder::MapBuilder;
use arrow_array::builder::MapFieldNames;
use arrow_array::builder::StringBuilder;
use arrow_schema::ArrowError;
use arrow_schema::DataType;
use arrow_schema::Field;
use candela_model::LabelSetId;

use super::arrays;
use super::label_rows::TextLabel;
use super::label_rows::text_labels;
use super::layout::BlockLayout;
use super::layout::PlacedProfile;
use super::layout::TypeTexts;
use super::profile_list::ProfileFacts;
use super::schema::Table;
use super::tables::LabelTable;
use super::writer::BlockIdentity;
use crate::locations::LocationRow;
use crate::locations::LocationTable;

/// Labels that have a column of their own, so that other engines need not look into the map.
const PROMOTED_LABELS: [&str; 6] = ["namespace", "pod", "container", "node", "host", "version"];

pub(super) fn profiles(
    identity: &BlockIdentity,
    layout: &BlockLayout<'_>,
) -> Result<RecordBatch, ArrowError> {
    let placed = &layout.profiles;
    let rows = placed.len();
    let numbers = |value: fn(&ProfileFacts) -> i64| -> ArrayRef {
        let values = placed.iter().map(|placed| value(&placed.facts));
        Arc::new(Int64Array::from_iter_values(values))
    };
    let counts = |value: fn(&PlacedProfile) -> u32| -> ArrayRef {
        let values = placed.iter().map(value);
        Arc::new(UInt32Array::from_iter_values(values))
    };
    let type_keys = || placed.iter().map(|placed| placed.type_key as i32).collect();
    let of_types = |value: fn(&TypeTexts) -> &str| -> Result<ArrayRef, ArrowError> {
        arrays::repeated(layout.type_units.iter().map(value).collect(), type_keys())
    };
    let services = placed.iter().map(|placed| placed.service as i32).collect();
    let starts = placed.iter().map(|placed| placed.facts.start_ns);
    let columns: Vec<(ArrayRef, bool)> = vec![
        (arrays::constant(&identity.block_id, rows)?, false),
        (
            Arc::new(UInt32Array::from_iter_values(0..rows as u32)),
            false,
        ),
        (counts(|placed| placed.label_set_id), false),
        (arrays::repeated(layout.service_names(), services)?, false),
        (of_types(|texts| &texts.identifier)?, false),
        (of_types(|texts| &texts.unit)?, false),
        (
            arrays::times(TimestampNanosecondArray::from_iter_values(starts)),
            false,
        ),
        (numbers(|facts| facts.duration_ns), false),
        (numbers(|facts| facts.period), false),
        (of_types(|texts| texts.temporality)?, false),
        (numbers(|facts| facts.total), false),
        (counts(|placed| placed.facts.sample_count), false),
        (
            Arc::new(UInt64Array::from_iter_values(
                placed.iter().map(|placed| placed.first_row),
            )),
            false,
        ),
        (arrays::constant(&identity.writer_id, rows)?, false),
        (counts(|placed| placed.facts.merged_profiles), false),
    ];
    arrays::batch(Table::Profiles, columns)
}

pub(super) fn label_sets(block_id: &str, labels: &LabelTable) -> Result<RecordBatch, ArrowError> {
    let rows: Vec<Vec<TextLabel>> = (0..labels.sets.len())
        .map(|index| text_labels(labels, LabelSetId::from_index(index)))
        .collect();
    let all = map_array(&rows, |label| Some(label.value.as_str()))?;
    let units = map_array(&rows, |label| label.unit.as_deref())?;
    let mut columns: Vec<(ArrayRef, bool)> = vec![
        (arrays::constant(block_id, rows.len())?, false),
        (
            Arc::new(UInt32Array::from_iter_values(0..rows.len() as u32)),
            false,
        ),
        (all, false),
        (units, false),
    ];
    for name in PROMOTED_LABELS {
        let values: StringArray = rows
            .iter()
            .map(|row| {
                let label = row.iter().find(|label| label.name == name)?;
                Some(label.value.as_str())
            })
            .collect();
        columns.push((Arc::new(values), true));
    }
    arrays::batch(Table::LabelSets, columns)
}

fn map_array(
    rows: &[Vec<TextLabel>],
    value: impl Fn(&TextLabel) -> Option<&str>,
) -> Result<ArrayRef, ArrowError> {
    let names = MapFieldNames {
        entry: "key_value".to_owned(),
        key: "key".to_owned(),
        value: "value".to_owned(),
    };
    let mut builder = MapBuilder::new(Some(names), StringBuilder::new(), StringBuilder::new())
        .with_values_field(Field::new("value", DataType::Utf8, false));
    for row in rows {
        for label in row {
            if let Some(value) = value(label) {
                builder.keys().append_value(&label.name);
                builder.values().append_value(value);
            }
        }
        builder.append(true)?;
    }
    Ok(Arc::new(builder.finish()))
}

/// The rows of a table with these numbers, in this order.
pub(super) fn locations(
    block_id: &str,
    table: &LocationTable,
    numbers_in_order: &[u32],
) -> Result<RecordBatch, ArrowError> {
    let rows: Vec<&LocationRow> = numbers_in_order
        .iter()
        .map(|&number| table.get(number))
        .collect();
    let texts = |value: fn(&LocationRow) -> candela_model::StringId| -> ArrayRef {
        let values = rows.iter().map(|row| table.text(value(row)));
        Arc::new(StringArray::from_iter_values(values))
    };
    let numbers = |value: fn(&LocationRow) -> u32| -> ArrayRef {
        let values = rows.iter().map(|row| value(row));
        Arc::new(UInt32Array::from_iter_values(values))
    };
    let addresses = |value: fn(&LocationRow) -> u64| -> ArrayRef {
        let values = rows.iter().map(|row| value(row));
        Arc::new(UInt64Array::from_iter_values(values))
    };
    let names = numbers_in_order
        .iter()
        .map(|&number| table.display_name(number));
    let kinds = rows.iter().map(|row| row.kind.as_str());
    let is_inlined: Vec<bool> = rows.iter().map(|row| row.is_inlined).collect();
    let states = rows.iter().map(|row| symbol_state(row.is_symbolized));
    let columns: Vec<ArrayRef> = vec![
        arrays::constant(block_id, rows.len())?,
        Arc::new(UInt32Array::from_iter_values(0..rows.len() as u32)),
        Arc::new(StringArray::from_iter_values(kinds)),
        Arc::new(StringArray::from_iter_values(names)),
        texts(|row| row.system_name),
        texts(|row| row.file_name),
        numbers(|row| row.line),
        numbers(|row| row.column),
        numbers(|row| row.start_line),
        Arc::new(BooleanArray::from(is_inlined)),
        texts(|row| row.mapping_file),
        texts(|row| row.build_id),
        addresses(|row| row.address),
        addresses(|row| row.mapping_start),
        addresses(|row| row.mapping_limit),
        addresses(|row| row.mapping_offset),
        Arc::new(StringArray::from_iter_values(states)),
    ];
    let columns = columns.into_iter().map(|array| (array, false)).collect();
    arrays::batch(Table::Locations, columns)
}

/// The value of column `symbol_state`.
pub(super) const fn symbol_state(is_symbolized: bool) -> &'static str {
    if is_symbolized {
        "symbolized"
    } else {
        "unsymbolized"
    }
}
