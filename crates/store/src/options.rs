//! How a store is set up.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use candela_model::Selector;

use crate::block::Tier;
use crate::clock::Clock;
use crate::clock::SystemClock;
use crate::storage::Backend;

/// When an append counts as durable.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum SyncMode {
    /// After `fdatasync`: survives a power cut.
    #[default]
    Fsync,
    /// After `write`: survives a crash of the process, not of the machine.
    Os,
}

/// Where the log is kept.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum LogPlace {
    /// In the data directory. It is lost with the disk.
    #[default]
    Local,
    /// In the bucket of the blocks. An append takes as long as a request to the bucket.
    Object,
}

/// How long some profiles are kept.
#[derive(Clone, Debug)]
pub struct RetentionRule {
    /// Whose; all tenants' when `None`.
    pub tenant: Option<String>,
    /// Of which series. A rule that names a label which sums do not keep is none for those.
    pub selector: Selector,
    /// Of which type, an identifier; all types when `None`.
    pub profile_type: Option<String>,
    /// How long after its start a profile is kept.
    pub keep: Duration,
}

/// Settings of a [`Store`](crate::Store).
#[derive(Clone, Debug)]
pub struct StoreOptions {
    /// The directory that holds everything; created when it does not exist.
    pub data_dir: PathBuf,
    /// Where blocks are kept.
    pub backend: Backend,
    /// Where the log is kept.
    pub log: LogPlace,
    /// Segments of a log in a bucket begin at least so far apart, unless they are full: each is a
    /// request that is paid for.
    pub log_segment_interval: Duration,
    /// Pause after a first failed request for a log in a bucket; it doubles with each further one.
    pub log_retry_pause: Duration,
    /// When an append to a local log counts as durable.
    pub sync: SyncMode,
    /// The head is written to blocks when its oldest profile is this old.
    pub flush_interval: Duration,
    /// The head is written to blocks when it holds this many bytes.
    pub flush_bytes: u64,
    /// Appends are refused when the head, which a failing flush cannot empty, holds this many bytes.
    pub max_head_bytes: u64,
    /// Size of a log segment, bytes, which is allocated in advance.
    pub segment_bytes: u64,
    /// Appends are refused when this many bytes wait for the log.
    pub max_queue_bytes: u64,
    /// Bytes of decoded block tables (symbols, stacks, labels) that are kept for the next query.
    pub cache_bytes: u64,
    /// Bytes of files of a bucket that are kept in the data directory for the next query.
    pub remote_cache_bytes: u64,
    /// Blocks whose window ended this long ago are deleted; `None` keeps them.
    pub max_age: Option<Duration>,
    /// The same for sums over ten minutes.
    pub ten_minutes_max_age: Option<Duration>,
    /// The same for sums over an hour.
    pub hourly_max_age: Option<Duration>,
    /// How long profiles of some tenants, series and types are kept instead, in all tiers; the
    /// first rule that fits counts.
    pub retention_rules: Vec<RetentionRule>,
    /// The oldest blocks are deleted when all together are larger, bytes; `None` keeps them.
    pub max_bytes: Option<u64>,
    /// The oldest blocks are deleted when all together take a larger share of the volume, percent;
    /// `None` keeps them.
    pub max_volume_percent: Option<u8>,
    /// Appends are refused while the volume of the log has less free, bytes, so that what was taken
    /// gets into blocks. On a small volume a twentieth of it is enough.
    pub min_free_bytes: u64,
    /// The most rows that are merged at a time, which bounds memory; some 40 bytes each.
    pub compaction_rows: u64,
    /// The most profiles that are merged at a time; some 200 bytes each.
    pub compaction_profiles: u64,
    /// The most of a core that merging in the background takes, percent; 0 merges only when asked.
    pub compaction_cpu_percent: u32,
    /// The tiers of sums that are made of the blocks of an hour.
    pub rollups: Vec<Tier>,
    /// Whether flushed blocks also hold each stack as a list of function names, which people and other
    /// engines read; the bytes of the stacks about double.
    pub readable_stacks: bool,
    /// Where the time comes from.
    pub clock: Arc<dyn Clock>,
}

impl StoreOptions {
    /// How long the profiles of a tier are kept where no rule says otherwise.
    pub(crate) fn max_age_of(&self, tier: Tier) -> Option<Duration> {
        match tier {
            Tier::Raw => self.max_age,
            Tier::TenMinutes => self.ten_minutes_max_age,
            Tier::Hourly => self.hourly_max_age,
        }
    }

    /// The contract's defaults for this directory: `fdatasync`, flush after 60 s or 64 MiB, 14 days
    /// and 50 GB or a fifth of the volume of blocks.
    #[must_use]
    pub fn new(data_dir: impl Into<PathBuf>) -> Self {
        Self {
            data_dir: data_dir.into(),
            backend: Backend::Filesystem,
            log: LogPlace::Local,
            log_segment_interval: Duration::from_secs(1),
            log_retry_pause: Duration::from_millis(200),
            sync: SyncMode::Fsync,
            flush_interval: Duration::from_secs(60),
            flush_bytes: 64 << 20,
            max_head_bytes: 1 << 30,
            segment_bytes: 64 << 20,
            max_queue_bytes: 256 << 20,
            cache_bytes: 128 << 20,
            remote_cache_bytes: 1 << 30,
            max_age: Some(Duration::from_secs(14 * 24 * 3600)),
            ten_minutes_max_age: Some(Duration::from_secs(90 * 24 * 3600)),
            hourly_max_age: Some(Duration::from_secs(400 * 24 * 3600)),
            retention_rules: Vec::new(),
            max_bytes: Some(50_000_000_000),
            max_volume_percent: Some(20),
            min_free_bytes: 256 << 20,
            compaction_rows: 16 << 20,
            compaction_profiles: 400_000,
            compaction_cpu_percent: 50,
            rollups: vec![Tier::TenMinutes, Tier::Hourly],
            readable_stacks: false,
            clock: Arc::new(SystemClock),
        }
    }
}
