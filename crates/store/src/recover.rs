//! What a crash or a lost catalog leaves behind, put in order before anything is read.
//!
//! A block is written before the catalog knows it. Until then its profiles are in the log as well,
//! so exactly one of the two must count. What the catalog does not know and the log has as a whole
//! is read from the log; everything else that is there as a block is a block.

use std::collections::BTreeMap;
use std::fs;
use std::io::ErrorKind;
use std::path::Path;

use hashbrown::HashSet;

use crate::block::BlockMeta;
use crate::block::Table;
use crate::block::remove_files;
use crate::catalog::Catalog;
use crate::data_dir::DataDir;
use crate::data_dir::sync_directory;
use crate::error::StoreError;
use crate::flush::writer_name;
use crate::log::first_sequence_of_log;

/// The folder of manifests, below the directory of blocks.
const MANIFESTS: &str = "_blocks";

/// What the folder of manifests holds.
#[derive(Debug, Default)]
struct Manifests {
    blocks: Vec<BlockMeta>,
    /// Names of manifests that do not parse. Their blocks may be all that is left of their data.
    unreadable: Vec<String>,
}

/// Makes catalog and files agree.
pub(crate) fn recover_blocks(
    data_dir: &DataDir,
    catalog: &dyn Catalog,
    writer_id: u64,
) -> Result<(), StoreError> {
    let directory = data_dir.blocks();
    for meta in catalog.deleted_blocks()? {
        if remove_files(&directory, &meta) {
            catalog.forget(&[meta.block_id])?;
        }
    }
    let manifests = read_manifests(&directory)?;
    let mut known: HashSet<String> = HashSet::new();
    known.extend(manifests.unreadable);
    known.extend(catalog.blocks()?.into_iter().map(|meta| meta.block_id));
    let deleted = catalog.deleted_blocks()?;
    known.extend(deleted.into_iter().map(|meta| meta.block_id));
    let quarantined = catalog.quarantined()?;
    known.extend(quarantined.into_iter().map(|(meta, _)| meta.block_id));
    let unknown = manifests.blocks.into_iter();
    let unknown = unknown.filter(|meta| !known.contains(&meta.block_id));
    let unknown: Vec<BlockMeta> = unknown.collect();
    let found = settle(data_dir, catalog, unknown, writer_id)?;
    known.extend(found);
    for table in Table::ALL {
        sweep(&directory.join(table.name()), &known)?;
    }
    sweep_temporary_files(&directory.join(MANIFESTS))
}

/// Decides on the blocks that the catalog does not know, and gives the names of those that stay.
///
/// A block goes only when the log still has every record of it: then it is a flush that did not
/// end, or the catalog was lost with the log at hand. That the checkpoint is behind a block does
/// not say so: a new, empty or older catalog is behind blocks whose part of the log is long
/// deleted.
fn settle(
    data_dir: &DataDir,
    catalog: &dyn Catalog,
    unknown: Vec<BlockMeta>,
    writer_id: u64,
) -> Result<Vec<String>, StoreError> {
    let writer = writer_name(writer_id);
    let checkpoint = catalog.checkpoint(&writer)?;
    let log_start = first_sequence_of_log(&data_dir.log())?.unwrap_or(u64::MAX);
    let (in_log, found): (Vec<BlockMeta>, Vec<BlockMeta>) = unknown.into_iter().partition(|meta| {
        meta.writer_id == writer
            && meta.first_sequence >= log_start
            && meta.last_sequence > checkpoint
    });
    for meta in &in_log {
        let block_id = &meta.block_id;
        tracing::info!(block_id, "an unfinished flush is taken back");
        take_back(&data_dir.blocks(), meta)?;
    }
    if found.is_empty() {
        return Ok(Vec::new());
    }
    let mut checkpoints: BTreeMap<&str, u64> = BTreeMap::new();
    for meta in &found {
        let last = checkpoints.entry(&meta.writer_id).or_default();
        *last = meta.last_sequence.max(*last);
    }
    let checkpoints: Vec<(&str, u64)> = checkpoints.into_iter().collect();
    tracing::warn!(
        blocks = found.len(),
        "the catalog did not know blocks that are there; they answer again"
    );
    // All in one transaction: blocks without their checkpoint would be read from the log as well.
    catalog.publish(&found, &checkpoints)?;
    Ok(found.into_iter().map(|meta| meta.block_id).collect())
}

/// Removes a block that the log has too. Its manifest goes first and must go: the log's records
/// will be in another block, and with the manifest this one would come back beside it.
fn take_back(directory: &Path, meta: &BlockMeta) -> Result<(), StoreError> {
    let manifests = directory.join(MANIFESTS);
    let path = manifests.join(format!("{}.json", meta.block_id));
    match fs::remove_file(&path) {
        Ok(()) => sync_directory(&manifests)?,
        Err(error) if error.kind() == ErrorKind::NotFound => {}
        Err(error) => return Err(StoreError::io("remove", &path)(error)),
    }
    remove_files(directory, meta);
    Ok(())
}

fn read_manifests(directory: &Path) -> Result<Manifests, StoreError> {
    let directory = directory.join(MANIFESTS);
    let mut manifests = Manifests::default();
    if !directory.is_dir() {
        return Ok(manifests);
    }
    let entries = fs::read_dir(&directory).map_err(StoreError::io("read", &directory))?;
    for entry in entries {
        let path = entry.map_err(StoreError::io("read", &directory))?.path();
        if path.extension().is_none_or(|extension| extension != "json") {
            continue;
        }
        let content = fs::read(&path).map_err(StoreError::io("read", &path))?;
        match serde_json::from_slice(&content) {
            Ok(meta) => manifests.blocks.push(meta),
            Err(error) => {
                tracing::warn!(path = %path.display(), %error, "a manifest does not parse");
                let stem = path.file_stem().and_then(|stem| stem.to_str());
                manifests.unreadable.extend(stem.map(str::to_owned));
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

/// Deletes what a crash left of manifests that were being written.
fn sweep_temporary_files(directory: &Path) -> Result<(), StoreError> {
    if !directory.is_dir() {
        return Ok(());
    }
    for entry in fs::read_dir(directory).map_err(StoreError::io("read", directory))? {
        let path = entry.map_err(StoreError::io("read", directory))?.path();
        let stem = path.file_stem().and_then(|stem| stem.to_str());
        let is_ours = stem.is_some_and(|stem| ulid::Ulid::from_string(stem).is_ok());
        if is_ours && path.extension().is_some_and(|extension| extension == "tmp") {
            fs::remove_file(&path).map_err(StoreError::io("remove", &path))?;
        }
    }
    Ok(())
}
