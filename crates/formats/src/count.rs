//! Sums of values that may have fractions.

use serde_json::Number;

/// A sum that stays exact for whole numbers.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Count {
    whole: i64,
    fraction: f64,
}

/// Beyond 2^53 a number has no fraction to lose, beyond 2^63 no meaning.
const MAX: f64 = 9.0e18;

impl Count {
    pub(crate) const ONE: Self = Self::whole(1);

    pub(crate) const fn whole(whole: i64) -> Self {
        Self {
            whole,
            fraction: 0.0,
        }
    }

    /// A number as it stands in JSON; `None` for what is no number or beyond 64 bits.
    pub(crate) fn from_f64(number: f64) -> Option<Self> {
        let whole = number.trunc();
        (whole.abs() < MAX).then_some(Self {
            whole: whole as i64,
            fraction: number - whole,
        })
    }

    /// A number of JSON in other units; whole numbers stay exact. `None` for what is beyond 64 bits.
    pub(crate) fn scaled(number: &Number, factor: i64) -> Option<Self> {
        let exact = number.as_i64().and_then(|whole| whole.checked_mul(factor));
        match exact {
            Some(exact) => Some(Self::whole(exact)),
            None => Self::from_f64(number.as_f64()? * factor as f64),
        }
    }

    pub(crate) fn parse(text: &str) -> Option<Self> {
        if let Ok(whole) = text.parse::<i64>() {
            return Some(Self::whole(whole));
        }
        let is_decimal = text
            .bytes()
            .all(|byte| matches!(byte, b'0'..=b'9' | b'.' | b'-'));
        Self::from_f64(text.parse::<f64>().ok().filter(|_| is_decimal)?)
    }

    pub(crate) fn add(&mut self, other: Self) {
        self.whole = self.whole.saturating_add(other.whole);
        self.fraction += other.fraction;
    }

    /// The nearest whole number, and whether that is another one.
    pub(crate) fn rounded(self) -> (i64, bool) {
        let rounded = self.fraction.round();
        let is_rounded = (self.fraction - rounded).abs() > 1e-9;
        (self.whole.saturating_add(rounded as i64), is_rounded)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fractions_add_up_before_they_are_rounded() {
        let mut sum = Count::default();
        for text in ["0.5", "1", "-0.25", "0.75"] {
            sum.add(Count::parse(text).expect("a number"));
        }
        assert_eq!(sum.rounded(), (2, false));
        sum.add(Count::from_f64(0.4).expect("a number"));
        assert_eq!(sum.rounded(), (2, true));
    }

    #[test]
    fn what_is_no_number_of_64_bits_is_refused() {
        for text in ["", "a", "1e300", "inf", "NaN", "99999999999999999999999"] {
            assert_eq!(Count::parse(text), None, "{text}");
        }
        assert_eq!(Count::from_f64(f64::NAN), None);
        assert_eq!(Count::from_f64(f64::INFINITY), None);
        assert_eq!(
            Count::parse("9223372036854775807"),
            Some(Count::whole(i64::MAX))
        );
    }
}
