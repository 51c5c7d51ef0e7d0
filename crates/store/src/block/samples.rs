//! Reading table `samples`: only the columns that are asked for, only the rows that matter.

use std::hash::Hasher;
use std::io::Read;
use std::ops::ControlFlow;
use std::ops::Range;
use std::sync::Arc;

use parquet::arrow::arrow_reader::ArrowReaderMetadata;
use parquet::arrow::arrow_reader::ArrowReaderOptions;
use parquet::arrow::arrow_reader::ParquetRecordBatchReader;
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
use parquet::arrow::arrow_reader::RowSelection;
use parquet::bloom_filter::Sbbf;
use parquet::column::page::Page;
use parquet::column::page::PageReader;
use parquet::file::metadata::PageIndexPolicy;
use parquet::file::metadata::ParquetMetaData;
use parquet::file::metadata::ParquetMetaDataReader;
use parquet::file::serialized_reader::SerializedPageReader;
use twox_hash::XxHash3_64;

use super::decode::PageValue;
use super::decode::decode_dictionary;
use super::decode::decode_page;
use super::manifest::FileMeta;
use super::schema::Table;
use super::surviving::surviving;
use crate::error::BlockErrorKind;
use crate::error::ReadFault;
use crate::storage::BlockStorage;
use crate::storage::StoredFile;

/// Rows of a batch that has all columns.
const BATCH_ROWS: usize = 16 << 10;

/// Which columns to read beside stack and value.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SampleColumns {
    /// The samples' own labels.
    pub label_sets: bool,
    /// The traces and spans that samples belong to.
    pub links: bool,
    /// When samples were taken.
    pub times: bool,
}

/// Some consecutive rows, columns of equal length.
#[derive(Clone, Copy, Debug)]
pub struct SampleChunk<'a> {
    /// Position of the first one in the table.
    pub first_row: u64,
    /// Where: ids of the block's stacks, as they were read. Whoever looks one up asks whether it is there:
    /// a damaged file may have others.
    pub stack_ids: &'a [u32],
    /// How much.
    pub values: &'a [i64],
    /// The samples' own labels, sets of the block's label table, 0 is none; empty when not asked
    /// for.
    pub label_sets: &'a [u32],
    /// W3C trace ids, zeros where there is none; empty when not asked for.
    pub trace_ids: &'a [[u8; 16]],
    /// W3C span ids likewise.
    pub span_ids: &'a [[u8; 8]],
    /// When each was taken, nanoseconds since the Unix epoch, 0 when unknown; empty when not asked for.
    pub times_ns: &'a [i64],
}

/// The file, open for as long as it is read.
#[derive(Debug)]
pub(super) struct SamplesFile {
    file: Arc<StoredFile>,
    metadata: Arc<ParquetMetaData>,
}

/// One column of one row group, decoded a page at a time.
struct ColumnCursor<T> {
    pages: SerializedPageReader<StoredFile>,
    dictionary: Vec<T>,
    values: Vec<T>,
    /// Row of the first of `values`, counted in the row group.
    first_row: usize,
}

impl SamplesFile {
    /// A file whose footer is known.
    pub(super) fn new(file: StoredFile, metadata: Arc<ParquetMetaData>) -> Self {
        Self {
            file: Arc::new(file),
            metadata,
        }
    }

    /// Reads the footer of a file that has not been read before or was forgotten. Unless
    /// `is_verified` every byte is read once, which is cheap beside serving wrong sums.
    pub(super) fn read_footer(
        file: StoredFile,
        meta: &FileMeta,
        is_verified: bool,
    ) -> Result<Self, ReadFault> {
        if !is_verified && !file.verifies_itself() {
            verify(&mut file.reader(), meta)?;
        }
        let metadata = ParquetMetaDataReader::new()
            .with_offset_index_policy(PageIndexPolicy::Required)
            .parse_and_finish(&file)?;
        check_pages(&metadata)?;
        Ok(Self::new(file, Arc::new(metadata)))
    }

    /// What tells where the columns are.
    pub(super) fn metadata(&self) -> &Arc<ParquetMetaData> {
        &self.metadata
    }

    /// Whether any sample belongs to a trace, as far as the footer tells.
    pub(super) fn has_traces(&self) -> bool {
        self.has_values("trace_id")
    }

    /// Whether any sample belongs to a trace or a span, as far as the footer tells.
    pub(super) fn has_links(&self) -> bool {
        self.has_traces() || self.has_values("span_id")
    }

