//! Amounts of CPU and memory as Kubernetes writes them: `25m`, `0.5`, `64Mi`, `1G`, `2e3`.
//!
//! The form is that of `resource.Quantity` of Kubernetes' API: a decimal number, then a suffix of
//! thousands (`n u m k M G T P E`), of 1024 (`Ki Mi Gi Ti Pi Ei`) or an exponent (`e3`, `E3`).

use std::fmt;

/// Billionths in one.
const NANO: u128 = 1_000_000_000;
/// More digits than any amount of a machine has.
const MOST_CHARACTERS: usize = 40;

/// An amount that is not negative. What is finer than a billionth is rounded up, as Kubernetes does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Quantity {
    billionths: u128,
}

/// Why a text is no amount.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum QuantityError {
    /// Not of the form.
    #[error("is not an amount of Kubernetes' form")]
    Form,
    /// Below zero.
    #[error("is negative")]
    Negative,
    /// More than 2^63.
    #[error("is more than any machine has")]
    TooLarge,
}

impl Quantity {
    /// Reads the form of Kubernetes.
    ///
    /// # Errors
    /// When it is not of that form, negative, or beyond 2^63.
    pub fn parse(text: &str) -> Result<Self, QuantityError> {
        if text.len() > MOST_CHARACTERS {
            return Err(QuantityError::Form);
        }
        let unsigned = match text.as_bytes().first() {
            Some(b'-') => return Err(QuantityError::Negative),
            Some(b'+') => &text[1..],
            _ => text,
        };
        let is_digit = |character: char| character.is_ascii_digit() || character == '.';
        let end = unsigned.find(|character| !is_digit(character));
        let (number, suffix) = unsigned.split_at(end.unwrap_or(unsigned.len()));
        let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
        let has_digits = !(whole.is_empty() && fraction.is_empty());
        if !has_digits || fraction.contains('.') {
            return Err(QuantityError::Form);
        }
        let digits: u128 = format!("{whole}{fraction}")
            .parse()
            .map_err(|_| QuantityError::TooLarge)?;
        let (multiplier, exponent) = scale(suffix).ok_or(QuantityError::Form)?;
        // `MOST_CHARACTERS` bounds the length.
        let exponent = exponent + 9 - fraction.len() as i32;
        let scaled = digits
            .checked_mul(multiplier)
            .ok_or(QuantityError::TooLarge)?;
        let billionths = times_ten_to(scaled, exponent).ok_or(QuantityError::TooLarge)?;
        if billionths > (1 << 63) * NANO {
            return Err(QuantityError::TooLarge);
        }
        Ok(Self { billionths })
    }

    /// Of CPU: thousandths of one CPU, rounded up.
    #[must_use]
    pub fn thousandths(self) -> u64 {
        // At most 2^63 · 1000 / 10^9 billionths fit, except near the largest amounts.
        u64::try_from(self.billionths.div_ceil(NANO / 1000)).unwrap_or(u64::MAX)
    }

    /// Of memory: bytes, rounded up.
    #[must_use]
    pub fn bytes(self) -> u64 {
        u64::try_from(self.billionths.div_ceil(NANO)).unwrap_or(u64::MAX)
    }

    /// Whether it has no part finer than a thousandth.
    #[must_use]
    pub fn is_whole_thousandths(self) -> bool {
        self.billionths.is_multiple_of(NANO / 1000)
    }

    /// Whether it is a whole number.
    #[must_use]
    pub fn is_whole(self) -> bool {
        self.billionths.is_multiple_of(NANO)
    }
}

impl fmt::Display for Quantity {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.is_whole() {
            return write!(formatter, "{}", self.billionths / NANO);
        }
        if self.is_whole_thousandths() {
            return write!(formatter, "{}m", self.billionths / (NANO / 1000));
        }
        write!(formatter, "{}n", self.billionths)
    }
}

/// A multiplier and a power of ten.
fn scale(suffix: &str) -> Option<(u128, i32)> {
    let power_of_ten = |exponent| Some((1, exponent));
    let power_of_two = |exponent: u32| Some((1 << exponent, 0));
    match suffix {
        "n" => power_of_ten(-9),
        "u" => power_of_ten(-6),
        "m" => power_of_ten(-3),
        "" => power_of_ten(0),
        "k" => power_of_ten(3),
        "M" => power_of_ten(6),
        "G" => power_of_ten(9),
        "T" => power_of_ten(12),
        "P" => power_of_ten(15),
        "E" => power_of_ten(18),
        "Ki" => power_of_two(10),
        "Mi" => power_of_two(20),
        "Gi" => power_of_two(30),
        "Ti" => power_of_two(40),
        "Pi" => power_of_two(50),
        "Ei" => power_of_two(60),
        _ => {
            let exponent: i32 = suffix.strip_prefix(['e', 'E'])?.parse().ok()?;
            (-40..=40).contains(&exponent).then_some((1, exponent))
        }
    }
}

fn times_ten_to(value: u128, exponent: i32) -> Option<u128> {
    let factor = 10_u128.checked_pow(exponent.unsigned_abs());
    match (value, factor) {
        (0, _) => Some(0),
        (value, Some(factor)) if exponent >= 0 => value.checked_mul(factor),
        (value, Some(factor)) => Some(value.div_ceil(factor)),
        // Beyond what 128 bits hold: too large upwards, and the least amount downwards.
        (_, None) => (exponent < 0).then_some(1),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn quantity(text: &str) -> Quantity {
        Quantity::parse(text).unwrap()
    }

    #[test]
    fn the_forms_of_kubernetes_are_read() {
        assert_eq!(quantity("25m").thousandths(), 25);
        assert_eq!(quantity("0.5").thousandths(), 500);
        assert_eq!(quantity(".5"), quantity("500m"));
        assert_eq!(quantity("2").thousandths(), 2000);
        assert_eq!(quantity("64Mi").bytes(), 64 << 20);
        assert_eq!(quantity("1G").bytes(), 1_000_000_000);
        assert_eq!(quantity("1.5Gi").bytes(), 3 << 29);
        assert_eq!(quantity("+2e3"), quantity("2k"));
        assert_eq!(quantity("1E").bytes(), 1_000_000_000_000_000_000);
        assert_eq!(quantity("1E3"), quantity("1k"));
        assert_eq!(quantity("100n"), quantity("0.1u"));
        assert_eq!(quantity("0"), quantity("0.000Ei"));
        assert_eq!(quantity("1e-40"), quantity("1n"));
    }

    #[test]
    fn what_is_no_amount_is_refused() {
        for text in [
            "", ".", "m", "1.2.3", "1 Gi", "1gi", "64MB", "1e", "0x10", "٣", "1e99",
        ] {
            assert_eq!(Quantity::parse(text), Err(QuantityError::Form), "{text:?}");
        }
        assert_eq!(Quantity::parse("-1"), Err(QuantityError::Negative));
        for text in ["16Ei", "1e40", "99999999999999999999999999999999999999"] {
            assert_eq!(
                Quantity::parse(text),
                Err(QuantityError::TooLarge),
                "{text:?}"
            );
        }
    }

    #[test]
    fn amounts_are_written_in_the_largest_unit_that_is_exact() {
        let written = |text: &str| quantity(text).to_string();
        assert_eq!(written("0.5"), "500m");
        assert_eq!(written("1k"), "1000");
        assert_eq!(written("1u"), "1000n");
        for text in ["0.5", "1Ki", "1u", "7n", "8Ei"] {
            assert_eq!(quantity(&written(text)), quantity(text));
        }
    }
}
