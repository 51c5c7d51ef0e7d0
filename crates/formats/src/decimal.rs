//! Numbers as programs print them.

/// A decimal number times a factor, rounded to the nearest. Commas may group digits by threes.
/// `None` for what is no number or beyond 64 bits.
pub(crate) fn scaled_decimal(text: &str, factor: i64) -> Option<i64> {
    let (whole, fraction) = text.split_once('.').unwrap_or((text, ""));
    let mut groups = whole.split(',');
    let first = groups.next()?;
    let is_number = |digits: &str| digits.bytes().all(|byte| byte.is_ascii_digit());
    let mut digits = first.to_owned();
    for group in groups {
        if group.len() != 3 || first.is_empty() || first.len() > 3 {
            return None;
        }
        digits.push_str(group);
    }
    if digits.is_empty() || !is_number(&digits) || !is_number(fraction) {
        return None;
    }
    // Digits that no factor of 64 bits makes count.
    let fraction = fraction.get(..18).unwrap_or(fraction);
    let scale = 10_i128.pow(fraction.len() as u32);
    let whole: i64 = digits.parse().ok()?;
    let parts: i64 = if fraction.is_empty() {
        0
    } else {
        fraction.parse().ok()?
    };
    let number = i128::from(whole)
        .checked_mul(scale)?
        .checked_add(i128::from(parts))?;
    let scaled = number.checked_mul(i128::from(factor))?;
    let rounded = scaled.checked_add(scale / 2)?.div_euclid(scale);
    i64::try_from(rounded).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_exact() {
        let cases = [
            ("4273.0", 1_000_000, Some(4_273_000_000)),
            ("0.1", 1_000_000_000, Some(100_000_000)),
            ("2,740,711,064", 1, Some(2_740_711_064)),
            ("1.5", 1, Some(2)),
            ("9223372036854775807", 1, Some(i64::MAX)),
            ("9223372036854775807", 2, None),
            ("1.0000000000000000000000001", 10, Some(10)),
            ("", 1, None),
            (".5", 1, None),
            ("1,23", 1, None),
            ("-1", 1, None),
            ("1e3", 1, None),
        ];
        for (text, factor, expected) in cases {
            assert_eq!(scaled_decimal(text, factor), expected, "{text}");
        }
    }
}
