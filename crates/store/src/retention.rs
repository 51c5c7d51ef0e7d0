//! Which blocks go when there are too many or they are too old.

use std::collections::BTreeMap;
use std::path::Path;

use crate::block::BlockMeta;
use crate::options::StoreOptions;
use crate::shared::TenantState;

/// Ids of the blocks beyond the limits, oldest first.
pub(crate) fn expired_blocks(
    tenants: &BTreeMap<String, TenantState>,
    options: &StoreOptions,
    volume_bytes: Option<u64>,
    now_ns: i64,
) -> Vec<String> {
    let states = || tenants.values();
    let readable = states().flat_map(|state| &state.blocks);
    // What cannot be read takes its space like the rest.
    let quarantined = states().flat_map(|state| &state.quarantined);
    let mut blocks: Vec<&BlockMeta> = readable.map(|block| block.meta()).collect();
    blocks.extend(quarantined.map(|(meta, _)| meta));
    blocks.sort_by_key(|meta| meta.max_time_ns);
    let share = options.max_volume_percent.zip(volume_bytes);
    let share = share.map(|(percent, bytes)| bytes / 100 * u64::from(percent));
    let max_bytes = match (options.max_bytes, share) {
        (Some(bytes), Some(share)) => bytes.min(share),
        (bytes, share) => bytes.or(share).unwrap_or(u64::MAX),
    };
    let max_age_ns = options.max_age.map_or(i64::MAX, |age| {
        i64::try_from(age.as_nanos()).unwrap_or(i64::MAX)
    });
    let mut bytes: u64 = blocks.iter().map(|meta| meta.bytes).sum();
    let mut expired = Vec::new();
    for meta in blocks {
        let is_old = now_ns.saturating_sub(meta.max_time_ns) > max_age_ns;
        if !is_old && bytes <= max_bytes {
            break;
        }
        bytes -= meta.bytes;
        expired.push(meta.block_id.clone());
    }
    expired
}

/// Size of the volume that holds a directory; `None` where the system does not say.
pub(crate) fn volume_bytes(directory: &Path) -> Option<u64> {
    let volume = rustix::fs::statvfs(directory).ok()?;
    Some(volume.f_blocks.saturating_mul(volume.f_frsize))
}
