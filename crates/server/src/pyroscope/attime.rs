//! Times as Pyroscope's URLs have them (graphite's `at`): numbers of seconds to nanoseconds, days,
//! and offsets from now.

use jiff::civil::Date;
use jiff::tz::TimeZone;

use crate::time::parse_time;

/// Nanoseconds since the Unix epoch.
///
/// # Errors
/// What is wrong with the text, without its name.
pub(crate) fn parse_attime(text: &str, now_ns: i64) -> Result<i64, String> {
    let time_ns = any_time(text, now_ns)?;
    if time_ns < 0 {
        return Err(format!("{text:?} is before 1970"));
    }
    Ok(time_ns)
}

fn any_time(text: &str, now_ns: i64) -> Result<i64, String> {
    let is_number = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    if is_number && text.len() == 8 {
        return day(text).ok_or_else(|| format!("{text:?} is no day"));
    }
    if is_number {
        let number: i64 = text
            .parse()
            .map_err(|_| format!("{text:?} is too large for a time"))?;
        // The number of digits is that of a time in our century.
        let factor = match text.len() {
            ..=12 => 1_000_000_000,
            13..=15 => 1_000_000,
            16..=18 => 1_000,
            _ => 1,
        };
        return number
            .checked_mul(factor)
            .ok_or_else(|| format!("{text:?} is too large for a time"));
    }
    parse_time(&with_known_units(text), now_ns)
}

/// A day as `20261121`, in UTC.
fn day(digits: &str) -> Option<i64> {
    let (year, month, day) = (&digits[..4], &digits[4..6], &digits[6..]);
    let date = Date::new(year.parse().ok()?, month.parse().ok()?, day.parse().ok()?).ok()?;
    let start = date.to_zoned(TimeZone::UTC).ok()?.timestamp();
    i64::try_from(start.as_nanosecond()).ok()
}

/// `now-5min` and `now-1mon` with the units that [`parse_time`] knows.
fn with_known_units(text: &str) -> String {
    if !text.starts_with("now") {
        return text.to_owned();
    }
    text.replace("mon", "M").replace("min", "m")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_have_many_forms() {
        let now_ns = 1_700_000_000_000_000_000;
        let cases = [
            ("1700000000", now_ns),
            ("1700000000000", now_ns),
            ("1700000000000000", now_ns),
            ("1700000000000000000", now_ns),
            ("20231114", 1_699_920_000_000_000_000),
            ("now", now_ns),
            ("now-1h", now_ns - 3_600_000_000_000),
            ("now-5min", now_ns - 300_000_000_000),
            ("now-1mon", now_ns - 30 * 86_400_000_000_000),
        ];
        for (text, wanted) in cases {
            assert_eq!(parse_attime(text, now_ns), Ok(wanted), "{text}");
        }
        for text in [
            "1700-01-01T00:00:00Z",
            "19691231",
            "now-1000y",
            "20231345",
            "99999999999999999999",
            "yesterday",
            "",
        ] {
            assert!(parse_attime(text, now_ns).is_err(), "{text}");
        }
    }
}
