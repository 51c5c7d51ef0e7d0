//! The catalog of one machine.

use std::path::Path;
use std::path::PathBuf;
use std::sync::Mutex;

use rusqlite::Connection;
use rusqlite::params;

use super::Catalog;
use super::Publication;
use super::checkpoints::move_checkpoint;
use super::checkpoints::select_checkpoint;
use super::keys::insert_keys;
use super::keys::select_keys;
use super::migrations::CATALOG_VERSION;
use super::migrations::migrate;
use crate::block::BlockMeta;
use crate::block::ManifestError;
use crate::block::SCHEMA_VERSION;
use crate::block::decode_manifest;
use crate::block::encode_short_manifest;
use crate::duplicates::ReceivedKey;
use crate::error::StoreError;
use crate::failpoint::failpoint;
use crate::sync::lock;

/// A SQLite database.
#[derive(Debug)]
pub(crate) struct SqliteCatalog {
    path: PathBuf,
    connection: Mutex<Connection>,
}

impl SqliteCatalog {
    /// Opens or creates the database.
    pub(crate) fn open(path: &Path) -> Result<Self, StoreError> {
        let context = |source| StoreError::catalog(path, source);
        let mut connection = Connection::open(path).map_err(context)?;
        let version: u32 = connection
            .query_row("PRAGMA user_version", [], |row| row.get(0))
            .map_err(context)?;
        if version > CATALOG_VERSION {
            return Err(StoreError::Newer {
                path: path.to_owned(),
                what: "catalog",
                found: version.into(),
                known: CATALOG_VERSION.into(),
            });
        }
        // A checkpoint that a power cut takes back would not be wrong (the log is deleted after
        // it), but a deleted log without its checkpoint would: every commit is synced.
        connection
            .execute_batch(
                "PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL; PRAGMA foreign_keys = ON; PRAGMA secure_delete = ON;",
            )
            .map_err(context)?;
        migrate(&mut connection, version).map_err(context)?;
        check_pages(&connection, path)?;
        Ok(Self {
            path: path.to_owned(),
            connection: Mutex::new(connection),
        })
    }

    /// Has everything in the one file.
    pub(crate) fn close(self) -> Result<(), StoreError> {
        let connection = self.connection.into_inner();
        let connection = connection.unwrap_or_else(std::sync::PoisonError::into_inner);
        let closed = connection.close();
        closed.map_err(|(_, source)| StoreError::catalog(&self.path, source))
    }

    fn with<T>(
        &self,
        work: impl FnOnce(&mut Connection) -> rusqlite::Result<T>,
    ) -> Result<T, StoreError> {
        work(&mut lock(&self.connection)).map_err(|source| StoreError::catalog(&self.path, source))
    }

    fn manifests(&self, blocks: &[BlockMeta]) -> Result<Vec<String>, StoreError> {
        let manifests = blocks.iter().map(encode_short_manifest);
        let manifests: Result<_, _> = manifests.collect();
        manifests.map_err(|error| StoreError::Damaged {
            path: self.path.clone(),
            reason: error.to_string(),
        })
    }

    /// Manifests and quarantine reasons of the rows that a condition of ours selects.
    fn select(&self, condition: &str) -> Result<Vec<(BlockMeta, String)>, StoreError> {
        let rows = self.with(|connection| {
            let sql = format!(
                "SELECT manifest, coalesce(quarantine_reason, '') FROM blocks
                 WHERE {condition} ORDER BY min_time, block_id"
            );
            let mut statement = connection.prepare(&sql)?;
            let rows = statement.query_map([], |row| {
                Ok((row.get::<_, String>(0)?, row.get::<_, String>(1)?))
            })?;
            rows.collect::<rusqlite::Result<Vec<_>>>()
        })?;
        rows.into_iter()
            .map(|(manifest, reason)| {
                let meta = decode_manifest(manifest.as_bytes());
                let meta = meta.map_err(|error| self.unreadable_manifest(error))?;
                Ok((meta, reason))
            })
            .collect()
    }

    fn unreadable_manifest(&self, error: ManifestError) -> StoreError {
        match error {
            ManifestError::Newer(found) => StoreError::Newer {
                path: self.path.clone(),
                what: "block",
                found: found.into(),
                known: SCHEMA_VERSION.into(),
            },
            ManifestError::Damaged(reason) => StoreError::CatalogDamaged {
                path: self.path.clone(),
                reason: format!("a block's manifest: {reason}"),
            },
        }
    }
}

impl Catalog for SqliteCatalog {
    fn blocks(&self) -> Result<Vec<BlockMeta>, StoreError> {
        let rows = self.select("deleted_at IS NULL AND quarantine_reason IS NULL")?;
        Ok(rows.into_iter().map(|(meta, _)| meta).collect())
    }

    fn deleted_blocks(&self) -> Result<Vec<BlockMeta>, StoreError> {
        let rows = self.select("deleted_at IS NOT NULL")?;
        Ok(rows.into_iter().map(|(meta, _)| meta).collect())
    }

    fn quarantined(&self) -> Result<Vec<(BlockMeta, String)>, StoreError> {
        self.select("deleted_at IS NULL AND quarantine_reason IS NOT NULL")
    }

    fn checkpoint(&self, writer_id: &str) -> Result<u64, StoreError> {
        let found = self.with(|connection| select_checkpoint(connection, writer_id))?;
        found
            .sequence()
            .map_err(|reason| StoreError::CatalogDamaged {
                path: self.path.clone(),
                reason,
            })
    }

