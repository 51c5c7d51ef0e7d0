//! The tables of the catalog, as a list of changes that a database goes through.

use rusqlite::Connection;

/// The changes from each version to the next, of which the first makes the tables. What stands here
/// was run on somebody's data: new changes go behind it.
///
/// `manifest` is the block's JSON, the truth; the columns beside it are for planning and for
/// people with an `sqlite3` prompt.
const MIGRATIONS: [&str; 2] = [
    "
CREATE TABLE blocks (
  block_id TEXT PRIMARY KEY,
  tenant TEXT NOT NULL,
  date TEXT NOT NULL,
  level INTEGER NOT NULL,
  min_time INTEGER NOT NULL,
  max_time INTEGER NOT NULL,
  rows INTEGER NOT NULL,
  bytes INTEGER NOT NULL,
  created_at INTEGER NOT NULL,
  deleted_at INTEGER,
  quarantine_reason TEXT,
  manifest TEXT NOT NULL
) STRICT;
CREATE INDEX blocks_by_time ON blocks (tenant, min_time);
CREATE TABLE block_services (
  block_id TEXT NOT NULL REFERENCES blocks ON DELETE CASCADE,
  service TEXT NOT NULL,
  profile_type TEXT NOT NULL,
  first_row INTEGER NOT NULL,
  rows INTEGER NOT NULL,
  profiles INTEGER NOT NULL,
  total INTEGER NOT NULL,
  PRIMARY KEY (block_id, service, profile_type)
) STRICT;
CREATE TABLE wal_checkpoints (
  writer_id TEXT PRIMARY KEY,
  sequence INTEGER NOT NULL
) STRICT;
",
    "
ALTER TABLE wal_checkpoints ADD COLUMN checksum TEXT;
CREATE TABLE received_keys (
  newest_received_at INTEGER NOT NULL,
  keys BLOB NOT NULL
) STRICT;
",
];

/// The version written to `user_version`. Later ones are refused.
pub(super) const CATALOG_VERSION: u32 = MIGRATIONS.len() as u32;

/// Brings a database of this version to [`CATALOG_VERSION`], a change a transaction.
pub(super) fn migrate(connection: &mut Connection, version: u32) -> rusqlite::Result<()> {
    for (from, change) in (0..).zip(MIGRATIONS).skip(version as usize) {
        let transaction = connection.transaction()?;
        transaction.execute_batch(change)?;
        let version: u32 = from + 1;
        transaction.pragma_update(None, "user_version", version)?;
        transaction.commit()?;
    }
    Ok(())
}
