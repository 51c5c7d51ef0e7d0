//! Parquet pages of trace and span ids to values.
//!
//! Ids are in dictionaries until a row group has more of them than a dictionary takes; the pages
//! behind that are of deltas: how much of the id before each begins with, and the rest of it.

use parquet::basic::Encoding;

use super::decode::PageValue;
use super::decode::take_deltas;

impl<const N: usize> PageValue for [u8; N]
where
    Self: Default,
{
    const BYTES: usize = N;
    const DELTA: Encoding = Encoding::DELTA_BYTE_ARRAY;

    fn from_plain(bytes: &[u8]) -> Self {
        bytes.first_chunk().copied().unwrap_or_default()
    }

    fn decode_deltas(mut bytes: &[u8], count: usize, values: &mut Vec<Self>) -> Option<()> {
        let as_length = |value: i64| usize::try_from(value).unwrap_or(usize::MAX);
        let (mut prefixes, mut suffixes) = (Vec::new(), Vec::new());
        take_deltas(&mut bytes, count, &mut prefixes, as_length)?;
        take_deltas(&mut bytes, count, &mut suffixes, as_length)?;
        let mut current = Self::default();
        for (prefix, suffix) in prefixes.into_iter().zip(suffixes) {
            if prefix.checked_add(suffix) != Some(N) {
                return None;
            }
            let (tail, rest) = bytes.split_at_checked(suffix)?;
            current[prefix..].copy_from_slice(tail);
            values.push(current);
            bytes = rest;
        }
        Some(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Packed deltas of up to 33 values that all are at most 255, in one block.
    fn packed(values: &[u8]) -> Vec<u8> {
        let mut bytes = vec![0x80, 1, 4, values.len() as u8];
        let zig_zag = |value: i64| ((value << 1) ^ (value >> 63)) as u64;
        let varint = |mut value: u64, bytes: &mut Vec<u8>| {
            while value >= 0x80 {
                bytes.push(value as u8 | 0x80);
                value >>= 7;
            }
            bytes.push(value as u8);
        };
        varint(
            zig_zag(values.first().copied().unwrap_or(0).into()),
            &mut bytes,
        );
        if values.len() > 1 {
            varint(zig_zag(-255), &mut bytes);
            bytes.extend([16, 0, 0, 0]);
            let deltas = values
                .windows(2)
                .map(|pair| u16::from(pair[1]) + 255 - u16::from(pair[0]));
            let mut miniblock: Vec<u8> = deltas.flat_map(u16::to_le_bytes).collect();
            miniblock.resize(64, 0);
            bytes.extend(miniblock);
        }
        bytes
    }

    fn decoded(prefixes: &[u8], suffixes: &[u8], tails: &[u8]) -> Option<Vec<[u8; 4]>> {
        let bytes = [packed(prefixes), packed(suffixes), tails.to_vec()].concat();
        let mut values = Vec::new();
        <[u8; 4]>::decode_deltas(&bytes, prefixes.len(), &mut values)?;
        Some(values)
    }

    #[test]
    fn an_id_begins_like_the_one_before() {
        let found = decoded(&[0, 3, 4, 1], &[4, 1, 0, 3], b"abcdefxyz");
        let ids = [*b"abcd", *b"abce", *b"abce", *b"afxy"];
        assert_eq!(
            found.map(|found| found[..3].to_vec()),
            Some(ids[..3].to_vec())
        );
        let found = decoded(&[0, 3, 4, 1], &[4, 1, 0, 3], b"abcdefxy");
        assert_eq!(found, Some(ids.to_vec()));
    }

    #[test]
    fn lengths_that_are_none_of_an_id_do_not_decode() {
        assert_eq!(decoded(&[0, 3], &[4, 2], b"abcdef"), None);
        assert_eq!(decoded(&[5], &[0], b""), None);
        assert_eq!(decoded(&[0], &[4], b"abc"), None);
    }
}
