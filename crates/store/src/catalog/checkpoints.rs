//! How far each log is in blocks.
//!
//! A checkpoint that is wrong loses what is between it and the right one, or doubles it, and no
//! other part of the database would notice: it has a checksum of its own.

use rusqlite::Connection;
use rusqlite::OptionalExtension;
use rusqlite::Transaction;
use rusqlite::params;
use twox_hash::XxHash3_64;

/// A row as it is in the database.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Checkpoint {
    writer_id: String,
    sequence: u64,
    /// `None` in rows of earlier versions.
    checksum: Option<String>,
}

impl Checkpoint {
    fn new(writer_id: &str, sequence: u64) -> Self {
        Self {
            writer_id: writer_id.to_owned(),
            sequence,
            checksum: Some(checksum(writer_id, sequence)),
        }
    }

    /// The last record that is in blocks; 0 for none.
    pub(super) fn sequence(&self) -> Result<u64, String> {
        let expected = checksum(&self.writer_id, self.sequence);
        match &self.checksum {
            Some(found) if *found != expected => Err(format!(
                "the checkpoint {} of log {} does not have its checksum",
                self.sequence, self.writer_id
            )),
            _ => Ok(self.sequence),
        }
    }
}

pub(super) fn select_checkpoint(
    connection: &Connection,
    writer_id: &str,
) -> rusqlite::Result<Checkpoint> {
    let sql = "SELECT sequence, checksum FROM wal_checkpoints WHERE writer_id = ?1";
    let found = connection.query_row(sql, [writer_id], |row| {
        Ok(Checkpoint {
            writer_id: writer_id.to_owned(),
            sequence: row.get::<_, i64>(0)?.cast_unsigned(),
            checksum: row.get(1)?,
        })
    });
    Ok(found.optional()?.unwrap_or_default())
}

/// Moves a checkpoint, never back.
pub(super) fn move_checkpoint(
    transaction: &Transaction<'_>,
    writer_id: &str,
    sequence: u64,
) -> rusqlite::Result<()> {
    let before = select_checkpoint(transaction, writer_id)?;
    let moved = Checkpoint::new(writer_id, sequence.max(before.sequence));
    transaction.execute(
        "INSERT INTO wal_checkpoints (writer_id, sequence, checksum) VALUES (?1, ?2, ?3)
         ON CONFLICT (writer_id) DO UPDATE SET sequence = ?2, checksum = ?3",
        params![writer_id, moved.sequence.cast_signed(), moved.checksum],
    )?;
    Ok(())
}

fn checksum(writer_id: &str, sequence: u64) -> String {
    let text = format!("{writer_id}/{sequence}");
    format!("{:016x}", XxHash3_64::oneshot(text.as_bytes()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_changed_number_is_noticed() {
        let sound = Checkpoint::new("w", 7);
        assert_eq!(sound.sequence(), Ok(7));
        let changed = Checkpoint {
            sequence: 8,
            ..sound.clone()
        };
        assert!(changed.sequence().is_err());
        let of_an_earlier_version = Checkpoint {
            checksum: None,
            ..changed
        };
        assert_eq!(of_an_earlier_version.sequence(), Ok(8));
        assert_eq!(Checkpoint::default().sequence(), Ok(0));
    }
}
