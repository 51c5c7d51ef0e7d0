//! How many parts a message has, before any of them takes memory.
//!
//! An empty message is two bytes on the wire and some hundred as a struct, and a thousand of them
//! compress to one, so that bounds on bytes alone do not bound memory.

use bytes::Buf;
use prost::encoding::WireType;
use prost::encoding::decode_key;
use prost::encoding::decode_varint;

use crate::rpc::Codec;

/// As deep as messages of pushes nest: series, their labels and profiles, and what those have.
const DEPTH: usize = 3;

/// The parts of a message that take memory of their own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct MessageParts {
    /// Those of the message itself: of a push its series. In JSON they are not told from others.
    pub(crate) outermost: Option<usize>,
    /// All, some levels deep. Text and bytes count too: as values they are no smaller.
    pub(crate) all: usize,
}

impl MessageParts {
    /// At least as many as decoding makes. Bytes that are no message have as many as come before
    /// that shows: the decoder makes no more of them, and says better what is wrong.
    pub(crate) fn of(message: &[u8], codec: Codec) -> Self {
        match codec {
            Codec::Protobuf => {
                let mut parts = Self {
                    outermost: Some(0),
                    all: 0,
                };
                parts.count(message, 1);
                parts
            }
            // A message cannot be without its brace.
            Codec::Json => {
                let braces = message.iter().filter(|&&byte| byte == b'{').count();
                Self {
                    outermost: None,
                    all: braces,
                }
            }
        }
    }

    fn count(&mut self, mut rest: &[u8], depth: usize) {
        while let Ok((_, wire_type)) = decode_key(&mut rest) {
            let length = match wire_type {
                WireType::Varint => match decode_varint(&mut rest) {
                    Ok(_) => 0,
                    Err(_) => return,
                },
                WireType::ThirtyTwoBit => 4,
                WireType::SixtyFourBit => 8,
                // What is inside of a group is counted as if it were beside it.
                WireType::StartGroup | WireType::EndGroup => 0,
                WireType::LengthDelimited => match decode_varint(&mut rest) {
                    Ok(length) => usize::try_from(length).unwrap_or(usize::MAX),
                    Err(_) => return,
                },
            };
            let Some(inside) = rest.get(..length) else {
                return;
            };
            if wire_type == WireType::LengthDelimited {
                if let (Some(outermost), 1) = (&mut self.outermost, depth) {
                    *outermost += 1;
                }
                self.all += 1;
                if depth < DEPTH {
                    self.count(inside, depth + 1);
                }
            }
            rest.advance(length);
            if rest.is_empty() {
                return;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use candela_wire::push::v1::PushRequest;
    use candela_wire::push::v1::RawProfileSeries;
    use candela_wire::push::v1::RawSample;
    use candela_wire::types::v1::LabelPair;
    use prost::Message;

    use super::*;

    #[test]
    fn every_message_is_counted() {
        let label = LabelPair {
            name: "a".to_owned(),
            value: "b".to_owned(),
        };
        let sample = RawSample {
            raw_profile: vec![10; 100].into(),
            id: "x".to_owned(),
        };
        let series = RawProfileSeries {
            labels: vec![label; 2],
            samples: vec![sample],
        };
        let request = PushRequest {
            series: vec![series, RawProfileSeries::default()],
        };
        let parts = MessageParts::of(&request.encode_to_vec(), Codec::Protobuf);
        // Two series, two labels with two texts each, one profile with its bytes and its id.
        assert_eq!((parts.outermost, parts.all), (Some(2), 2 + 2 * 3 + 3));
        let json = serde_json::to_vec(&request).expect("JSON");
        let parts = MessageParts::of(&json, Codec::Json);
        // The request, two series, two labels and a profile.
        assert_eq!((parts.outermost, parts.all), (None, 6));
    }

    #[test]
    fn what_is_no_message_is_counted_as_far_as_it_is_read() {
        let empty = [0x0a, 0];
        let count = |bytes: &[u8]| {
            let parts = MessageParts::of(bytes, Codec::Protobuf);
            parts.outermost.expect("protobuf tells them")
        };
        assert_eq!(count(&empty.repeat(1000)), 1000);
        assert_eq!(count(&[&empty[..], &[0x0a, 200]].concat()), 1);
        assert_eq!(count(&[&empty[..], &[0], &empty].concat()), 1, "the tag 0");
        // A group of a field that nobody knows, as decoders pass over it.
        let group = [0xa3, 0x06, 0x0a, 0, 0xa4, 0x06];
        assert_eq!(count(&[&group[..], &empty].concat()), 2);
        assert_eq!(count(&[]), 0);
    }
}
