//! What a crash or a lost catalog leaves behind, put in order before anything is read.
//!
//! A block is written before the catalog knows it. Until then its profiles are in the log as well,
//! so exactly one of the two must count: the catalog decides, and when there is none, the log.

use std::fs;
use std::path::Path;

use hashbrown::HashMap;
use hashbrown::HashSet;

use crate::block::BlockMeta;
use crate::block::Table;
use crate::block::remove_files;
use crate::catalog::Catalog;
use crate::data_dir::DataDir;
use crate::error::StoreError;
use crate::flush::writer_name;
use crate::log::first_sequence_of_log;

/// Makes catalog and files agree.
pub(crate) fn recover_blocks(
    data_dir: &DataDir,
    catalog: &dyn Catalog,
    has_catalog: bool,
    writer_id: u64,
) -> Result<(), StoreError> {
    let directory = data_dir.blocks();
    for meta in catalog.deleted_blocks()? {
        if remove_files(&directory, &meta) {
            catalog.forget(&meta.block_id)?;
        }
    }
    let manifests = read_manifests(&directory)?;
    if !has_catalog {
        rebuild_catalog(data_dir, catalog, &manifests, writer_id)?;
    }
    let mut known: HashSet<String> = HashSet::new();
    known.extend(catalog.blocks()?.into_iter().map(|meta| meta.block_id));
    known.extend(
        catalog
            .deleted_blocks()?
            .into_iter()
            .map(|meta| meta.block_id),
    );
    let quarantined = catalog.quarantined()?;
    known.extend(quarantined.into_iter().map(|(meta, _)| meta.block_id));
    let writer = writer_name(writer_id);
    let checkpoint = catalog.checkpoint(&writer)?;
    for meta in &manifests {
        if known.contains(&meta.block_id) {
            continue;
        }
        let is_in_log = meta.writer_id == writer && meta.last_sequence > checkpoint;
        if is_in_log {
            tracing::info!(
                block_id = meta.block_id,
                "an unfinished flush is taken back"
            );
            remove_files(&directory, meta);
        } else {
            tracing::warn!(
                block_id = meta.block_id,
                "a block that the catalog does not know is left alone and does not answer"
            );
            known.insert(meta.block_id.clone());
        }
    }
    for table in Table::ALL {
        sweep(&directory.join(table.name()), &known)?;
    }
    Ok(())
}

/// Fills a new catalog from the blocks. Those whose profiles are all in the log still were not
/// published, or were a moment ago: either way the log has them.
fn rebuild_catalog(
    data_dir: &DataDir,
    catalog: &dyn Catalog,
    manifests: &[BlockMeta],
    writer_id: u64,
) -> Result<(), StoreError> {
    let writer = writer_name(writer_id);
    let log_start = first_sequence_of_log(&data_dir.log())?.unwrap_or(u64::MAX);
    let mut by_writer: HashMap<&str, Vec<BlockMeta>> = HashMap::new();
    for meta in manifests {
        if meta.writer_id != writer || meta.first_sequence < log_start {
            let blocks = by_writer.entry(&meta.writer_id).or_default();
            blocks.push(meta.clone());
        }
    }
    for (writer, blocks) in by_writer {
        tracing::warn!(
            writer,
            blocks = blocks.len(),
            "catalog rebuilt from the blocks"
        );
        let last = blocks.iter().map(|meta| meta.last_sequence).max();
        catalog.publish(&blocks, writer, last.unwrap_or(0))?;
    }
    Ok(())
}

fn read_manifests(directory: &Path) -> Result<Vec<BlockMeta>, StoreError> {
    let directory = directory.join("_blocks");
    if !directory.is_dir() {
        return Ok(Vec::new());
    }
    let mut manifests = Vec::new();
    let entries = fs::read_dir(&directory).map_err(StoreError::io("read", &directory))?;
    for entry in entries {
        let path = entry.map_err(StoreError::io("read", &directory))?.path();
        if path.extension().is_none_or(|extension| extension != "json") {
            continue;
        }
        let content = fs::read(&path).map_err(StoreError::io("read", &path))?;
        match serde_json::from_slice(&content) {
            Ok(meta) => manifests.push(meta),
            Err(error) => {
                tracing::warn!(path = %path.display(), %error, "a manifest does not parse");
            }
        }
    }
    Ok(manifests)
}

/// Deletes what a crash left of files that were being written: temporary files, and tables whose
/// block never got its manifest. Files that are not named like ours are not ours.
fn sweep(directory: &Path, known: &HashSet<String>) -> Result<(), StoreError> {
    if !directory.is_dir() {
        return Ok(());
    }
    for entry in fs::read_dir(directory).map_err(StoreError::io("read", directory))? {
        let path = entry.map_err(StoreError::io("read", directory))?.path();
        if path.is_dir() {
            sweep(&path, known)?;
            continue;
        }
        let stem = path.file_stem().and_then(|stem| stem.to_str());
        let is_ours = stem.is_some_and(|stem| ulid::Ulid::from_string(stem).is_ok());
        let is_temporary = path.extension().is_some_and(|extension| extension == "tmp");
        let is_known = stem.is_some_and(|stem| known.contains(stem));
        if is_ours && (is_temporary || !is_known) {
            fs::remove_file(&path).map_err(StoreError::io("remove", &path))?;
        }
    }
    Ok(())
}
