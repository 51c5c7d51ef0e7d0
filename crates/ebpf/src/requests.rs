//! Requests to block devices that have begun and are not done yet.

use std::collections::HashMap;

/// As many as the kernel side keeps.
const MOST_REQUESTS: usize = 8192;

const MOST_BYTES: usize = 8 << 20;

/// The records of such requests, by the address of the request.
#[derive(Debug, Default)]
pub(crate) struct OpenRequests {
    records: HashMap<u64, Vec<u8>>,
    bytes: usize,
    /// Those that were given up: there were too many. One that is merged into another has no end, and is none of
    /// these.
    pub(crate) given_up: u64,
}

// === impl OpenRequests ===

impl OpenRequests {
    /// A request has begun.
    pub(crate) fn begin(&mut self, request: u64, record: &[u8]) {
        // An address that is used again.
        self.end(request);
        if self.records.len() >= MOST_REQUESTS || self.bytes + record.len() > MOST_BYTES {
            self.given_up += 1;
            return;
        }
        self.bytes += record.len();
        self.records.insert(request, record.to_vec());
    }

    /// A request is done: its record.
    pub(crate) fn end(&mut self, request: u64) -> Option<Vec<u8>> {
        let record = self.records.remove(&request)?;
        self.bytes -= record.len();
        Some(record)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_are_bounded_and_each_address_has_the_last_one() {
        let mut requests = OpenRequests::default();
        requests.begin(1, &[1]);
        requests.begin(1, &[2]);
        assert_eq!(requests.given_up, 0, "the first one was merged");
        assert_eq!(requests.end(1), Some(vec![2]));
        assert_eq!(requests.end(1), None);
        requests.begin(2, &vec![0; MOST_BYTES]);
        requests.begin(3, &[0]);
        assert_eq!(requests.given_up, 1, "no room");
        assert!(requests.end(2).is_some());
        requests.begin(3, &[0]);
        assert_eq!((requests.end(3), requests.given_up), (Some(vec![0]), 1));
    }
}
