//! The readers of logs and blocks without a store around them, for the fuzz targets of `fuzz/`.

use std::ops::ControlFlow;
use std::path::Path;
use std::sync::Arc;

use candela_model::Profile;

use crate::block::Block;
use crate::block::BlockMeta;
use crate::block::SampleColumns;
use crate::block::TableCache;
use crate::codec::decode_profile;
use crate::codec::encode_profile;
use crate::compact::stack_counts;
use crate::error::BlockError;
use crate::error::StoreError;
use crate::log::DurableLog;
use crate::log::LocalLog;
use crate::log::LocalSettings;
use crate::options::SyncMode;
use crate::space::SpaceReserve;
use crate::storage::local_storage;

/// A record that was read back.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReplayedRecord {
    /// Its position in the log.
    pub sequence: u64,
    /// Whose it is.
    pub tenant: String,
    /// The encoded profile; `None` when it does not decompress.
    pub payload: Option<Vec<u8>>,
}

/// What was read of a block.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ReadBlock {
    /// How many samples end at each stack, as the merging of blocks counts them.
    pub samples_of_stacks: Vec<u32>,
    /// How many profiles it has.
    pub profiles: usize,
    /// The stack of each sample.
    pub stack_ids: Vec<u32>,
}

/// Reads the log of a directory as a start does: a torn end is cut off.
///
/// # Errors
/// When the log is of a later version or cannot be read.
pub fn replay_log(directory: &Path) -> Result<Vec<ReplayedRecord>, StoreError> {
    let settings = LocalSettings {
        sync: SyncMode::Os,
        segment_bytes: 1 << 16,
        reserve: SpaceReserve {
            directory: directory.to_owned(),
            min_free_bytes: 0,
        },
    };
    let log = LocalLog::open(directory, settings, || 1)?;
    let mut records = Vec::new();
    log.replay(1, &mut |sequence, record| {
        records.push(ReplayedRecord {
            sequence,
            tenant: record.tenant.to_owned(),
            payload: record.decompress().ok(),
        });
        Ok(())
    })?;
    Ok(records)
}

/// The profile of a record's payload; `None` when it does not decode or is not valid.
#[must_use]
pub fn decode_payload(bytes: &[u8]) -> Option<Profile> {
    let profile = decode_profile(bytes).ok()?;
    profile.validate().ok()?;
    Some(profile)
}

/// The payload of a profile's record.
#[must_use]
pub fn encode_payload(profile: &Profile) -> Vec<u8> {
    encode_profile(profile)
}

/// Reads all of a block whose files are below a directory.
///
/// # Errors
/// When a file is missing or damaged.
pub fn read_block(directory: &Path, meta: BlockMeta) -> Result<ReadBlock, BlockError> {
    let rows = meta.rows;
    let cache = Arc::new(TableCache::new(0));
    let block = Block::new(meta, local_storage(directory), cache, Arc::default());
    let rows = 0..rows;
    let all_rows = std::slice::from_ref(&rows);
    let mut read = ReadBlock {
        profiles: block.profiles()?.rows.len(),
        // Refuses samples of stacks that are not there.
        samples_of_stacks: stack_counts(&block, all_rows)?,
        stack_ids: Vec::new(),
    };
    let columns = SampleColumns {
        label_sets: true,
        links: true,
        times: true,
    };
    block.scan_samples(all_rows, columns, &mut |chunk| {
        read.stack_ids.extend_from_slice(chunk.stack_ids);
        ControlFlow::Continue(())
    })?;
    Ok(read)
}
