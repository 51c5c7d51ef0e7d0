//! Shares of a core, as `0.5%`.

use std::fmt;

/// Percents have this many of the units.
const UNITS_PER_PERCENT: f64 = 10_000.0;

/// CPU time, in millionths of a core; 0 is `off`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct CoreShare(u32);

// === impl CoreShare ===

impl CoreShare {
    /// # Errors
    /// What would be accepted.
    pub(super) fn parse(text: &str) -> Result<Self, String> {
        if text == "off" {
            return Ok(Self(0));
        }
        let number = text.strip_suffix('%').unwrap_or(text).trim_end();
        let percent: f64 = number
            .parse()
            .map_err(|_| format!("{text:?} is no share of a core such as 0.5% or 0.5, nor off"))?;
        let units = (percent * UNITS_PER_PERCENT).round();
        // More than a thousand cores is nothing that anybody meant.
        if !(0.0..=1e9).contains(&units) || (units == 0.0 && percent != 0.0) {
            return Err(format!("{text:?} is not between 0.0001% and 100000%"));
        }
        Ok(Self(units as u32))
    }

    /// In cores; `None` when it is off.
    #[cfg(feature = "agent")]
    pub(crate) fn cores(self) -> Option<f64> {
        (self.0 > 0).then(|| f64::from(self.0) / 1e6)
    }
}

impl fmt::Display for CoreShare {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            0 => formatter.write_str("off"),
            units => write!(formatter, "{}%", f64::from(units) / UNITS_PER_PERCENT),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_are_percents_of_a_core() {
        for (text, units, shown) in [
            ("0.5%", 5_000, "0.5%"),
            ("0.5 %", 5_000, "0.5%"),
            ("2", 20_000, "2%"),
            ("0.0001", 1, "0.0001%"),
            ("0", 0, "off"),
            ("off", 0, "off"),
        ] {
            let share = CoreShare::parse(text).expect("a share");
            assert_eq!(share, CoreShare(units), "{text}");
            assert_eq!(share.to_string(), shown);
        }
        for text in ["-1", "half", "NaN", "0.00001", "1e9", "%"] {
            assert!(CoreShare::parse(text).is_err(), "{text}");
        }
    }
}
