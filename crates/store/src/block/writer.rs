//! A layout to five Parquet files.

use std::path::Path;

use arrow_array::RecordBatch;
use arrow_schema::ArrowError;
use parquet::arrow::ArrowWriter;
use parquet::arrow::arrow_writer::ArrowWriterOptions;
use twox_hash::XxHash3_64;

use super::layout::BlockLayout;
use super::manifest::BlockMeta;
use super::manifest::FileMeta;
use super::rows;
use super::sample_rows;
use super::schema::SCHEMA_VERSION;
use super::schema::Table;
use super::stack_rows;
use crate::data_dir::write_atomically;
use crate::error::StoreError;

/// What a block is called and where it comes from.
#[derive(Clone, Debug)]
pub(crate) struct BlockIdentity {
    pub(crate) block_id: String,
    pub(crate) tenant: String,
    pub(crate) date: String,
    pub(crate) level: u32,
    pub(crate) created_at_ns: i64,
    pub(crate) writer_id: String,
    pub(crate) first_sequence: u64,
    pub(crate) last_sequence: u64,
    /// Whether to write the readable column `frames`.
    pub(crate) has_frames: bool,
}

/// Writes the tables and the manifest below `directory`, durably.
pub(crate) fn write_block(
    directory: &Path,
    identity: &BlockIdentity,
    layout: &BlockLayout<'_>,
) -> Result<BlockMeta, StoreError> {
    let mut files = Vec::new();
    for table in Table::ALL {
        let content =
            encode_table(table, identity, layout).map_err(|reason| StoreError::BlockWrite {
                block_id: identity.block_id.clone(),
                reason,
            })?;
        let path = format!(
            "{}/tenant={}/date={}/level={}/{}.parquet",
            table.name(),
            identity.tenant,
            identity.date,
            identity.level,
            identity.block_id
        );
        write_atomically(&directory.join(&path), &content)?;
        files.push(FileMeta {
            table: table.name().to_owned(),
            path,
            bytes: content.len() as u64,
            hash: format!("{:016x}", XxHash3_64::oneshot(&content)),
        });
    }
    let starts = || layout.profiles.iter().map(|placed| placed.profile.start_ns);
    let services = layout.services.iter().flat_map(|service| &service.types);
    let meta = BlockMeta {
        block_id: identity.block_id.clone(),
        schema_version: SCHEMA_VERSION,
        tenant: identity.tenant.clone(),
        date: identity.date.clone(),
        level: identity.level,
        min_time_ns: starts().min().unwrap_or(0),
        max_time_ns: starts().max().unwrap_or(0),
        rows: layout.rows(),
        profiles: layout.profiles.len() as u64,
        bytes: files.iter().map(|file| file.bytes).sum(),
        created_at_ns: identity.created_at_ns,
        writer_id: identity.writer_id.clone(),
        first_sequence: identity.first_sequence,
        last_sequence: identity.last_sequence,
        sample_labels: layout.sample_labels.iter().cloned().collect(),
        files,
        services: services.cloned().collect(),
    };
    let manifest = serde_json::to_vec_pretty(&meta).map_err(|error| StoreError::BlockWrite {
        block_id: identity.block_id.clone(),
        reason: error.to_string(),
    })?;
    let path = directory.join(format!("_blocks/{}.json", identity.block_id));
    write_atomically(&path, &manifest)?;
    Ok(meta)
}

fn encode_table(
    table: Table,
    identity: &BlockIdentity,
    layout: &BlockLayout<'_>,
) -> Result<Vec<u8>, String> {
    let block_id = identity.block_id.as_str();
    let mut writer: Option<ArrowWriter<Vec<u8>>> = None;
    let mut write = |batch: Result<RecordBatch, ArrowError>| -> Result<(), String> {
        let batch = batch.map_err(|error| error.to_string())?;
        if writer.is_none() {
            // The arrow schema would tell readers that texts are dictionaries, which only we know.
            let options = ArrowWriterOptions::new()
                .with_properties(table.writer_properties(layout.has_traces()))
                .with_skip_arrow_metadata(true);
            let new = ArrowWriter::try_new_with_options(Vec::new(), batch.schema(), options);
            writer = Some(new.map_err(|error| error.to_string())?);
        }
        let writer = writer.as_mut().expect("made above");
        writer.write(&batch).map_err(|error| error.to_string())
    };
    match table {
        Table::Samples => sample_rows::write(block_id, layout, &mut write)?,
        Table::Profiles => write(rows::profiles(identity, layout))?,
        Table::LabelSets => write(rows::label_sets(block_id, layout))?,
        Table::StackNodes => stack_rows::write(identity, layout, &mut write)?,
        Table::Locations => write(rows::locations(block_id, layout))?,
    }
    let writer = writer.expect("each table is written at least one batch, be it empty");
    writer.into_inner().map_err(|error| error.to_string())
}
