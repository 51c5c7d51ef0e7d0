//! Packets in Perfetto's protobuf, and the one that says why a snapshot was taken. Samples are the trace writer's, and
//! switches are those of `switch_packets`.

/// Fields of `Trace`, `TracePacket` and `Trigger` in Perfetto's protobuf.
pub(crate) const TRACE_PACKET: u64 = 1;
pub(crate) const TIMESTAMP: u64 = 8;
pub(crate) const SEQUENCE: u64 = 10;
pub(crate) const PERF_SAMPLE: u64 = 66;
pub(crate) const CLONE_SNAPSHOT_TRIGGER: u64 = 113;
pub(crate) const TRIGGER_NAME: u64 = 1;
const PRODUCER_NAME: u64 = 2;
const STOP_DELAY_MS: u64 = 4;

/// No sequence of samples has this number: the trace writer counts from 1.
pub(crate) const OWN_SEQUENCE: u64 = (1 << 20) + 1;

/// The packet of a trigger at a time since the epoch, which is the time of all packets.
pub(crate) fn trigger_packet(name: &str, unix_ns: u64, stop_delay_ms: u32) -> Vec<u8> {
    let mut trigger = Vec::new();
    bytes(&mut trigger, TRIGGER_NAME, name.as_bytes());
    bytes(&mut trigger, PRODUCER_NAME, b"candela");
    number(&mut trigger, STOP_DELAY_MS, stop_delay_ms.into());
    let mut packet = Vec::new();
    number(&mut packet, TIMESTAMP, unix_ns);
    number(&mut packet, SEQUENCE, OWN_SEQUENCE);
    bytes(&mut packet, CLONE_SNAPSHOT_TRIGGER, &trigger);
    let mut trace = Vec::new();
    push_packet(&mut trace, &packet);
    trace
}

/// Adds a packet to a trace.
pub(crate) fn push_packet(trace: &mut Vec<u8>, packet: &[u8]) {
    bytes(trace, TRACE_PACKET, packet);
}

pub(crate) fn number(message: &mut Vec<u8>, field: u64, value: u64) {
    varint(message, field << 3);
    varint(message, value);
}

pub(crate) fn bytes(message: &mut Vec<u8>, field: u64, value: &[u8]) {
    varint(message, field << 3 | 2);
    varint(message, value.len() as u64);
    message.extend_from_slice(value);
}

pub(crate) fn varint(message: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        message.push(value as u8 | 0x80);
        value >>= 7;
    }
    message.push(value as u8);
}

#[cfg(test)]
mod tests {
    use super::*;

    /// As Google's own library writes it.
    #[test]
    fn the_packet_is_that_of_perfetto() {
        let expected = [
            10, 25, 64, 5, 80, 129, 128, 64, 138, 7, 16, 10, 3, b'n', b'o', b'w', 18, 7, b'c',
            b'a', b'n', b'd', b'e', b'l', b'a', 32, 9,
        ];
        assert_eq!(trigger_packet("now", 5, 9), expected);
    }
}