    /// Whether it is known of any sample when it was taken, as far as the footer tells.
    pub(super) fn has_times(&self) -> bool {
        self.has_values("event_time")
    }

    /// Whether any sample may belong to one of these traces: the filters of the row groups say no
    /// or maybe.
    pub(super) fn may_have_traces(&self, trace_ids: &[[u8; 16]]) -> Result<bool, ReadFault> {
        let position = Table::Samples.position("trace_id");
        for group in self.metadata.row_groups() {
            let column = group.column(position);
            let filter = surviving(|| {
                let filter = Sbbf::read_from_column_chunk(column, &*self.file);
                filter.map_err(ReadFault::from)
            })?;
            let may_have = |id: &[u8; 16]| filter.as_ref().is_none_or(|it| it.check(&id[..]));
            if trace_ids.iter().any(may_have) {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Whether a column is not null everywhere, as far as the footer tells.
    fn has_values(&self, name: &str) -> bool {
        let position = Table::Samples.position(name);
        let groups = self.metadata.row_groups().iter();
        groups.into_iter().any(|group| {
            let nulls = group.column(position).statistics();
            let nulls = nulls.and_then(|statistics| statistics.null_count_opt());
            nulls != u64::try_from(group.num_rows()).ok()
        })
    }

    /// All columns of the rows of the ranges.
    pub(super) fn batches(
        self,
        ranges: &[Range<u64>],
    ) -> Result<ParquetRecordBatchReader, ReadFault> {
        let as_usize = |row: u64| usize::try_from(row).map_err(|_| "a row number is too large");
        let ranges: Result<Vec<Range<usize>>, _> = ranges
            .iter()
            .map(|range| Ok::<_, &str>(as_usize(range.start)?..as_usize(range.end)?))
            .collect();
        let rows = self.metadata.file_metadata().num_rows();
        let rows = usize::try_from(rows).map_err(|_| "a row number is negative")?;
        let selection = RowSelection::from_consecutive_ranges(ranges?.into_iter(), rows);
        let metadata = ArrowReaderMetadata::try_new(self.metadata, ArrowReaderOptions::new())?;
        let file = Arc::unwrap_or_clone(self.file);
        let reader = ParquetRecordBatchReaderBuilder::new_with_metadata(file, metadata)
            .with_row_selection(selection)
            .with_batch_size(BATCH_ROWS)
            .build()?;
        Ok(reader)
    }

    /// Compressed bytes of the columns over all rows.
    pub(super) fn column_bytes(&self, columns: SampleColumns) -> u64 {
        let positions = column_positions(columns);
        let groups = self.metadata.row_groups().iter();
        groups
            .flat_map(|group| {
                positions
                    .iter()
                    .map(|&it| group.column(it).compressed_size())
            })
            .map(|bytes| u64::try_from(bytes).unwrap_or(0))
            .sum()
    }

    /// Hands over the rows of the ranges, which are in ascending order and do not overlap, until
    /// `visit` breaks.
    pub(super) fn scan(
        &self,
        ranges: &[Range<u64>],
        columns: SampleColumns,
        visit: &mut dyn FnMut(SampleChunk<'_>) -> ControlFlow<()>,
    ) -> Result<(), ReadFault> {
        let mut group_start = 0_u64;
        for group in 0..self.metadata.num_row_groups() {
            let rows = u64::try_from(self.metadata.row_group(group).num_rows()).unwrap_or(0);
            let group_end = group_start + rows;
            let inside = ranges
                .iter()
                .map(|range| range.start.max(group_start)..range.end.min(group_end))
                .filter(|range| range.start < range.end)
                .map(|range| {
                    (range.start - group_start) as usize..(range.end - group_start) as usize
                });
            let inside: Vec<Range<usize>> = inside.collect();
            if !inside.is_empty() {
                let flow = self.scan_group(group, group_start, &inside, columns, visit)?;
                if flow.is_break() {
                    break;
                }
            }
            group_start = group_end;
        }
        Ok(())
    }

    fn scan_group(
        &self,
        group: usize,
        group_start: u64,
        ranges: &[Range<usize>],
        columns: SampleColumns,
        visit: &mut dyn FnMut(SampleChunk<'_>) -> ControlFlow<()>,
    ) -> Result<ControlFlow<()>, ReadFault> {
        if self.file.is_remote() {
            let wanted = self.byte_ranges(group, ranges, columns);
            self.file.will_read(&wanted)?;
        }
        let mut stacks = self.cursor::<u32>(group, "stack_id")?;
        let mut values = self.cursor::<i64>(group, "value")?;
        let mut label_sets = if columns.label_sets {
            Some(self.cursor::<u32>(group, "label_set_id")?)
        } else {
            None
        };
        let mut links = if columns.links {
            let trace_ids = self.cursor::<[u8; 16]>(group, "trace_id")?;
            Some((trace_ids, self.cursor::<[u8; 8]>(group, "span_id")?))
        } else {
            None
        };
        let mut times = if columns.times {
            Some(self.cursor::<i64>(group, "event_time")?)
        } else {
            None
        };
        for range in ranges {
            let mut row = range.start;
            while row < range.end {
                stacks.seek(row)?;
                values.seek(row)?;
                let mut count = stacks.available(row).min(values.available(row));
                if let Some(cursor) = &mut label_sets {
                    cursor.seek(row)?;
                    count = count.min(cursor.available(row));
                }
                if let Some((trace_ids, span_ids)) = &mut links {
                    trace_ids.seek(row)?;
                    span_ids.seek(row)?;
                    count = count.min(trace_ids.available(row));
                    count = count.min(span_ids.available(row));
                }
                if let Some(cursor) = &mut times {
                    cursor.seek(row)?;
                    count = count.min(cursor.available(row));
                }
                count = count.min(range.end - row);
                let sets = label_sets.as_ref().map(|cursor| cursor.slice(row, count));
                let ids = links.as_ref().map(|(trace_ids, span_ids)| {
                    (trace_ids.slice(row, count), span_ids.slice(row, count))
                });
                let (trace_ids, span_ids) = ids.unwrap_or_default();
                let times_ns = times.as_ref().map(|cursor| cursor.slice(row, count));
                let flow = visit(SampleChunk {
                    first_row: group_start + row as u64,
                    stack_ids: stacks.slice(row, count),
                    values: values.slice(row, count),
                    label_sets: sets.unwrap_or(&[]),
                    trace_ids,
                    span_ids,
                    times_ns: times_ns.unwrap_or(&[]),
                });
                if flow.is_break() {
                    return Ok(flow);
                }
                row += count;
            }
        }
        Ok(ControlFlow::Continue(()))
    }

    /// Where the pages of these rows are in the file.
    fn byte_ranges(
        &self,
        group: usize,
        rows: &[Range<usize>],
        columns: SampleColumns,
    ) -> Vec<Range<u64>> {
        let row_group = self.metadata.row_group(group);
        let group_rows = usize::try_from(row_group.num_rows()).unwrap_or(0);
        let mut found = Vec::new();
        for position in column_positions(columns) {
            let (start, length) = row_group.column(position).byte_range();
            let Some(index) = self.metadata.offset_index() else {
                found.push(start..start + length);
                continue;
            };
            let pages = &index[group][position].page_locations;
            let first_row = |page: usize| {
                pages.get(page).map_or(group_rows, |page| {
                    usize::try_from(page.first_row_index).unwrap_or(0)
                })
            };
            let offset = |page: usize| {
                pages.get(page).map_or(start + length, |page| {
                    u64::try_from(page.offset).unwrap_or(0)
                })
            };
            // What is before the first page is the dictionary.
            found.push(start..offset(0));
            let touched = (0..pages.len()).filter(|&page| {
                let of_page = first_row(page)..first_row(page + 1);
                let overlaps =
                    |range: &Range<usize>| range.start < of_page.end && of_page.start < range.end;
                rows.iter().any(overlaps)
            });
            found.extend(touched.map(|page| offset(page)..offset(page + 1)));
        }
        found
    }

    fn cursor<T: PageValue>(&self, group: usize, name: &str) -> Result<ColumnCursor<T>, ReadFault> {
        let position = Table::Samples.position(name);
        let row_group = self.metadata.row_group(group);
        let column = row_group.column(position);
        let index = self.metadata.offset_index();
        let locations = index.map(|index| index[group][position].page_locations.clone());
        let rows = usize::try_from(row_group.num_rows()).unwrap_or(0);
        let file = Arc::clone(&self.file);
        let pages = surviving(|| {
            let pages = SerializedPageReader::new(file, column, rows, locations);
            pages.map_err(ReadFault::from)
        })?;
        Ok(ColumnCursor {
            pages,
            dictionary: Vec::new(),
            values: Vec::new(),
            first_row: 0,
        })
    }
}

impl<T: PageValue> ColumnCursor<T> {
    /// Decodes the page that has `row`, skipping those before it.
    fn seek(&mut self, row: usize) -> Result<(), ReadFault> {
        if row < self.first_row + self.values.len() {
            return Ok(());
        }
        surviving(|| self.seek_page(row))
    }

    fn seek_page(&mut self, row: usize) -> Result<(), ReadFault> {
        while row >= self.first_row + self.values.len() {
            let next = self.pages.peek_next_page()?;
            let Some(next) = next else {
                return Err(format!("row {row} of a row group is behind its last page").into());
            };
            if next.is_dict {
                let page = self.next_page()?;
                self.dictionary = decode_dictionary(&page);
                continue;
            }
            self.first_row += self.values.len();
            self.values.clear();
            let page_rows = next.num_rows.ok_or("a page does not tell its rows")?;
            if row >= self.first_row + page_rows {
                self.pages.skip_next_page()?;
                self.first_row += page_rows;
                continue;
            }
            let page = self.next_page()?;
            decode_page(&page, &self.dictionary, &mut self.values)?;
        }
        Ok(())
    }

    fn next_page(&mut self) -> Result<Page, ReadFault> {
        let page = self.pages.get_next_page()?;
        page.ok_or_else(|| "a page is missing".into())
    }

    fn available(&self, row: usize) -> usize {
        self.first_row + self.values.len() - row
    }

    fn slice(&self, row: usize, count: usize) -> &[T] {
        let start = row - self.first_row;
        &self.values[start..start + count]
    }
}

/// The parquet crate computes with what the offset index says and does not ask whether it can be.
fn check_pages(metadata: &ParquetMetaData) -> Result<(), ReadFault> {
    let Some(index) = metadata.offset_index() else {
        return Ok(());
    };
    for (group, columns) in metadata.row_groups().iter().zip(index) {
        for (column, index) in group.columns().iter().zip(columns) {
            let first = column.dictionary_page_offset();
            let start = first.unwrap_or(column.data_page_offset());
            let end = start.checked_add(column.compressed_size());
            let mut offset = start;
            let mut first_row = 0;
            for page in &index.page_locations {
                let page_end = page.offset.checked_add(page.compressed_page_size.into());
                let is_sound = start >= 0
                    && page.compressed_page_size >= 0
                    && page.offset >= offset
                    && page_end.is_some_and(|page_end| Some(page_end) <= end)
                    && (first_row..=group.num_rows()).contains(&page.first_row_index);
                if !is_sound {
                    return Err("the offset index tells of pages that cannot be".into());
                }
                (offset, first_row) = (page.offset, page.first_row_index);
            }
        }
    }
    Ok(())
}

fn column_positions(columns: SampleColumns) -> Vec<usize> {
    let mut names = vec!["stack_id", "value"];
    if columns.label_sets {
        names.push("label_set_id");
    }
    if columns.links {
        names.extend(["trace_id", "span_id"]);
    }
    if columns.times {
        names.push("event_time");
    }
    let positions = names.into_iter().map(|name| Table::Samples.position(name));
    positions.collect()
}

/// Reads a file as it is stored and compares it with what its block says of it.
pub(crate) fn verify_file(storage: &dyn BlockStorage, meta: &FileMeta) -> Result<(), ReadFault> {
    if !storage.is_remote() {
        return verify(&mut storage.open(meta)?.reader(), meta);
    }
    // What was kept of an earlier read says nothing about the bucket.
    storage.size(&meta.path)?;
    let contents = storage.read_all(&[&meta.path]);
    let contents = contents.map_err(|error| ReadFault {
        kind: BlockErrorKind::Unreadable,
        is_missing: false,
        reason: error.to_string(),
    })?;
    let content = contents.first().map_or(&[][..], |content| content);
    verify(&mut &*content, meta)
}

/// Compares a file with what its block says of it.
pub(super) fn verify(content: &mut impl Read, meta: &FileMeta) -> Result<(), ReadFault> {
    let mut hasher = XxHash3_64::new();
    let mut buffer = vec![0; 256 << 10];
    let mut bytes = 0_u64;
    loop {
        let count = content.read(&mut buffer)?;
        if count == 0 {
            break;
        }
        hasher.write(&buffer[..count]);
        bytes += count as u64;
    }
    let hash = format!("{:016x}", hasher.finish());
    if bytes != meta.bytes || hash != meta.hash {
        return Err(format!(
            "{} has {bytes} bytes with checksum {hash}, was written with {} bytes and {}",
            meta.path, meta.bytes, meta.hash
        )
        .into());
    }
    Ok(())
}
