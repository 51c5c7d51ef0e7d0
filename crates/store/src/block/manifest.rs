//! What a block says about itself beside its tables.

use serde::Deserialize;
use serde::Serialize;

/// A block's row in the catalog, and the content of `_blocks/{block_id}.json`, from which a
/// catalog can be made again.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct BlockMeta {
    /// ULID; the same content flushed again has the same.
    pub block_id: String,
    /// Version of the tables.
    pub schema_version: u32,
    /// Whose it is.
    pub tenant: String,
    /// The UTC day of its profiles, `YYYY-MM-DD`.
    pub date: String,
    /// 0 as flushed; higher when compacted.
    pub level: u32,
    /// Earliest start of a profile, nanoseconds since the Unix epoch.
    pub min_time_ns: i64,
    /// Latest start of a profile, nanoseconds since the Unix epoch.
    pub max_time_ns: i64,
    /// Rows of table `samples`.
    pub rows: u64,
    /// Rows of table `profiles`.
    pub profiles: u64,
    /// Bytes of all files.
    pub bytes: u64,
    /// When it was made, nanoseconds since the Unix epoch.
    pub created_at_ns: i64,
    /// The log that its profiles were in, hexadecimal.
    pub writer_id: String,
    /// First of the log records that the flush covered.
    pub first_sequence: u64,
    /// Last of them.
    pub last_sequence: u64,
    /// Names of the labels that single samples have, sorted.
    pub sample_labels: Vec<String>,
    /// The five tables.
    pub files: Vec<FileMeta>,
    /// What is in it, by service and type, in the order of its rows.
    pub services: Vec<ServiceMeta>,
}

/// One file of a block.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileMeta {
    /// Which table.
    pub table: String,
    /// Path below the directory of blocks.
    pub path: String,
    /// Its size.
    pub bytes: u64,
    /// xxh3-64 of its content, hexadecimal.
    pub hash: String,
}

/// What a block has of one service and profile type.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ServiceMeta {
    /// The service.
    pub service: String,
    /// The identifier of the type.
    pub profile_type: String,
    /// First row in table `samples`.
    pub first_row: u64,
    /// Rows there.
    pub rows: u64,
    /// Rows in table `profiles`.
    pub profiles: u64,
    /// Sum of the values.
    pub total: i64,
}
