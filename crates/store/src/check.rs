//! Checking what a store keeps, and making its catalog again, without a store that runs.

use std::fs;
use std::io::ErrorKind;
use std::path::Path;
use std::path::PathBuf;

use hashbrown::HashSet;

use crate::block::BlockMeta;
use crate::block::MANIFESTS;
use crate::block::decode_manifest;
use crate::block::verify_file;
use crate::catalog::Catalog;
use crate::catalog::SqliteCatalog;
use crate::data_dir::DataDir;
use crate::data_dir::sync_directory;
use crate::error::BlockErrorKind;
use crate::error::StoreError;
use crate::logs::LogSources;
use crate::options::StoreOptions;
use crate::recover::recover_blocks;
use crate::storage::BlockStorage;
use crate::storage::block_storage;
use crate::storage::block_storage_without_copies;
use crate::storage::open_bucket;

/// What is known of a block after every byte of it was read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BlockCheck {
    /// The block.
    pub block_id: String,
    /// Whose it is; empty when its manifest cannot be read.
    pub tenant: String,
    /// Files that were read.
    pub files: u64,
    /// Bytes of these files.
    pub bytes: u64,
    /// What is wrong with it, each with the file; empty when it is sound.
    pub faults: Vec<String>,
}

/// What a catalog was made of.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RebuiltCatalog {
    /// Blocks that are in it.
    pub blocks: u64,
    /// Tenants that they are of.
    pub tenants: u64,
    /// Rows of their samples.
    pub samples: u64,
    /// Bytes of their files.
    pub bytes: u64,
    /// Blocks that are not in it because the log still has all of their profiles, which the next
    /// start reads from there.
    pub in_log: u64,
    /// Blocks whose manifests are damaged, with the reason; they are not in it.
    pub damaged: Vec<(String, String)>,
    /// Where the catalog is that was there before.
    pub previous: Option<PathBuf>,
}

/// Reads every file of every block and compares it with what the manifest says. A server may run
/// meanwhile: a block that it removes is no fault.
///
/// # Errors
/// When the manifests cannot be listed. What is wrong with a block is in its report.
pub fn verify_blocks(
    options: &StoreOptions,
    visit: &mut dyn FnMut(&BlockCheck),
) -> Result<(), StoreError> {
    let data_dir = DataDir::without_lock(&options.data_dir);
    let bucket = open_bucket(&options.backend, &options.data_dir)?;
    let storage = block_storage_without_copies(bucket.as_ref(), &data_dir)?;
    let mut manifests = storage.list(MANIFESTS)?;
    manifests.retain(|file| file.path.ends_with(".json"));
    manifests.sort_by(|left, right| left.path.cmp(&right.path));
    for manifest in &manifests {
        if let Some(check) = check_block(&*storage, &manifest.path)? {
            visit(&check);
        }
    }
    Ok(())
}

/// `None` when the block went away meanwhile.
fn check_block(
    storage: &dyn BlockStorage,
    manifest: &str,
) -> Result<Option<BlockCheck>, StoreError> {
    let contents = match storage.read_all(&[manifest]) {
        Ok(contents) => contents,
        Err(error) if is_there(storage, manifest) => return Err(error),
        Err(_) => return Ok(None),
    };
    let content = contents.first().map_or(&[][..], |content| content);
    let name = manifest.rsplit('/').next().unwrap_or(manifest);
    let mut check = BlockCheck {
        block_id: name.trim_end_matches(".json").to_owned(),
        tenant: String::new(),
        files: 0,
        bytes: 0,
        faults: Vec::new(),
    };
    match decode_manifest(content) {
        Ok(meta) => check_files(storage, &meta, &mut check),
        Err(error) => check.faults.push(format!("{manifest}: {error}")),
    }
    if !check.faults.is_empty() && !is_there(storage, manifest) {
        return Ok(None);
    }
    Ok(Some(check))
}

