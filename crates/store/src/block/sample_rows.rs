//! Rows of table `samples`.

use std::sync::Arc;

use arrow_array::ArrayRef;
use arrow_array::Int64Array;
use arrow_array::RecordBatch;
use arrow_array::TimestampNanosecondArray;
use arrow_array::UInt32Array;
use arrow_schema::ArrowError;
use candela_model::Link;

use super::arrays;
use super::layout::BlockLayout;
use super::schema::PAGE_ROWS;
use super::schema::Table;

/// For each sample its profile, spelled out a piece at a time: the columns that repeat a profile's
/// data are as long as all samples.
struct ProfileCursor<'a> {
    layout: &'a BlockLayout<'a>,
    type_keys: Vec<i32>,
    profile: usize,
}

/// The columns of a piece that come from the profiles.
#[derive(Default)]
struct ProfileColumns {
    services: Vec<i32>,
    types: Vec<i32>,
    starts: Vec<i64>,
    profile_ids: Vec<u32>,
}

/// Writes all rows, a page at a time.
pub(super) fn write(
    block_id: &str,
    layout: &BlockLayout<'_>,
    write: &mut dyn FnMut(Result<RecordBatch, ArrowError>) -> Result<(), String>,
) -> Result<(), String> {
    let mut cursor = ProfileCursor {
        layout,
        type_keys: layout.type_keys(),
        profile: 0,
    };
    let rows = layout.samples.values.len();
    let mut start = 0;
    loop {
        let end = rows.min(start + PAGE_ROWS);
        write(piece(block_id, layout, &mut cursor, start, end))?;
        start = end;
        if start >= rows {
            return Ok(());
        }
    }
}

fn piece(
    block_id: &str,
    layout: &BlockLayout<'_>,
    cursor: &mut ProfileCursor<'_>,
    start: usize,
    end: usize,
) -> Result<RecordBatch, ArrowError> {
    let rows = end - start;
    let samples = &layout.samples;
    let from_profiles = cursor.columns(start, end);
    // Without any details their columns are empty, and every row reads as null.
    let sets = samples.label_set_ids.get(start..end);
    let times = samples.times_ns.get(start..end);
    let links = samples.links.get(start..end);
    let label_sets: UInt32Array = (0..rows)
        .map(|row| Some(sets?[row]).filter(|&set| set != 0))
        .collect();
    let event_times: TimestampNanosecondArray = (0..rows)
        .map(|row| Some(times?[row]).filter(|&time| time != 0))
        .collect();
    let link = |row: usize| -> Option<Link> { Some(links?[row]) };
    let trace_ids =
        (0..rows).map(|row| link(row).map(|it| it.trace_id).filter(|id| *id != [0; 16]));
    let span_ids = (0..rows).map(|row| link(row).map(|it| it.span_id).filter(|id| *id != [0; 8]));
    let starts = TimestampNanosecondArray::from(from_profiles.starts);
    let columns: Vec<(ArrayRef, bool)> = vec![
        (arrays::constant(block_id, rows)?, false),
        (
            arrays::repeated(layout.service_names(), from_profiles.services)?,
            false,
        ),
        (
            arrays::repeated(layout.type_names(), from_profiles.types)?,
            false,
        ),
        (arrays::times(starts), false),
        (
            Arc::new(UInt32Array::from(from_profiles.profile_ids)),
            false,
        ),
        (
            Arc::new(UInt32Array::from(samples.stack_ids[start..end].to_vec())),
            false,
        ),
        (
            Arc::new(Int64Array::from(samples.values[start..end].to_vec())),
            false,
        ),
        (Arc::new(label_sets), true),
        (arrays::times(event_times), true),
        (arrays::fixed_bytes(trace_ids)?, true),
        (arrays::fixed_bytes(span_ids)?, true),
    ];
    arrays::batch(Table::Samples, columns)
}

impl ProfileCursor<'_> {
    fn columns(&mut self, start: usize, end: usize) -> ProfileColumns {
        let mut columns = ProfileColumns::default();
        let mut row = start;
        while row < end {
            let placed = &self.layout.profiles[self.profile];
            let profile_end = placed.first_row as usize + placed.profile.len();
            let count = profile_end.min(end) - row;
            let until = columns.starts.len() + count;
            columns.services.resize(until, placed.service as i32);
            columns.types.resize(until, self.type_keys[self.profile]);
            columns.starts.resize(until, placed.profile.start_ns);
            columns.profile_ids.resize(until, self.profile as u32);
            row += count;
            if row == profile_end {
                self.profile += 1;
            }
        }
        columns
    }
}
