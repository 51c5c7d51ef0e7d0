//! A layout to five Parquet files.

use arrow_array::RecordBatch;
use arrow_schema::ArrowError;
use parquet::arrow::ArrowWriter;
use parquet::arrow::arrow_writer::ArrowWriterOptions;

use super::layout::BlockLayout;
use super::level::Level;
use super::manifest::BlockMeta;
use super::manifest::FileMeta;
use super::manifest::manifest_path;
use super::manifest::table_path;
use super::manifest_file::encode_manifest;
use super::rows;
use super::sample_rows;
use super::sample_rows::SampleLabels;
use super::sample_source::SampleSource;
use super::schema::SCHEMA_VERSION;
use super::schema::Table;
use super::schema::WriteGoal;
use super::stack_rows;
use super::stack_rows::StackRows;
use crate::error::StoreError;
use crate::failpoint::failpoint;
use crate::storage::BlockStorage;

/// What a block is called and where it comes from.
#[derive(Clone, Debug)]
pub(crate) struct BlockIdentity {
    pub(crate) block_id: String,
    pub(crate) tenant: String,
    pub(crate) date: String,
    pub(crate) level: Level,
    pub(crate) created_at_ns: i64,
    pub(crate) writer_id: String,
    pub(crate) first_sequence: u64,
    pub(crate) last_sequence: u64,
    /// The blocks that it is made from.
    pub(crate) sources: Vec<String>,
    /// Whether to write the readable column `frames`.
    pub(crate) has_frames: bool,
}

impl BlockIdentity {
    /// Where a table of it is.
    pub(crate) fn path(&self, table: Table) -> String {
        table_path(
            table,
            &self.tenant,
            &self.date,
            self.level.number(),
            &self.block_id,
        )
    }
}

/// Writes the tables, which are no block until the manifest is there too.
pub(crate) fn write_tables(
    storage: &dyn BlockStorage,
    identity: &BlockIdentity,
    layout: &BlockLayout<'_>,
    source: &mut dyn SampleSource,
) -> Result<BlockMeta, StoreError> {
    let mut files = Vec::new();
    let mut labels = SampleLabels::new(layout.tables, layout.labels.clone());
    for table in Table::ALL {
        let content =
            encode_table(table, identity, layout, source, &mut labels).map_err(|reason| {
                StoreError::BlockWrite {
                    block_id: identity.block_id.clone(),
                    reason,
                }
            })?;
        let path = identity.path(table);
        files.push(FileMeta::of(table.name(), path.clone(), &content));
        storage.put(&path, content.into())?;
        failpoint!("flush.table.after");
    }
    let starts = || layout.profiles.iter().map(|placed| placed.facts.start_ns);
    let services = layout.services.iter().flat_map(|service| &service.types);
    Ok(BlockMeta {
        block_id: identity.block_id.clone(),
        schema_version: SCHEMA_VERSION,
        tenant: identity.tenant.clone(),
        date: identity.date.clone(),
        level: identity.level.number(),
        min_time_ns: starts().min().unwrap_or(0),
        max_time_ns: starts().max().unwrap_or(0),
        rows: layout.rows(),
        profiles: layout.profiles.len() as u64,
        bytes: files.iter().map(|file| file.bytes).sum(),
        created_at_ns: identity.created_at_ns,
        writer_id: identity.writer_id.clone(),
        first_sequence: identity.first_sequence,
        last_sequence: identity.last_sequence,
        sources: identity.sources.clone(),
        outputs: Vec::new(),
        sample_labels: labels.names.into_iter().collect(),
        revision: 0,
        unsymbolized: Some(layout.unsymbolized.clone()),
        files,
        services: services.cloned().collect(),
    })
}

/// Makes a block of written tables.
pub(crate) fn write_manifest(
    storage: &dyn BlockStorage,
    meta: &BlockMeta,
) -> Result<(), StoreError> {
    let manifest = encode_manifest(meta).map_err(|error| StoreError::BlockWrite {
        block_id: meta.block_id.clone(),
        reason: error.to_string(),
    })?;
    failpoint!("flush.manifest.before");
    storage.put(&manifest_path(&meta.block_id), manifest.into())?;
    failpoint!("flush.manifest.after");
    Ok(())
}

fn encode_table(
    table: Table,
    identity: &BlockIdentity,
    layout: &BlockLayout<'_>,
    source: &mut dyn SampleSource,
    labels: &mut SampleLabels<'_>,
) -> Result<Vec<u8>, String> {
    let goal = WriteGoal {
        has_traces: source.has_traces(),
        is_lasting: identity.level.is_lasting(),
        samples_per_profile: layout.rows() / (layout.profiles.len() as u64).max(1),
    };
    encode(table, goal, |write| {
        write_rows(table, identity, layout, source, labels, write)
    })
}

/// Hands over the rows of a table piece by piece, at least one, be it empty. Table `samples` comes
/// before `label_sets`, which has the sets of samples too.
pub(super) fn write_rows(
    table: Table,
    identity: &BlockIdentity,
    layout: &BlockLayout<'_>,
    source: &mut dyn SampleSource,
    labels: &mut SampleLabels<'_>,
    write: &mut dyn FnMut(Result<RecordBatch, ArrowError>) -> Result<(), String>,
) -> Result<(), String> {
    let block_id = identity.block_id.as_str();
    match table {
        Table::Samples => sample_rows::write(block_id, layout, source, labels, write),
        Table::Profiles => write(rows::profiles(identity, layout)),
        Table::LabelSets => write(rows::label_sets(block_id, &labels.table)),
        Table::StackNodes => {
            let stacks = StackRows {
                block_id,
                has_frames: identity.has_frames,
                services: &layout.services,
                locations: layout.tables.locations(),
                location_ids: &layout.location_ids,
            };
            stack_rows::write(&stacks, write)
        }
        Table::Locations => {
            let locations = layout.tables.locations();
            write(rows::locations(block_id, locations, &layout.locations))
        }
    }
}

/// The file of a table whose rows `rows` hands over, as [`write_rows`] does.
pub(super) fn encode(
    table: Table,
    goal: WriteGoal,
    rows: impl FnOnce(
        &mut dyn FnMut(Result<RecordBatch, ArrowError>) -> Result<(), String>,
    ) -> Result<(), String>,
) -> Result<Vec<u8>, String> {
    let mut writer: Option<ArrowWriter<Vec<u8>>> = None;
    let mut write = |batch: Result<RecordBatch, ArrowError>| -> Result<(), String> {
        let batch = batch.map_err(|error| error.to_string())?;
        if writer.is_none() {
            // The arrow schema would tell readers that texts are dictionaries, which only we know.
            let options = ArrowWriterOptions::new()
                .with_properties(table.writer_properties(goal))
                .with_skip_arrow_metadata(true);
            let new = ArrowWriter::try_new_with_options(Vec::new(), batch.schema(), options);
            writer = Some(new.map_err(|error| error.to_string())?);
        }
        let writer = writer.as_mut().expect("made above");
        writer.write(&batch).map_err(|error| error.to_string())
    };
    rows(&mut write)?;
    let writer = writer.expect("at least one piece is handed over");
    writer.into_inner().map_err(|error| error.to_string())
}
