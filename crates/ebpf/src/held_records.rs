//! Records that are a part of what a later one tells: requests to block devices that are not done yet, and stacks of
//! threads that have ended waits.

use std::collections::HashMap;

/// As many as the kernel side keeps.
const MOST_RECORDS: usize = 8192;

const MOST_BYTES: usize = 8 << 20;

/// Such records by what the later one names them by: the address of the request, the thread that waited.
#[derive(Debug, Default)]
pub(crate) struct HeldRecords {
    records: HashMap<u64, Vec<u8>>,
    bytes: usize,
    /// Those that were given up: there were too many. One whose name is used again has no later record, and is none
    /// of these.
    pub(crate) given_up: u64,
}

// === impl HeldRecords ===

impl HeldRecords {
    pub(crate) fn hold(&mut self, name: u64, record: &[u8]) {
        // A name that is used again.
        self.take(name);
        if self.records.len() >= MOST_RECORDS || self.bytes + record.len() > MOST_BYTES {
            self.given_up += 1;
            return;
        }
        self.bytes += record.len();
        self.records.insert(name, record.to_vec());
    }

    /// The later record has come.
    pub(crate) fn take(&mut self, name: u64) -> Option<Vec<u8>> {
        let record = self.records.remove(&name)?;
        self.bytes -= record.len();
        Some(record)
    }

    /// Makes room: what it held has no later record, or one that does without.
    pub(crate) fn clear(&mut self) {
        self.given_up += self.records.len() as u64;
        self.records.clear();
        self.bytes = 0;
    }

    pub(crate) fn is_full(&self) -> bool {
        self.records.len() >= MOST_RECORDS || self.bytes > MOST_BYTES / 2
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn records_are_bounded_and_each_name_has_the_last_one() {
        let mut held = HeldRecords::default();
        held.hold(1, &[1]);
        held.hold(1, &[2]);
        assert_eq!(held.given_up, 0, "the first one was merged");
        assert_eq!(held.take(1), Some(vec![2]));
        assert_eq!(held.take(1), None);
        held.hold(2, &vec![0; MOST_BYTES]);
        held.hold(3, &[0]);
        assert_eq!(held.given_up, 1, "no room");
        assert!(held.is_full());
        assert!(held.take(2).is_some());
        held.hold(3, &[0]);
        assert_eq!((held.take(3), held.given_up), (Some(vec![0]), 1));
        held.hold(4, &[0]);
        held.clear();
        assert_eq!((held.take(4), held.given_up), (None, 2));
    }
}
