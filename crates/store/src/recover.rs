//! What a crash or a lost catalog leaves behind, put in order before anything is read.
//!
//! A block is written before the catalog knows it. Until then its profiles are in the log as well,
//! so exactly one of the two must count. What the catalog does not know and the log has as a whole
//! is read from the log; everything else that is there as a block is a block.

use std::collections::BTreeMap;

use hashbrown::HashMap;
use hashbrown::HashSet;

use crate::block::BlockMeta;
use crate::block::manifest_path;
use crate::block::remove_files;
use crate::catalog::Catalog;
use crate::catalog::Publication;
use crate::compact::KnownBlocks;
use crate::compact::settle_merges;
use crate::error::BlockErrorKind;
use crate::error::StoreError;
use crate::failpoint::failpoint;
use crate::flush::writer_name;
use crate::leftovers::read_unknown_manifests;
use crate::leftovers::sweep;
use crate::log::DurableLog;
use crate::log::Sequence;
use crate::logs::Logs;
use crate::resymbolize::settle_revisions;
use crate::snapshot::QuarantinedBlock;
use crate::storage::BlockStorage;
use crate::storage::FoundFile;

/// What is there when catalog and files agree.
#[derive(Debug)]
pub(crate) struct Recovered {
    /// The files, and their bytes.
    pub(crate) sizes: HashMap<String, u64>,
    /// Blocks that the catalog does not know, and whose manifests cannot be read.
    pub(crate) damaged: Vec<QuarantinedBlock>,
    /// Blocks that went because a log has all of their records.
    pub(crate) in_log: u64,
}

/// Makes catalog and files agree.
pub(crate) fn recover_blocks(
    storage: &dyn BlockStorage,
    catalog: &dyn Catalog,
    logs: &Logs,
    now_ns: i64,
) -> Result<Recovered, StoreError> {
    forget_deleted(storage, catalog)?;
    let files = storage.list("")?;
    let mut known: HashSet<String> = HashSet::new();
    known.extend(catalog.blocks()?.into_iter().map(|meta| meta.block_id));
    let quarantined = catalog.quarantined()?;
    known.extend(quarantined.into_iter().map(|(meta, _)| meta.block_id));
    let to_answer = known.clone();
    let deleted = catalog.deleted_blocks()?;
    known.extend(deleted.into_iter().map(|meta| meta.block_id));
    let unknown = read_unknown_manifests(storage, &files, &known)?;
    let damaged = unknown.unreadable;
    known.extend(damaged.iter().map(|block| block.block_id.clone()));
    failpoint!("recover.before");
    let known_blocks = KnownBlocks {
        all: &known,
        gone: &gone(storage, &files, &unknown.blocks, &to_answer)?,
    };
    let verdict = settle_merges(unknown.blocks, known_blocks);
    for meta in &verdict.doubled {
        let block_id = &meta.block_id;
        tracing::info!(block_id, "a block goes whose profiles are in others");
        take_back(storage, meta)?;
    }
    let unknown_count = verdict.kept.len();
    let settlement = Settlement {
        storage,
        catalog,
        replaced: &verdict.replaced,
        now_ns,
    };
    let found = settlement.settle(verdict.kept, logs)?;
    forget_deleted(storage, catalog)?;
    let in_log = (unknown_count - found.len()) as u64;
    failpoint!("recover.settle.after");
    known.extend(found);
    sweep(storage, &files, &known, now_ns)?;
    settle_revisions(storage, catalog, &files)?;
    let sizes = files.into_iter().map(|file| (file.path, file.bytes));
    Ok(Recovered {
        sizes: sizes.collect(),
        damaged,
        in_log,
    })
}

fn forget_deleted(storage: &dyn BlockStorage, catalog: &dyn Catalog) -> Result<(), StoreError> {
    for meta in catalog.deleted_blocks()? {
        if remove_files(storage, &meta) {
            catalog.forget(&[meta.block_id])?;
        }
    }
    Ok(())
}

/// Which of the blocks that unknown ones were made from are to answer and have no manifest.
fn gone(
    storage: &dyn BlockStorage,
    files: &[FoundFile],
    unknown: &[BlockMeta],
    to_answer: &HashSet<String>,
) -> Result<HashSet<String>, StoreError> {
    let listed: HashSet<&str> = files.iter().map(|file| file.path.as_str()).collect();
    let sources: HashSet<&String> = unknown.iter().flat_map(|meta| &meta.sources).collect();
    let mut gone = HashSet::new();
    for block_id in sources.intersection(&to_answer.iter().collect()) {
        let manifest = manifest_path(block_id);
        // A listing may be torn; the bucket says it of the one object.
        if !listed.contains(manifest.as_str()) && is_absent(storage, &manifest)? {
            gone.insert((*block_id).clone());
        }
    }
    Ok(gone)
}

