//! What a block says about itself beside its tables.

use serde::Deserialize;
use serde::Serialize;

use super::level::Level;
use super::level::Tier;

use super::schema::Table;

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
    /// Number of its [`Level`].
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
    /// The blocks that this one was made from, which it replaces unless it is a rollup of them.
    #[serde(default)]
    pub sources: Vec<String>,
    /// All blocks that were made together from those sources; only together they replace them.
    #[serde(default)]
    pub outputs: Vec<String>,
    /// Names of the labels that single samples have, sorted.
    pub sample_labels: Vec<String>,
    /// How often symbols were put in: tables `stack_nodes` and `locations` were written anew each
    /// time, the others never are.
    #[serde(default)]
    pub revision: u32,
    /// What has addresses and no names yet, by build id; `None` in blocks of versions that did not
    /// write it down.
    #[serde(default)]
    pub unsymbolized: Option<Vec<UnsymbolizedMeta>>,
    /// The five tables.
    pub files: Vec<FileMeta>,
    /// What is in it, by service and type, in the order of its rows.
    pub services: Vec<ServiceMeta>,
}

impl BlockMeta {
    /// How fine its times are. What a later version may call a level is not of a rollup.
    #[must_use]
    pub fn tier(&self) -> Tier {
        Level::from_number(self.level).map_or(Tier::Raw, Level::tier)
    }
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
    /// xxh3-64 of each MiB of its content, hexadecimal, so that a part can be compared too; blocks
    /// of older versions have none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub chunk_hashes: Vec<String>,
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

/// A binary that a block has nameless addresses of.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct UnsymbolizedMeta {
    /// Its build id.
    pub build_id: String,
    /// A path that it was mapped from.
    pub mapping_file: String,
    /// Addresses without a name.
    pub locations: u64,
    /// Samples with at least one of them on their stack.
    pub samples: u64,
    /// The last source of symbols that was asked for them, in its own words; empty when none was.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub asked: String,
}

/// The folder of manifests, below the folder of blocks.
pub(crate) const MANIFESTS: &str = "_blocks";

/// Where the manifest of a block is, below the folder of blocks.
pub(crate) fn manifest_path(block_id: &str) -> String {
    format!("{MANIFESTS}/{block_id}.json")
}

/// Where a table of a block is as it is first written, below the folder of blocks.
pub(crate) fn table_path(
    table: Table,
    tenant: &str,
    date: &str,
    level: u32,
    block_id: &str,
) -> String {
    let table = table.name();
    format!("{table}/tenant={tenant}/date={date}/level={level}/{block_id}.parquet")
}

/// The same for a table that was written anew.
pub(crate) fn revised_path(table: Table, meta: &BlockMeta, revision: u32) -> String {
    let name = format!("{}.r{revision}", meta.block_id);
    table_path(table, &meta.tenant, &meta.date, meta.level, &name)
}

/// The table that a file is of, and its block.
pub(crate) fn block_of_table(path: &str) -> Option<(Table, &str)> {
    let (folder, rest) = path.split_once('/')?;
    let table = Table::ALL
        .into_iter()
        .find(|table| table.name() == folder)?;
    let name = rest.rsplit('/').next().unwrap_or(rest);
    let stem = name.strip_suffix(".parquet")?;
    let block_id = stem.split_once('.').map_or(stem, |(block_id, _)| block_id);
    Some((table, block_id))
}
