//! Texts that are not UTF-8 inside protobuf messages. Generated decoders refuse such a message as a whole, so that
//! one broken name would cost all profiles of a request.

use std::borrow::Cow;

use prost::DecodeError;
use prost::bytes::Buf;

use crate::lossy_text::MAX_GROWTH;
use crate::lossy_text::repaired_within;
use crate::protobuf::reader::Reader;
use crate::protobuf::reader::Span;
use crate::protobuf::reader::Value;
use crate::protobuf::reader::WireError;
use crate::protobuf::writer::Message;
use crate::report::Report;

/// As deep as generated decoders go.
const MAX_DEPTH: usize = 100;

/// Bytes of a length that is written before it is known. Longer than need be is as valid.
const LENGTH_BYTES: usize = 5;

/// Where a message has its texts: fields that are strings, and fields that are messages with strings of their own.
#[derive(Debug)]
pub struct MessageTexts {
    /// Numbers of fields that are strings.
    pub strings: &'static [u32],
    /// Numbers of fields that are messages.
    pub messages: &'static [(u32, &'static Self)],
}

/// The message with its broken texts repaired as [`String::from_utf8_lossy`] does, and how many they were. `None` when
/// there is nothing to repair, or when the bytes are damaged otherwise.
fn repair_texts(message: &[u8], texts: &MessageTexts) -> Option<(Vec<u8>, u64)> {
    let end = u32::try_from(message.len()).ok()?;
    let mut repair = Repair {
        data: message,
        copy: Message::default(),
        growth_left: MAX_GROWTH,
        repaired: 0,
    };
    repair.message(Span { start: 0, end }, texts, 0).ok()?;
    (repair.repaired > 0).then_some((repair.copy.bytes, repair.repaired))
}

/// A message from its bytes, with its texts repaired where they have to be.
///
/// # Errors
/// The decoder's, when the bytes are damaged otherwise.
pub fn decode_repaired<M: prost::Message + Default>(
    bytes: &(impl Buf + AsRef<[u8]> + Clone),
    texts: &MessageTexts,
    report: &mut Report,
) -> Result<M, DecodeError> {
    M::decode(bytes.clone()).or_else(|error| {
        // Only now, as nearly all messages are sound.
        let (repaired, count) = repair_texts(bytes.as_ref(), texts).ok_or(error)?;
        report.note_repaired(count);
        M::decode(&repaired[..])
    })
}

struct Repair<'a> {
    data: &'a [u8],
    /// The repaired message, as far as it is written.
    copy: Message,
    growth_left: usize,
    repaired: u64,
}

impl Repair<'_> {
    /// Copies a message without its length.
    fn message(&mut self, span: Span, texts: &MessageTexts, depth: usize) -> Result<(), WireError> {
        let mut reader = Reader::of(self.data, span);
        loop {
            let start = reader.position();
            let Some((number, value)) = reader.field()? else {
                return Ok(());
            };
            let as_it_is = &self.data[start..reader.position()];
            let Value::Bytes(inner) = value else {
                self.copy.bytes.extend_from_slice(as_it_is);
                continue;
            };
            let nested = texts.messages.iter().find(|(field, _)| *field == number);
            if texts.strings.contains(&number)
                && let Cow::Owned(text) =
                    repaired_within(&self.data[inner.range()], &mut self.growth_left)
            {
                self.copy.bytes(number, text.as_bytes());
                self.repaired += 1;
            } else if let Some((_, texts)) = nested
                && depth < MAX_DEPTH
            {
                self.nested(number, inner, texts, depth + 1)?;
            } else {
                self.copy.bytes.extend_from_slice(as_it_is);
            }
        }
    }

    /// Copies a message that is a field, in place: a copy of its own for each level would be as many as there are levels.
    fn nested(
        &mut self,
        number: u32,
        span: Span,
        texts: &MessageTexts,
        depth: usize,
    ) -> Result<(), WireError> {
        self.copy.varint(u64::from(number) << 3 | 2);
        let length_start = self.copy.bytes.len();
        let start = length_start + LENGTH_BYTES;
        self.copy.bytes.resize(start, 0);
        self.message(span, texts, depth)?;
        let mut length = self.copy.bytes.len() - start;
        let length_bytes = self.copy.bytes[length_start..start].iter_mut();
        for (position, byte) in length_bytes.enumerate() {
            let is_last = position + 1 == LENGTH_BYTES;
            *byte = (length & 0x7f) as u8 | if is_last { 0 } else { 0x80 };
            length >>= 7;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    static LEAF: MessageTexts = MessageTexts {
        strings: &[1, 2],
        messages: &[],
    };

    static TREE: MessageTexts = MessageTexts {
        strings: &[2],
        messages: &[(3, &TREE), (4, &LEAF)],
    };

    fn tree(text: &[u8]) -> Vec<u8> {
        let mut leaf = Message::default();
        leaf.bytes(1, b"name");
        leaf.bytes(2, text);
        let mut inner = Message::default();
        inner.number(1, 300);
        inner.bytes(4, &leaf.bytes);
        let mut outer = Message::default();
        outer.bytes(3, &inner.bytes);
        outer.bytes(9, b"\xff bytes, not a text");
        outer.bytes(2, text);
        outer.bytes
    }

    #[test]
    fn broken_texts_are_repaired_and_nothing_else_changes() {
        assert_eq!(repair_texts(&tree("größe".as_bytes()), &TREE), None);
        let repaired = repair_texts(&tree(b"gr\xf6\xdfe"), &TREE);
        let (repaired, count) = repaired.expect("two texts are broken");
        assert_eq!(count, 2);
        let wanted = tree("gr\u{fffd}\u{fffd}e".as_bytes());
        assert_eq!(fields(&repaired, &TREE), fields(&wanted, &TREE));
    }

    /// All fields with their values, however their lengths are written.
    fn fields(message: &[u8], texts: &MessageTexts) -> Vec<String> {
        let mut found = Vec::new();
        let mut reader = Reader::new(message);
        while let Some((number, value)) = reader.field().expect("sound") {
            let nested = texts.messages.iter().find(|(field, _)| *field == number);
            match (value, nested) {
                (Value::Bytes(span), Some((_, texts))) => {
                    found.push(format!("{number} begins"));
                    found.extend(fields(&message[span.range()], texts));
                    found.push(format!("{number} ends"));
                }
                (Value::Bytes(span), None) => {
                    found.push(format!("{number} {:?}", &message[span.range()]));
                }
                (other, _) => found.push(format!("{number} {other:?}")),
            }
        }
        found
    }

    #[test]
    fn what_repairs_add_is_bounded() {
        let text = vec![0xff; MAX_GROWTH];
        let broken = tree(&text);
        let (repaired, _) = repair_texts(&broken, &TREE).expect("two texts are broken");
        let padding = 2 * LENGTH_BYTES;
        assert!(repaired.len() <= broken.len() + MAX_GROWTH + padding);
    }

    #[test]
    fn damaged_messages_are_left_to_their_decoder() {
        let whole = tree(b"\xff");
        for end in 1..whole.len() {
            // Cut between two fields, it is a whole message.
            let _ = repair_texts(&whole[..end], &TREE);
        }
        assert_eq!(repair_texts(&whole[..whole.len() - 1], &TREE), None);
        let mut deep = Message::default();
        deep.bytes(2, b"\xff");
        for _ in 0..1000 {
            let mut outer = Message::default();
            outer.bytes(3, &deep.bytes);
            deep = outer;
        }
        assert_eq!(repair_texts(&deep.bytes, &TREE), None);
    }
}