fn check_files(storage: &dyn BlockStorage, meta: &BlockMeta, check: &mut BlockCheck) {
    check.tenant.clone_from(&meta.tenant);
    for file in &meta.files {
        check.files += 1;
        check.bytes += file.bytes;
        if let Err(fault) = verify_file(storage, file) {
            check.faults.push(fault.at(&file.path).reason);
        }
    }
}

/// Whether the block has its manifest still. What cannot be asked for is taken to be there.
fn is_there(storage: &dyn BlockStorage, manifest: &str) -> bool {
    let size = storage.size(manifest);
    !size.is_err_and(|fault| fault.kind == BlockErrorKind::Damaged)
}

/// Makes the catalog again from the manifests of the blocks. The one that is there is kept beside
/// it, with `.old` behind its name.
///
/// What is only in the catalog is lost with it: which blocks were set aside (they are tried again),
/// and what came within the last ten minutes and would be known if it came again.
///
/// # Errors
/// When a server uses the directory, or something cannot be read or written.
pub fn rebuild_catalog(options: &StoreOptions) -> Result<RebuiltCatalog, StoreError> {
    let data_dir = DataDir::open(&options.data_dir)?;
    let bucket = open_bucket(&options.backend, &options.data_dir)?;
    let storage = block_storage(bucket.as_ref(), &data_dir, options.remote_cache_bytes)?;
    let path = data_dir.catalog();
    let new_path = path.with_extension("sqlite.new");
    remove_database(&new_path)?;
    let catalog = SqliteCatalog::open(&new_path)?;
    let logs = LogSources {
        options,
        data_dir: &data_dir,
        bucket: bucket.as_ref(),
        catalog: &catalog,
    };
    let recovered = recover_blocks(&*storage, &catalog, &logs.open()?, options.clock.now_ns())?;
    let blocks = catalog.blocks()?;
    catalog.close()?;
    let previous = replace_database(&new_path, &path)?;
    let tenants: HashSet<&str> = blocks.iter().map(|meta| meta.tenant.as_str()).collect();
    let (in_log, damaged) = (recovered.in_log, recovered.damaged.into_iter());
    Ok(RebuiltCatalog {
        blocks: blocks.len() as u64,
        tenants: tenants.len() as u64,
        samples: blocks.iter().map(|meta| meta.rows).sum(),
        bytes: blocks.iter().map(|meta| meta.bytes).sum(),
        in_log,
        damaged: damaged
            .map(|block| (block.block_id, block.reason))
            .collect(),
        previous,
    })
}

/// Puts a database in the place of another, which stays beside it.
fn replace_database(new: &Path, path: &Path) -> Result<Option<PathBuf>, StoreError> {
    let old = path.with_extension("sqlite.old");
    remove_database(&old)?;
    let mut previous = None;
    // The database before what belongs to it: a crash in between must not leave an older state of it
    // in its place, which the database without its write-ahead log is.
    for suffix in ["", "-wal", "-shm"] {
        if rename_if_there(&with_suffix(path, suffix), &with_suffix(&old, suffix))? {
            previous = Some(old.clone());
        }
    }
    // A crash here leaves no catalog, and the next start makes one.
    fs::rename(new, path).map_err(StoreError::io("rename", new))?;
    sync_directory(path.parent().unwrap_or(Path::new(".")))?;
    Ok(previous)
}

fn rename_if_there(from: &Path, to: &Path) -> Result<bool, StoreError> {
    match fs::rename(from, to) {
        Ok(()) => Ok(true),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(false),
        Err(error) => Err(StoreError::io("rename", from)(error)),
    }
}

fn remove_database(path: &Path) -> Result<(), StoreError> {
    for suffix in ["", "-wal", "-shm"] {
        let path = with_suffix(path, suffix);
        match fs::remove_file(&path) {
            Err(error) if error.kind() != ErrorKind::NotFound => {
                return Err(StoreError::io("remove", &path)(error));
            }
            _ => {}
        }
    }
    Ok(())
}

fn with_suffix(path: &Path, suffix: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(suffix);
    name.into()
}
