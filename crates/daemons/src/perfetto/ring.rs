//! A ring of trace packets in memory, of which snapshots are copies.

use std::collections::VecDeque;

use candela_fleet::trace_config::FillPolicy;

/// Packets of windows, each whole in itself: it begins with a cleared state, so that those after it are understood
/// when it has given way.
#[derive(Debug)]
pub(crate) struct Ring {
    most_bytes: usize,
    fill_policy: FillPolicy,
    windows: VecDeque<Vec<u8>>,
    bytes: usize,
    /// Windows that found no room or gave way to later ones.
    pub(crate) overwritten: u64,
}

impl Ring {
    pub(crate) fn new(most_bytes: usize, fill_policy: FillPolicy) -> Self {
        Self {
            most_bytes,
            fill_policy,
            windows: VecDeque::new(),
            bytes: 0,
            overwritten: 0,
        }
    }

    pub(crate) fn most_bytes(&self) -> usize {
        self.most_bytes
    }

    pub(crate) fn push(&mut self, packets: Vec<u8>) {
        let is_too_large = packets.len() > self.most_bytes;
        let is_full = self.bytes + packets.len() > self.most_bytes;
        if is_too_large || is_full && self.fill_policy == FillPolicy::Discard {
            self.overwritten += 1;
            return;
        }
        self.bytes += packets.len();
        self.windows.push_back(packets);
        while self.bytes > self.most_bytes {
            let oldest = self.windows.pop_front().unwrap_or_default();
            self.bytes -= oldest.len();
            self.overwritten += 1;
        }
    }

    /// All packets. They stay, as a trace that is cloned goes on.
    pub(crate) fn cloned(&self) -> Vec<u8> {
        let mut packets = Vec::with_capacity(self.bytes);
        for window in &self.windows {
            packets.extend_from_slice(window);
        }
        packets
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_oldest_gives_way_and_a_snapshot_leaves_everything() {
        let mut ring = Ring::new(10, FillPolicy::RingBuffer);
        for number in 0..4 {
            ring.push(vec![number; 4]);
        }
        assert_eq!(ring.cloned(), [2, 2, 2, 2, 3, 3, 3, 3]);
        assert_eq!(ring.cloned().len(), 8, "nothing was taken out");
        ring.push(vec![9; 11]);
        assert_eq!((ring.cloned().len(), ring.overwritten), (8, 3));
        let mut full = Ring::new(10, FillPolicy::Discard);
        for number in 0..4 {
            full.push(vec![number; 4]);
        }
        assert_eq!(full.cloned(), [0, 0, 0, 0, 1, 1, 1, 1]);
        assert_eq!(full.overwritten, 2);
    }
}
