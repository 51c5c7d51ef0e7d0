//! The head to blocks.

use std::collections::BTreeMap;
use std::sync::Arc;

use jiff::Timestamp;
use twox_hash::XxHash3_128;
use ulid::Ulid;

use crate::block::BlockIdentity;
use crate::block::BlockLayout;
use crate::block::BlockMeta;
use crate::block::Level;
use crate::block::MemoryContent;
use crate::block::MemorySource;
use crate::block::write_tables;
use crate::error::StoreError;
use crate::head::Head;
use crate::head::HeadProfile;
use crate::log::Sequence;
use crate::storage::BlockStorage;
use crate::sync::read;

/// A head that takes no more profiles, and the log records that it holds.
#[derive(Clone, Debug)]
pub(crate) struct FrozenHead {
    pub(crate) tenant: String,
    pub(crate) head: Arc<Head>,
    pub(crate) range: LogRange,
}

/// Log records, both ends included.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct LogRange {
    pub(crate) first: Sequence,
    pub(crate) last: Sequence,
}

/// How blocks are written.
#[derive(Clone, Debug)]
pub(crate) struct FlushSettings<'a> {
    pub(crate) storage: &'a dyn BlockStorage,
    pub(crate) writer_id: u64,
    pub(crate) created_at_ns: i64,
    pub(crate) has_frames: bool,
}

/// Writes the tables of a head's blocks, one for each UTC day on which a profile starts: a block of
/// one day is what paths, retention and other engines count on. They are no blocks until they have
/// their manifests.
pub(crate) fn write_tables_of(
    frozen: &FrozenHead,
    settings: &FlushSettings<'_>,
) -> Result<Vec<BlockMeta>, StoreError> {
    let profiles = frozen.head.profiles();
    let mut by_date: BTreeMap<String, Vec<&HeadProfile>> = BTreeMap::new();
    for profile in &profiles {
        by_date
            .entry(utc_date(profile.start_ns))
            .or_default()
            .push(profile);
    }
    let tables = read(&frozen.head.tables);
    let mut blocks = Vec::new();
    for (date, profiles) in by_date {
        let content = MemoryContent::new(&profiles, tables.parents().len());
        let layout = BlockLayout::new(&tables, &content.list, &content.ends);
        let identity = BlockIdentity {
            block_id: block_id(frozen, settings.writer_id, &date, &content.profiles),
            tenant: frozen.tenant.clone(),
            date,
            level: Level::Flushed,
            created_at_ns: settings.created_at_ns,
            writer_id: writer_name(settings.writer_id),
            first_sequence: frozen.range.first,
            last_sequence: frozen.range.last,
            sources: Vec::new(),
            has_frames: settings.has_frames,
        };
        let mut source = MemorySource::new(content.profiles);
        let meta = write_tables(settings.storage, &identity, &layout, &mut source)?;
        blocks.push(meta);
    }
    Ok(blocks)
}

/// The name of a log in catalogs and manifests.
pub(crate) fn writer_name(writer_id: u64) -> String {
    format!("{writer_id:016x}")
}

/// The same records flushed again make the same id, so that a retry overwrites what a crash left.
fn block_id(frozen: &FrozenHead, writer_id: u64, date: &str, profiles: &[&HeadProfile]) -> String {
    let earliest_ns = profiles.iter().map(|profile| profile.start_ns).min();
    let milliseconds = u64::try_from(earliest_ns.unwrap_or(0) / 1_000_000).unwrap_or(0);
    let origin = format!(
        "{writer_id}/{}-{}/{}/{date}",
        frozen.range.first, frozen.range.last, frozen.tenant
    );
    Ulid::from_parts(milliseconds, XxHash3_128::oneshot(origin.as_bytes())).to_string()
}

pub(crate) fn utc_date(time_ns: i64) -> String {
    // Every time of 64 bits of nanoseconds is in the range of a timestamp.
    Timestamp::from_nanosecond(time_ns.into())
        .unwrap_or(Timestamp::UNIX_EPOCH)
        .strftime("%Y-%m-%d")
        .to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_are_of_utc() {
        assert_eq!(utc_date(0), "1970-01-01");
        assert_eq!(utc_date(1_732_147_199_999_999_999), "2024-11-20");
        assert_eq!(utc_date(1_732_147_200_000_000_000), "2024-11-21");
        assert_eq!(utc_date(i64::MAX), "2262-04-11");
    }
}