fn is_absent(storage: &dyn BlockStorage, path: &str) -> Result<bool, StoreError> {
    match storage.size(path) {
        Ok(_) => Ok(false),
        Err(fault) if fault.kind == BlockErrorKind::Damaged => Ok(true),
        Err(fault) => Err(StoreError::Bucket {
            action: "look for",
            place: path.to_owned(),
            reason: fault.reason,
        }),
    }
}

/// Where blocks that the catalog does not know are settled.
struct Settlement<'a> {
    storage: &'a dyn BlockStorage,
    catalog: &'a dyn Catalog,
    /// Blocks of the catalog that are in these.
    replaced: &'a [String],
    now_ns: i64,
}

impl Settlement<'_> {
    /// Decides on the blocks, and gives the names of those that stay.
    ///
    /// A block goes only when the log still has every record of it and will read it: then it is a
    /// flush that did not end, or the catalog was lost with the log at hand. That the checkpoint is
    /// behind a block does not say so: a new, empty or older catalog is behind blocks whose part of
    /// the log is long deleted.
    fn settle(&self, unknown: Vec<BlockMeta>, logs: &Logs) -> Result<Vec<String>, StoreError> {
        let mut held: Vec<Held> = logs
            .all()
            .map(|log| Held::by(log, self.catalog))
            .collect::<Result<_, _>>()?;
        let (in_log, found) = divide(unknown, &mut held);
        for meta in &in_log {
            let block_id = &meta.block_id;
            tracing::info!(block_id, "an unfinished flush is taken back");
            take_back(self.storage, meta)?;
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
        // All in one transaction: blocks without their checkpoint would be read from the log as
        // well, and those that they replace would count twice.
        self.catalog.publish(&Publication {
            blocks: &found,
            replaced: self.replaced,
            now_ns: self.now_ns,
            checkpoints: &checkpoints,
            ..Publication::default()
        })?;
        Ok(found.into_iter().map(|meta| meta.block_id).collect())
    }
}

/// Divides blocks into those that the log has and those that stay. A block that stays moves the
/// checkpoint behind its last record, so whatever begins before that is read from no log and stays
/// as well: one flush makes several blocks, and a merge of one of them proves that it had ended.
fn divide(unknown: Vec<BlockMeta>, held: &mut [Held]) -> (Vec<BlockMeta>, Vec<BlockMeta>) {
    let (mut in_log, mut found) = (unknown, Vec::new());
    loop {
        let (still_in_log, stays): (Vec<BlockMeta>, Vec<BlockMeta>) = in_log
            .into_iter()
            .partition(|meta| held.iter().any(|held| held.has(meta)));
        in_log = still_in_log;
        if stays.is_empty() {
            return (in_log, found);
        }
        for meta in &stays {
            let mut logs = held.iter_mut();
            if let Some(log) = logs.find(|log| log.writer == meta.writer_id) {
                log.checkpoint = log.checkpoint.max(meta.last_sequence);
            }
        }
        found.extend(stays);
    }
}

/// What a log has and no block of the catalog.
struct Held {
    writer: String,
    first_sequence: Sequence,
    checkpoint: Sequence,
}

impl Held {
    fn by(log: &dyn DurableLog, catalog: &dyn Catalog) -> Result<Self, StoreError> {
        let writer = writer_name(log.writer_id());
        Ok(Self {
            first_sequence: log.first_sequence()?.unwrap_or(u64::MAX),
            checkpoint: catalog.checkpoint(&writer)?,
            writer,
        })
    }

    fn has(&self, block: &BlockMeta) -> bool {
        block.writer_id == self.writer
            && block.first_sequence >= self.first_sequence
            && block.first_sequence > self.checkpoint
    }
}

/// Removes a block that the log has too. Its manifest goes first and must go: the log's records
/// will be in another block, and with the manifest this one would come back beside it.
fn take_back(storage: &dyn BlockStorage, meta: &BlockMeta) -> Result<(), StoreError> {
    storage.remove_for_good(&manifest_path(&meta.block_id))?;
    failpoint!("recover.take_back.manifest");
    remove_files(storage, meta);
    failpoint!("recover.take_back.after");
    Ok(())
}
