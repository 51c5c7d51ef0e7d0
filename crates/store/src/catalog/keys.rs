//! Keys of profiles that came within the last minutes.
//!
//! A row holds all keys of one flush: at thousands of profiles a second a row for each would make
//! the flush's transaction long, and every append waits for the same database.

use rusqlite::Connection;
use rusqlite::Transaction;
use rusqlite::params;

use crate::duplicates::Key;
use crate::duplicates::ReceivedKey;

/// A key and its time, both little endian.
const BYTES: usize = size_of::<Key>() + size_of::<i64>();

pub(super) fn insert_keys(
    transaction: &Transaction<'_>,
    keys: &[ReceivedKey],
    forget_before_ns: i64,
) -> rusqlite::Result<()> {
    transaction.execute(
        "DELETE FROM received_keys WHERE newest_received_at < ?1",
        [forget_before_ns],
    )?;
    let newest_ns = keys.iter().map(|received| received.received_ns).max();
    let Some(newest_ns) = newest_ns.filter(|&newest_ns| newest_ns >= forget_before_ns) else {
        return Ok(());
    };
    transaction.execute(
        "INSERT INTO received_keys (newest_received_at, keys) VALUES (?1, ?2)",
        params![newest_ns, encode(keys)],
    )?;
    Ok(())
}

pub(super) fn select_keys(
    connection: &Connection,
    since_ns: i64,
) -> rusqlite::Result<Vec<ReceivedKey>> {
    let mut statement = connection
        .prepare("SELECT keys FROM received_keys WHERE newest_received_at >= ?1 ORDER BY rowid")?;
    let rows = statement.query_map([since_ns], |row| row.get::<_, Vec<u8>>(0))?;
    let mut keys = Vec::new();
    for row in rows {
        keys.extend(decode(&row?));
    }
    Ok(keys)
}

fn encode(keys: &[ReceivedKey]) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(keys.len() * BYTES);
    for received in keys {
        bytes.extend_from_slice(&received.key.to_le_bytes());
        bytes.extend_from_slice(&received.received_ns.to_le_bytes());
    }
    bytes
}

fn decode(bytes: &[u8]) -> impl Iterator<Item = ReceivedKey> {
    let (entries, _) = bytes.as_chunks::<BYTES>();
    entries.iter().map(|entry| {
        let (key, received_ns) = entry.split_at(size_of::<Key>());
        ReceivedKey {
            key: key.first_chunk().map_or(0, |it| Key::from_le_bytes(*it)),
            received_ns: (received_ns.first_chunk()).map_or(0, |it| i64::from_le_bytes(*it)),
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_round_trip() {
        let keys = [(1, -5), (Key::MAX, i64::MAX)];
        let keys = keys.map(|(key, received_ns)| ReceivedKey { key, received_ns });
        assert_eq!(decode(&encode(&keys)).collect::<Vec<_>>(), keys);
    }
}