    fn publish(&self, publication: &Publication<'_>) -> Result<(), StoreError> {
        let manifests = self.manifests(publication.blocks)?;
        failpoint!("catalog.publish.before");
        self.with(|connection| {
            let transaction = connection.transaction()?;
            delete_blocks(&transaction, publication.replaced, publication.now_ns)?;
            for (block, manifest) in publication.blocks.iter().zip(&manifests) {
                insert_block(&transaction, block, manifest)?;
            }
            for (writer_id, sequence) in publication.checkpoints {
                move_checkpoint(&transaction, writer_id, *sequence)?;
            }
            insert_keys(
                &transaction,
                publication.keys,
                publication.forget_keys_before_ns,
            )?;
            failpoint!("catalog.publish.inside");
            transaction.commit()
        })?;
        failpoint!("catalog.publish.after");
        Ok(())
    }

    fn keys(&self, since_ns: i64) -> Result<Vec<ReceivedKey>, StoreError> {
        self.with(|connection| select_keys(connection, since_ns))
    }

    fn forget_keys(&self) -> Result<(), StoreError> {
        self.with(|connection| {
            connection
                .execute("DELETE FROM received_keys", [])
                .map(drop)
        })
    }

    fn quarantine(&self, block_id: &str, reason: &str) -> Result<(), StoreError> {
        self.with(|connection| {
            connection.execute(
                "UPDATE blocks SET quarantine_reason = ?2 WHERE block_id = ?1",
                params![block_id, reason],
            )?;
            Ok(())
        })
    }

    fn release(&self, block_id: &str) -> Result<(), StoreError> {
        self.with(|connection| {
            connection.execute(
                "UPDATE blocks SET quarantine_reason = NULL WHERE block_id = ?1",
                params![block_id],
            )?;
            Ok(())
        })
    }

    fn mark_deleted(&self, block_ids: &[String], now_ns: i64) -> Result<(), StoreError> {
        self.replace(block_ids, &[], now_ns)
    }

    fn replace(
        &self,
        removed: &[String],
        added: &[BlockMeta],
        now_ns: i64,
    ) -> Result<(), StoreError> {
        let manifests = self.manifests(added)?;
        self.with(|connection| {
            let transaction = connection.transaction()?;
            delete_blocks(&transaction, removed, now_ns)?;
            for (block, manifest) in added.iter().zip(&manifests) {
                insert_block(&transaction, block, manifest)?;
            }
            transaction.commit()
        })
    }

    fn revise(&self, block: &BlockMeta) -> Result<bool, StoreError> {
        let manifest = encode_short_manifest(block).map_err(|error| StoreError::Damaged {
            path: self.path.clone(),
            reason: error.to_string(),
        })?;
        self.with(|connection| {
            let rows = connection.execute(
                "UPDATE blocks SET manifest = ?2, bytes = ?3
                 WHERE block_id = ?1 AND deleted_at IS NULL AND quarantine_reason IS NULL",
                params![block.block_id, manifest, block.bytes.cast_signed()],
            )?;
            Ok(rows == 1)
        })
    }

    fn scrub(&self) -> Result<(), StoreError> {
        // What is deleted is overwritten (`secure_delete`); the write-ahead log still has it.
        self.with(|connection| {
            connection.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(()))
        })
    }

    fn forget(&self, block_ids: &[String]) -> Result<(), StoreError> {
        self.with(|connection| {
            let transaction = connection.transaction()?;
            for block_id in block_ids {
                transaction.execute("DELETE FROM blocks WHERE block_id = ?1", [block_id])?;
            }
            transaction.commit()
        })
    }
}

/// Whether the database holds together. What it then says is checked where it is read.
fn check_pages(connection: &Connection, path: &Path) -> Result<(), StoreError> {
    let answer = connection.query_row("PRAGMA quick_check(1)", [], |row| row.get(0));
    let answer: String = answer.map_err(|source| StoreError::catalog(path, source))?;
    if answer == "ok" {
        return Ok(());
    }
    Err(StoreError::CatalogDamaged {
        path: path.to_owned(),
        reason: answer.replace('\n', " "),
    })
}

fn delete_blocks(
    connection: &Connection,
    block_ids: &[String],
    now_ns: i64,
) -> rusqlite::Result<()> {
    for block_id in block_ids {
        connection.execute(
            "UPDATE blocks SET deleted_at = ?2 WHERE block_id = ?1",
            params![block_id, now_ns],
        )?;
    }
    Ok(())
}

fn insert_block(
    transaction: &rusqlite::Transaction<'_>,
    block: &BlockMeta,
    manifest: &str,
) -> rusqlite::Result<()> {
    transaction.execute(
        "INSERT OR IGNORE INTO blocks (block_id, tenant, date, level, min_time, max_time, rows,
         bytes, created_at, manifest) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10)",
        params![
            block.block_id,
            block.tenant,
            block.date,
            block.level,
            block.min_time_ns,
            block.max_time_ns,
            block.rows.cast_signed(),
            block.bytes.cast_signed(),
            block.created_at_ns,
            manifest
        ],
    )?;
    for service in &block.services {
        transaction.execute(
            "INSERT OR IGNORE INTO block_services (block_id, service, profile_type, first_row,
             rows, profiles, total) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)",
            params![
                block.block_id,
                service.service,
                service.profile_type,
                service.first_row.cast_signed(),
                service.rows.cast_signed(),
                service.profiles.cast_signed(),
                service.total
            ],
        )?;
    }
    Ok(())
}
