//! Parquet pages of integers to values, for the columns that every query reads.
//!
//! The general reader of the parquet crate spends most of its time on what these columns do not
//! have (nesting, nulls in the middle, strings). Formats: Parquet's `Encodings.md`.

use parquet::basic::Encoding;
use parquet::column::page::Page;

use super::unpack::BATCH;
use super::unpack::for_each_batch;

/// An integer or an identifier of a column.
pub(super) trait PageValue: Copy + Default {
    /// Bytes in the plain encoding.
    const BYTES: usize;
    /// The encoding of deltas that columns of this type have.
    const DELTA: Encoding;
    fn from_plain(bytes: &[u8]) -> Self;
    /// All values of a page in that encoding.
    fn decode_deltas(bytes: &[u8], count: usize, values: &mut Vec<Self>) -> Option<()>;
}

impl PageValue for u32 {
    const BYTES: usize = 4;
    const DELTA: Encoding = Encoding::DELTA_BINARY_PACKED;

    fn from_plain(bytes: &[u8]) -> Self {
        bytes.first_chunk().map_or(0, |it| Self::from_le_bytes(*it))
    }

    fn decode_deltas(mut bytes: &[u8], count: usize, values: &mut Vec<Self>) -> Option<()> {
        take_deltas(&mut bytes, count, values, |value| value as Self)
    }
}

impl PageValue for i64 {
    const BYTES: usize = 8;
    const DELTA: Encoding = Encoding::DELTA_BINARY_PACKED;

    fn from_plain(bytes: &[u8]) -> Self {
        bytes.first_chunk().map_or(0, |it| Self::from_le_bytes(*it))
    }

    fn decode_deltas(mut bytes: &[u8], count: usize, values: &mut Vec<Self>) -> Option<()> {
        take_deltas(&mut bytes, count, values, |value| value)
    }
}

/// The values of a dictionary page.
pub(super) fn decode_dictionary<T: PageValue>(page: &Page) -> Vec<T> {
    let values = page.buffer().chunks_exact(T::BYTES);
    values.map(T::from_plain).collect()
}

/// The values of a data page, `T::default()` where null.
pub(super) fn decode_page<T: PageValue>(
    page: &Page,
    dictionary: &[T],
    values: &mut Vec<T>,
) -> Result<(), String> {
    let Page::DataPageV2 {
        buf,
        num_values,
        encoding,
        num_nulls,
        def_levels_byte_len,
        rep_levels_byte_len,
        ..
    } = page
    else {
        return Err("a data page is not of version 2".to_owned());
    };
    let (rows, nulls) = (*num_values as usize, *num_nulls as usize);
    let levels_end = (*def_levels_byte_len + *rep_levels_byte_len) as usize;
    let (Some(levels), Some(body), Some(present)) = (
        buf.get(..levels_end),
        buf.get(levels_end..),
        rows.checked_sub(nulls),
    ) else {
        return Err("a page is cut short".to_owned());
    };
    values.clear();
    match *encoding {
        encoding if encoding == T::DELTA => T::decode_deltas(body, present, values),
        Encoding::RLE_DICTIONARY | Encoding::PLAIN_DICTIONARY => {
            decode_indices(body, present, dictionary, values)
        }
        Encoding::PLAIN => {
            values.extend(body.chunks_exact(T::BYTES).take(present).map(T::from_plain));
            Some(())
        }
        other => return Err(format!("encoding {other} is not one that is written")),
    }
    .ok_or("a page does not decode")?;
    if values.len() != present {
        return Err(format!("a page has {} values, not {present}", values.len()));
    }
    if nulls > 0 {
        spread(levels, rows, values).ok_or("definition levels do not decode")?;
    }
    Ok(())
}

/// Moves values to the rows that have one.
fn spread<T: PageValue>(levels: &[u8], rows: usize, values: &mut Vec<T>) -> Option<()> {
    let mut is_present: Vec<u64> = Vec::with_capacity(rows);
    decode_hybrid(levels, 1, rows, |levels| {
        is_present.extend_from_slice(levels);
    })?;
    let mut present = std::mem::take(values).into_iter();
    for level in is_present {
        values.push(if level == 0 {
            T::default()
        } else {
            present.next()?
        });
    }
    Some(())
}

