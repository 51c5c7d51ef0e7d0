//! What is in the place of blocks without the catalog knowing it.

use hashbrown::HashSet;
use ulid::Ulid;

use crate::block::BlockMeta;
use crate::block::MANIFESTS;
use crate::block::ManifestError;
use crate::block::SCHEMA_VERSION;
use crate::block::Table;
use crate::block::decode_manifest;
use crate::block::manifest_path;
use crate::error::BlockErrorKind;
use crate::error::StoreError;
use crate::snapshot::QuarantinedBlock;
use crate::storage::BlockStorage;
use crate::storage::FoundFile;

/// How old tables without a manifest must be in a bucket before they go, nanoseconds. Another
/// process, which should not be there, may be about to write the manifest.
const ORPHAN_AGE_NS: i64 = 24 * 3600 * 1_000_000_000;

/// Manifests that the catalog does not know.
#[derive(Debug, Default)]
pub(crate) struct UnknownManifests {
    pub(crate) blocks: Vec<BlockMeta>,
    /// Those whose manifests are damaged. The blocks may be all that is left of their data.
    pub(crate) unreadable: Vec<QuarantinedBlock>,
}

/// What a file is by its path.
enum Role<'a> {
    Manifest(&'a str),
    Table(&'a str),
    /// A file that was being written.
    Temporary,
    /// Not named like ours, so not ours.
    Foreign,
}

/// Reads the manifests of blocks that are not `known`.
pub(crate) fn read_unknown_manifests(
    storage: &dyn BlockStorage,
    files: &[FoundFile],
    known: &HashSet<String>,
) -> Result<UnknownManifests, StoreError> {
    let manifests = files.iter().filter_map(|file| match role(&file.path) {
        Role::Manifest(block_id) if !known.contains(block_id) => Some(file.path.as_str()),
        _ => None,
    });
    let paths: Vec<&str> = manifests.collect();
    let mut unknown = UnknownManifests::default();
    for (path, content) in paths.iter().zip(storage.read_all(&paths)?) {
        match decode_manifest(&content) {
            Ok(meta) => unknown.blocks.push(meta),
            // What it says is not known, so neither is what would be lost by going on without it.
            Err(ManifestError::Newer(found)) => {
                return Err(StoreError::Newer {
                    path: path.into(),
                    what: "block",
                    found: found.into(),
                    known: SCHEMA_VERSION.into(),
                });
            }
            Err(ManifestError::Damaged(reason)) => {
                tracing::error!(
                    path,
                    reason,
                    "a manifest is damaged; its block does not answer"
                );
                if let Role::Manifest(block_id) = role(path) {
                    unknown.unreadable.push(QuarantinedBlock {
                        block_id: block_id.to_owned(),
                        reason: format!("its manifest {path} is damaged: {reason}"),
                    });
                }
            }
        }
    }
    Ok(unknown)
}

/// Deletes what a crash left of files that were being written: temporary files, and tables whose
/// block never got its manifest.
pub(crate) fn sweep(
    storage: &dyn BlockStorage,
    files: &[FoundFile],
    known: &HashSet<String>,
    now_ns: i64,
) -> Result<(), StoreError> {
    for file in files {
        let is_left_over = match role(&file.path) {
            Role::Temporary => true,
            Role::Table(block_id) if known.contains(block_id) => false,
            Role::Table(block_id) if storage.is_remote() => {
                now_ns.saturating_sub(file.modified_ns) > ORPHAN_AGE_NS
                    && is_without_manifest(storage, block_id)
            }
            Role::Table(_) => true,
            Role::Manifest(_) | Role::Foreign => false,
        };
        if is_left_over {
            storage.remove(&file.path)?;
        }
    }
    Ok(())
}

/// Whether the bucket says so itself: a listing may be torn.
fn is_without_manifest(storage: &dyn BlockStorage, block_id: &str) -> bool {
    let manifest = storage.size(&manifest_path(block_id));
    manifest.is_err_and(|fault| fault.kind == BlockErrorKind::Damaged)
}

fn role(path: &str) -> Role<'_> {
    let (folder, rest) = path.split_once('/').unwrap_or(("", path));
    let name = rest.rsplit('/').next().unwrap_or(rest);
    let Some((stem, extension)) = name.rsplit_once('.') else {
        return Role::Foreign;
    };
    let stem = stem.split_once('.').map_or(stem, |(block_id, _)| block_id);
    let is_of_table = Table::ALL.iter().any(|table| table.name() == folder);
    match extension {
        _ if Ulid::from_string(stem).is_err() => Role::Foreign,
        _ if folder != MANIFESTS && !is_of_table => Role::Foreign,
        "tmp" => Role::Temporary,
        _ if is_of_table => Role::Table(stem),
        "json" => Role::Manifest(stem),
        _ => Role::Foreign,
    }
}
