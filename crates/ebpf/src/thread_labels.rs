//! The labels that a thread's program gave its work.

use crate::record_numbers::{LABEL_KEY_BYTES, LABEL_VALUE_BYTES};
use std::str;

/// `struct sample_label` of bpf/record.h.
pub(crate) const LABEL_BYTES: usize = 2 + LABEL_KEY_BYTES + LABEL_VALUE_BYTES;

/// `LABEL_KEY_IS_NUMBER` of bpf/record.h.
const KEY_IS_NUMBER: u8 = 0xff;

/// Labels of a sample: of Go programs, those of the goroutine (`runtime/pprof.Do`); of others, what they tell by
/// custom-labels, or beside their span (OTEP 4947). At most ten; keys of more than 30 bytes and values of more than
/// 64 are cut.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ThreadLabels<'a> {
    bytes: &'a [u8],
}

/// What a label is called.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LabelKey<'a> {
    /// By its name.
    Text(&'a str),
    /// By its number among the names that the process publishes (`threadlocal.attribute_key_map` of its OpenTelemetry
    /// process context).
    Number(u8),
}

// === impl ThreadLabels ===

impl<'a> ThreadLabels<'a> {
    pub(crate) fn new(bytes: &'a [u8]) -> ThreadLabels<'a> {
        ThreadLabels { bytes }
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }

    /// Keys and values. What is no text is left out, and what could not be read.
    pub fn iter(&self) -> impl Iterator<Item = (LabelKey<'a>, &'a str)> + use<'a> {
        self.bytes.chunks_exact(LABEL_BYTES).filter_map(|label| {
            let (lengths, texts) = label.split_at(2);
            let (key, value) = texts.split_at(LABEL_KEY_BYTES);
            let value = whole_text(value.get(..lengths[1].into())?);
            if lengths[0] == KEY_IS_NUMBER {
                return Some((LabelKey::Number(key[0]), value));
            }
            let key = whole_text(key.get(..lengths[0].into())?);
            (!key.is_empty()).then_some((LabelKey::Text(key), value))
        })
    }
}

/// The text that `bytes` begin with: a cut may go through a character.
fn whole_text(bytes: &[u8]) -> &str {
    match str::from_utf8(bytes) {
        Ok(text) => text,
        Err(error) => str::from_utf8(&bytes[..error.valid_up_to()]).unwrap_or_default(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn label(key: &[u8], value: &[u8]) -> Vec<u8> {
        let mut label = vec![key.len() as u8, value.len() as u8];
        label.extend(key);
        label.resize(2 + LABEL_KEY_BYTES, b'x');
        label.extend(value);
        label.resize(LABEL_BYTES, b'y');
        label
    }

    #[test]
    fn keys_and_values_are_as_long_as_they_say() {
        let mut bytes = label(b"route", b"/cart");
        bytes.extend(label(b"", b"not read"));
        bytes.extend(label(b"empty", b""));
        // The second byte of the letter was cut off.
        bytes.extend(label(b"cut", b"na\xc3"));
        let labels = ThreadLabels::new(&bytes);
        let expected = [("route", "/cart"), ("empty", ""), ("cut", "na")];
        let expected = expected.map(|(key, value)| (LabelKey::Text(key), value));
        assert_eq!(labels.iter().collect::<Vec<_>>(), expected);
    }

    #[test]
    fn keys_may_be_numbers() {
        let mut bytes = label(b"\x07", b"/cart");
        bytes[0] = KEY_IS_NUMBER;
        let labels = ThreadLabels::new(&bytes);
        let found: Vec<_> = labels.iter().collect();
        assert_eq!(found, [(LabelKey::Number(7), "/cart")]);
    }

    #[test]
    fn lengths_that_cannot_be_are_left_out() {
        let mut bytes = label(b"key", b"value");
        bytes[1] = 65;
        assert_eq!(ThreadLabels::new(&bytes).iter().count(), 0);
        bytes[..2].copy_from_slice(&[31, 5]);
        assert_eq!(ThreadLabels::new(&bytes).iter().count(), 0);
    }
}
