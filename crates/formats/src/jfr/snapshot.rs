//! The labels of contexts, which Pyroscope's agent sends beside a recording: events carry the
//! number of a context only.
//!
//! A protobuf message: `contexts = 1 map<int64, Context{labels = 1 map<int64, int64>}>`,
//! `strings = 2 map<int64, string>`; labels are keys and values by the numbers of their strings.

use std::borrow::Cow;
use std::ops::Range;

use hashbrown::HashMap;

use crate::error::ReadError;
use crate::options::Limits;
use crate::protobuf::reader::Reader;
use crate::protobuf::reader::Span;
use crate::protobuf::reader::Value;
use crate::protobuf::reader::WireError;

const NAME: &str = "labels snapshot";

/// Labels by context, and strings by number.
#[derive(Debug, Default)]
pub(crate) struct Snapshot {
    data: Vec<u8>,
    strings: HashMap<u64, Span>,
    contexts: HashMap<u64, Range<u32>>,
    /// Labels of all contexts: numbers of key and value.
    labels: Vec<(u64, u64)>,
}

impl Snapshot {
    /// Reads a snapshot that is not compressed any more.
    pub(crate) fn parse(data: Vec<u8>, limits: &Limits) -> Result<Self, ReadError> {
        let mut snapshot = Self {
            data,
            ..Self::default()
        };
        snapshot.scan(limits).map_err(|error| error.named(NAME))?;
        let entries = snapshot.entries();
        if entries > limits.max_messages {
            return Err(ReadError::TooLarge {
                what: "the number of entries of the labels snapshot",
                limit: limits.max_messages,
            });
        }
        Ok(snapshot)
    }

    /// The string with this number. Of a long one little more than the limit is looked at: as many
    /// labels as there are may refer to it.
    pub(crate) fn string(&self, number: u64, limits: &Limits) -> Option<Cow<'_, str>> {
        let span = self.strings.get(&number)?;
        let bytes = &self.data[span.range()];
        // A character more, so that the cut is seen where texts are cut.
        let most = limits.max_string_bytes.saturating_add(4);
        Some(String::from_utf8_lossy(&bytes[..bytes.len().min(most)]))
    }

    /// The labels of a context, as numbers of their strings.
    pub(crate) fn context(&self, id: u64) -> Option<&[(u64, u64)]> {
        let range = self.contexts.get(&id)?;
        Some(&self.labels[range.start as usize..range.end as usize])
    }

    fn entries(&self) -> usize {
        self.strings.len() + self.contexts.len() + self.labels.len()
    }

    fn scan(&mut self, limits: &Limits) -> Result<(), WireError> {
        let data = std::mem::take(&mut self.data);
        let mut reader = Reader::new(&data);
        while let Some((field, value)) = reader.field()? {
            match (field, value) {
                (1, Value::Bytes(entry)) => self.scan_context(&data, entry)?,
                (2, Value::Bytes(entry)) => {
                    let (number, text) = entry_of(&data, entry)?;
                    if let Some(Value::Bytes(text)) = text {
                        self.strings.insert(number, text);
                    }
                }
                _ => {}
            }
            // The caller says that it is too much.
            if self.entries() > limits.max_messages {
                break;
            }
        }
        self.data = data;
        Ok(())
    }

    fn scan_context(&mut self, data: &[u8], entry: Span) -> Result<(), WireError> {
        let (id, context) = entry_of(data, entry)?;
        let first = self.labels.len() as u32;
        if let Some(Value::Bytes(context)) = context {
            let mut reader = Reader::of(data, context);
            while let Some((field, value)) = reader.field()? {
                if let (1, Value::Bytes(label)) = (field, value) {
                    let (key, value) = entry_of(data, label)?;
                    let value = match value {
                        Some(Value::Varint(number)) => number,
                        _ => 0,
                    };
                    self.labels.push((key, value));
                }
            }
        }
        self.contexts.insert(id, first..self.labels.len() as u32);
        Ok(())
    }
}

/// The key and the value of an entry of a map.
fn entry_of(data: &[u8], entry: Span) -> Result<(u64, Option<Value>), WireError> {
    let (mut key, mut found) = (0, None);
    let mut reader = Reader::of(data, entry);
    while let Some((field, value)) = reader.field()? {
        match (field, value) {
            (1, Value::Varint(number)) => key = number,
            (2, value) => found = Some(value),
            _ => {}
        }
    }
    Ok((key, found))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Strings 1 `key` and 2 `value`, and the context 7 with both as a label.
    const SNAPSHOT: [u8; 31] = [
        0x0a, 10, 0x08, 7, 0x12, 6, 0x0a, 4, 0x08, 1, 0x10, 2, // Context.
        0x12, 7, 0x08, 1, 0x12, 3, b'k', b'e', b'y', // First string.
        0x12, 8, 0x08, 2, 0x12, 4, b'v', b'a', b'l', b'u',
    ];

    #[test]
    fn contexts_and_strings_are_found() {
        let snapshot = Snapshot::parse(SNAPSHOT.to_vec(), &Limits::default()).expect("sound");
        assert_eq!(snapshot.context(7), Some(&[(1, 2)][..]));
        assert_eq!(snapshot.context(1), None);
        let limits = Limits::default();
        assert_eq!(snapshot.string(1, &limits).as_deref(), Some("key"));
        assert_eq!(snapshot.string(2, &limits).as_deref(), Some("valu"));
        assert_eq!(snapshot.string(3, &limits), None);
    }

    #[test]
    fn of_long_strings_little_more_than_the_limit_is_looked_at() {
        let mut data = vec![0x12, 104, 0x08, 1, 0x12, 100];
        data.extend([b'x'; 100]);
        let snapshot = Snapshot::parse(data, &Limits::default()).expect("sound");
        let limits = Limits {
            max_string_bytes: 10,
            ..Limits::default()
        };
        let found = snapshot.string(1, &limits).expect("a string");
        assert_eq!(found, "x".repeat(14));
    }

    #[test]
    fn broken_and_large_ones_are_refused() {
        let cut = Snapshot::parse(SNAPSHOT[..30].to_vec(), &Limits::default());
        let message = cut.expect_err("cut").to_string();
        assert!(message.starts_with("labels snapshot: "), "{message}");
        let limits = Limits {
            max_messages: 2,
            ..Limits::default()
        };
        assert!(Snapshot::parse(SNAPSHOT.to_vec(), &limits).is_err());
    }
}