fn decode_indices<T: PageValue>(
    body: &[u8],
    count: usize,
    dictionary: &[T],
    values: &mut Vec<T>,
) -> Option<()> {
    if count == 0 {
        return Some(());
    }
    let (&bit_width, runs) = body.split_first()?;
    values.reserve(count);
    let mut is_inside = true;
    decode_hybrid(runs, bit_width.into(), count, |indices| {
        values.extend(indices.iter().map(|&index| {
            let value = dictionary.get(index as usize);
            is_inside &= value.is_some();
            value.copied().unwrap_or_default()
        }));
    })?;
    is_inside.then_some(())
}

/// The hybrid of runs and bit-packed groups of eight, handed over in batches.
fn decode_hybrid(
    mut bytes: &[u8],
    bit_width: u32,
    count: usize,
    mut visit: impl FnMut(&[u64]),
) -> Option<()> {
    if bit_width > 32 {
        return None;
    }
    let mut left = count;
    while left > 0 {
        let header = take_varint(&mut bytes)?;
        if header <= 1 {
            return None;
        }
        if header & 1 == 0 {
            let length = usize::try_from(header >> 1).ok()?.min(left);
            let value_bytes = bit_width.div_ceil(8) as usize;
            let (value, rest) = bytes.split_at_checked(value_bytes)?;
            let mut wide = [0_u8; 8];
            wide[..value_bytes].copy_from_slice(value);
            let batch = [u64::from_le_bytes(wide); BATCH];
            for start in (0..length).step_by(BATCH) {
                visit(&batch[..BATCH.min(length - start)]);
            }
            bytes = rest;
            left -= length;
            continue;
        }
        let groups = usize::try_from(header >> 1).ok()?;
        let length = groups.checked_mul(8)?.min(left);
        let packed_bytes = groups.checked_mul(bit_width as usize)?;
        // Writers may leave out the padding of the last group.
        let (packed, rest) = bytes.split_at(packed_bytes.min(bytes.len()));
        for_each_batch(packed, bit_width, length, &mut visit)?;
        bytes = rest;
        left -= length;
    }
    Some(())
}

/// Takes packed deltas off the front of `bytes`.
pub(super) fn take_deltas<T>(
    bytes: &mut &[u8],
    count: usize,
    values: &mut Vec<T>,
    convert: impl Fn(i64) -> T,
) -> Option<()> {
    let block_size = usize::try_from(take_varint(bytes)?).ok()?;
    let miniblocks = usize::try_from(take_varint(bytes)?).ok()?;
    let total = usize::try_from(take_varint(bytes)?).ok()?;
    let mut current = zig_zag(take_varint(bytes)?);
    if total != count {
        return None;
    }
    if count == 0 {
        return Some(());
    }
    if miniblocks == 0 || !block_size.is_multiple_of(miniblocks) {
        return None;
    }
    let per_miniblock = block_size / miniblocks;
    values.reserve(count);
    values.push(convert(current));
    let mut left = count - 1;
    while left > 0 {
        let min_delta = zig_zag(take_varint(bytes)?);
        let (widths, rest) = bytes.split_at_checked(miniblocks)?;
        *bytes = rest;
        for &width in widths {
            if left == 0 {
                break;
            }
            let length = per_miniblock.min(left);
            let packed_bytes = (usize::from(width) * per_miniblock).div_ceil(8);
            let (packed, rest) = bytes.split_at(packed_bytes.min(bytes.len()));
            for_each_batch(packed, width.into(), length, |deltas| {
                values.extend(deltas.iter().map(|&delta| {
                    current = current.wrapping_add(min_delta).wrapping_add(delta as i64);
                    convert(current)
                }));
            })?;
            *bytes = rest;
            left -= length;
        }
    }
    Some(())
}

fn take_varint(bytes: &mut &[u8]) -> Option<u64> {
    let mut value = 0_u64;
    for shift in (0..64).step_by(7) {
        let (&byte, rest) = bytes.split_first()?;
        *bytes = rest;
        value |= u64::from(byte & 0x7f) << shift;
        if byte < 0x80 {
            return Some(value);
        }
    }
    None
}

const fn zig_zag(value: u64) -> i64 {
    (value >> 1) as i64 ^ -((value & 1) as i64)
}
