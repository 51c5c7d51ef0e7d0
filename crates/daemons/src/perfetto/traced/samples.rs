//! Packets of a written trace as those of a producer.

use perfetto_sdk::pb_decoder::PbDecoder;
use perfetto_sdk::pb_decoder::PbDecoderField;
use perfetto_sdk::pb_msg::PbMsg;

use crate::perfetto::packets::SEQUENCE;
use crate::perfetto::packets::TRACE_PACKET;

/// Further fields of `TracePacket`.
const CLOCK_SNAPSHOT: u64 = 6;
const TIMESTAMP_CLOCK: u32 = 58;

/// The clock of our times. `traced` says how it relates to its own, again and again: the clock may be set.
const REALTIME: u64 = 1;

/// A packet of a written trace.
#[derive(Debug)]
pub(crate) struct WrittenPacket<'trace> {
    fields: Vec<(u32, PbDecoderField<'trace>)>,
}

/// All packets that a producer may send: the relation of clocks is told by `traced`.
pub(crate) fn packets_of(trace: &[u8]) -> impl Iterator<Item = WrittenPacket<'_>> {
    let packets = PbDecoder::new(trace).filter_map(|read| match read {
        Ok((field, PbDecoderField::Delimited(packet))) if u64::from(field) == TRACE_PACKET => {
            Some(packet)
        }
        _ => None,
    });
    packets.filter_map(|packet| {
        let fields: Vec<_> = PbDecoder::new(packet).filter_map(Result::ok).collect();
        let is_clocks = |(field, _): &(u32, _)| u64::from(*field) == CLOCK_SNAPSHOT;
        (!fields.iter().any(is_clocks)).then_some(WrittenPacket { fields })
    })
}

/// Writes a packet into one of a producer. Its sequence is what `traced` takes it for: a packet that names one is
/// thrown away. All of ours are in one, and each series begins with a clean state, so that none needs the others.
pub(crate) fn copy_packet(packet: &WrittenPacket<'_>, target: &mut PbMsg<'_>) {
    for (field, value) in &packet.fields {
        match value {
            PbDecoderField::Varint(_) if u64::from(*field) == SEQUENCE => {}
            PbDecoderField::Varint(number) => target.append_type0_field(*field, *number),
            PbDecoderField::Fixed64(number) => target.append_fixed64_field(*field, *number),
            PbDecoderField::Fixed32(number) => target.append_fixed32_field(*field, *number),
            PbDecoderField::Delimited(content) => target.append_type2_field(*field, content),
        }
    }
    target.append_type0_field(TIMESTAMP_CLOCK, REALTIME);
}

#[cfg(test)]
mod tests {
    use perfetto_sdk::heap_buffer::HeapBuffer;
    use perfetto_sdk::pb_msg::PbMsgWriter;

    use super::*;
    use crate::perfetto::packets::PERF_SAMPLE;
    use crate::perfetto::packets::bytes;
    use crate::perfetto::packets::number;
    use crate::perfetto::packets::push_packet;

    fn copied(packet: &WrittenPacket<'_>) -> Vec<u8> {
        let writer = PbMsgWriter::new();
        let buffer = HeapBuffer::new(writer.stream_writer());
        let mut message = PbMsg::new(&writer).expect("it has a buffer");
        copy_packet(packet, &mut message);
        message.finalize();
        let mut bytes = vec![0; writer.stream_writer().get_written_size()];
        buffer.copy_into(&mut bytes);
        bytes
    }

    #[test]
    fn packets_lose_their_sequence_and_say_their_clock() {
        let mut trace = Vec::new();
        let mut clocks = Vec::new();
        bytes(&mut clocks, CLOCK_SNAPSHOT, b"");
        push_packet(&mut trace, &clocks);
        let mut sample = Vec::new();
        number(&mut sample, 8, 5);
        number(&mut sample, SEQUENCE, 3);
        bytes(&mut sample, PERF_SAMPLE, b"abc");
        push_packet(&mut trace, &sample);
        let packets: Vec<WrittenPacket<'_>> = packets_of(&trace).collect();
        let [packet] = &packets[..] else {
            panic!("the clocks are told by traced: {packets:?}");
        };
        let expected = b"\x40\x05\x92\x04\x03abc\xd0\x03\x01";
        assert_eq!(copied(packet), expected);
    }
}
