//! Text that is not UTF-8, repaired within bounds.

use std::borrow::Cow;

/// By how much repairs may lengthen what they repair: a broken byte becomes three, and the room for a body is that of its bytes
/// as they came.
pub(crate) const MAX_GROWTH: usize = 16 << 20;

/// The text, borrowed when it is UTF-8. Each broken sequence becomes U+FFFD, as by [`String::from_utf8_lossy`], while there is
/// room for that, and `?` from then on.
pub(crate) fn repaired_within<'a>(bytes: &'a [u8], growth_left: &mut usize) -> Cow<'a, str> {
    if let Ok(text) = std::str::from_utf8(bytes) {
        return Cow::Borrowed(text);
    }
    let mut text = String::with_capacity(bytes.len());
    for chunk in bytes.utf8_chunks() {
        text.push_str(chunk.valid());
        let broken = chunk.invalid().len();
        if broken == 0 {
            continue;
        }
        let growth = char::REPLACEMENT_CHARACTER
            .len_utf8()
            .saturating_sub(broken);
        match growth_left.checked_sub(growth) {
            Some(left) => {
                *growth_left = left;
                text.push(char::REPLACEMENT_CHARACTER);
            }
            None => text.push('?'),
        }
    }
    Cow::Owned(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn repairs_grow_within_their_bound() {
        let mut left = 5;
        assert_eq!(repaired_within("größe".as_bytes(), &mut left), "größe");
        assert_eq!(left, 5);
        let text = b"a\xffb\xff\xffc\xe2\x82d";
        assert_eq!(
            repaired_within(text, &mut 100),
            String::from_utf8_lossy(text)
        );
        let repaired = repaired_within(text, &mut left);
        assert_eq!(repaired, "a\u{fffd}b\u{fffd}?c\u{fffd}d");
        assert_eq!(repaired.len(), text.len() + 5);
    }
}
