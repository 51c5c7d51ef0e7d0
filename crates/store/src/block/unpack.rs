//! Bit-packed numbers to words, 32 at a time.

/// Numbers unpacked at once: as many as fill whole words at every width.
pub(super) const BATCH: usize = 32;

/// The first `count` numbers of `bit_width` bits (at most 64), low bits first, handed over in
/// batches of up to [`BATCH`]; `None` when there are fewer bits than that.
#[inline]
pub(super) fn for_each_batch(
    packed: &[u8],
    bit_width: u32,
    count: usize,
    mut visit: impl FnMut(&[u64]),
) -> Option<()> {
    if bit_width > 64 || packed.len() * 8 < count * bit_width as usize {
        return None;
    }
    let mut batch = [0_u64; BATCH];
    let batch_bytes = bit_width as usize * BATCH / 8;
    let mut done = 0;
    while done < count {
        let length = BATCH.min(count - done);
        let rest = &packed[(done / BATCH * batch_bytes).min(packed.len())..];
        match rest.get(..batch_bytes) {
            Some(whole) if bit_width <= 32 => unpack_words(whole, bit_width, &mut batch),
            _ if bit_width <= 8 => unpack_groups(rest, bit_width as usize, &mut batch[..length]),
            _ => unpack_slowly(rest, bit_width as usize, &mut batch[..length]),
        }
        visit(&batch[..length]);
        done += length;
    }
    Some(())
}

/// Widths up to a byte, any end. Parquet packs in groups of eight and runs between repetitions are
/// short, so most of a column of small numbers comes this way: eight numbers are one word.
fn unpack_groups(packed: &[u8], width: usize, values: &mut [u64]) {
    let mask = (1 << width) - 1;
    for (group, values) in values.chunks_mut(8).enumerate() {
        let mut bytes = [0_u8; 8];
        let tail = packed.get(group * width..).unwrap_or(&[]);
        match tail.first_chunk() {
            Some(whole) => bytes = *whole,
            None => bytes[..tail.len()].copy_from_slice(tail),
        }
        let word = u64::from_le_bytes(bytes);
        for (index, value) in values.iter_mut().enumerate() {
            *value = word >> (index * width) & mask;
        }
    }
}

/// Any width, any end.
fn unpack_slowly(packed: &[u8], width: usize, values: &mut [u64]) {
    if width == 0 {
        values.fill(0);
        return;
    }
    let mask = u64::MAX >> (64 - width);
    for (index, value) in values.iter_mut().enumerate() {
        let bit = index * width;
        let mut wide = [0_u8; 16];
        let tail = packed.get(bit / 8..).unwrap_or(&[]);
        let length = tail.len().min(16);
        wide[..length].copy_from_slice(&tail[..length]);
        *value = (u128::from_le_bytes(wide) >> (bit % 8)) as u64 & mask;
    }
}

/// A whole batch of known width: with the width a constant, the compiler turns every position into
/// two shifts and a mask and does several at once.
#[inline]
fn unpack_constant<const WIDTH: usize>(packed: &[u8], values: &mut [u64; BATCH]) {
    let mut words = [0_u32; BATCH + 1];
    for (word, bytes) in words.iter_mut().zip(packed.chunks_exact(4)).take(WIDTH) {
        *word = bytes
            .first_chunk()
            .map_or(0, |bytes| u32::from_le_bytes(*bytes));
    }
    let mask = (u64::MAX >> (64 - WIDTH)) as u32;
    for (index, value) in values.iter_mut().enumerate() {
        let (word, shift) = (index * WIDTH / 32, index * WIDTH % 32);
        let low = words[word] >> shift;
        let high = if shift + WIDTH > 32 {
            words[word + 1] << (32 - shift)
        } else {
            0
        };
        *value = u64::from((low | high) & mask);
    }
}

macro_rules! by_width {
    ($width:expr, $packed:expr, $values:expr, $($constant:literal)*) => {
        match $width {
            $($constant => unpack_constant::<$constant>($packed, $values),)*
            _ => $values.fill(0),
        }
    };
}

fn unpack_words(packed: &[u8], bit_width: u32, values: &mut [u64; BATCH]) {
    by_width!(bit_width, packed, values,
        1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21 22 23 24 25 26 27 28 29 30 31 32);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_width_and_length_unpacks() {
        for width in 0..=64_u32 {
            let mask = if width == 0 {
                0
            } else {
                u64::MAX >> (64 - width)
            };
            let value = |index: usize| (index as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15) & mask;
            for count in [1, 7, 8, 31, 32, 33, 64, 100] {
                let mut packed = vec![0_u8; (count * width as usize).div_ceil(8)];
                for index in 0..count {
                    for bit in (0..width as usize).filter(|bit| value(index) >> bit & 1 == 1) {
                        let at = index * width as usize + bit;
                        packed[at / 8] |= 1 << (at % 8);
                    }
                }
                let mut found = Vec::new();
                for_each_batch(&packed, width, count, |batch| {
                    found.extend_from_slice(batch);
                })
                .expect("enough bits");
                let expected: Vec<u64> = (0..count).map(value).collect();
                assert_eq!(found, expected, "{count} of {width} bits");
                packed.pop();
                let is_short = packed.len() * 8 < count * width as usize;
                let result = for_each_batch(&packed, width, count, |_| {});
                assert_eq!(result.is_none(), is_short, "{count} of {width} bits");
            }
        }
    }
}
