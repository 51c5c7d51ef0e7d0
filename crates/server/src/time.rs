//! Points in time as users write them.

use jiff::Timestamp;

const NANOSECONDS_PER_SECOND: i64 = 1_000_000_000;
const NANOSECONDS_PER_MILLISECOND: i64 = 1_000_000;

/// Whole numbers from here on are milliseconds: as seconds they would lie behind the year 5000,
/// and as milliseconds everything below lies in early 1973, before any profile.
const FIRST_MILLISECOND: f64 = 1e11;
/// And here even milliseconds end.
const LAST_MILLISECOND: f64 = 1e14;

/// Nanoseconds since the Unix epoch of unix seconds, unix milliseconds, an RFC 3339 time, `now`,
/// or `now` with offsets like `now-1h30m`.
///
/// # Errors
/// What is wrong with the text, without its name.
pub(crate) fn parse_time(text: &str, now_ns: i64) -> Result<i64, String> {
    let unreadable = || {
        format!(
            "{text:?} is no time: use unix seconds, unix milliseconds, RFC 3339 like 2026-01-31T08:00:00Z, or now-1h"
        )
    };
    if let Some(offset) = text.strip_prefix("now") {
        return relative(offset, now_ns).ok_or_else(unreadable);
    }
    if let Ok(number) = text.parse::<f64>() {
        return unix(number).ok_or_else(unreadable);
    }
    let timestamp: Timestamp = text.parse().map_err(|_| unreadable())?;
    i64::try_from(timestamp.as_nanosecond()).map_err(|_| unreadable())
}

fn unix(number: f64) -> Option<i64> {
    if !(0.0..LAST_MILLISECOND).contains(&number) {
        return None;
    }
    let (unit, number) = if number >= FIRST_MILLISECOND {
        (NANOSECONDS_PER_MILLISECOND, number)
    } else {
        (NANOSECONDS_PER_SECOND, number)
    };
    // Whole and fractional part apart: nanoseconds since 1970 need more bits than a double has.
    let whole = (number.trunc() as i64).checked_mul(unit)?;
    whole.checked_add((number.fract() * unit as f64).round() as i64)
}

/// `""`, `-1h`, `-1h30m`, `+5m`.
fn relative(offset: &str, now_ns: i64) -> Option<i64> {
    if offset.is_empty() {
        return Some(now_ns);
    }
    let (sign, mut rest) = match offset.split_at_checked(1)? {
        ("-", rest) => (-1, rest),
        ("+", rest) => (1, rest),
        _ => return None,
    };
    if rest.is_empty() {
        return None;
    }
    let mut total: i64 = 0;
    while !rest.is_empty() {
        let digits = rest.find(|character: char| !character.is_ascii_digit())?;
        let number: i64 = rest[..digits].parse().ok()?;
        rest = &rest[digits..];
        let unit_length = rest
            .find(|character: char| character.is_ascii_digit())
            .unwrap_or(rest.len());
        let nanoseconds = number.checked_mul(unit_nanoseconds(&rest[..unit_length])?)?;
        total = total.checked_add(nanoseconds)?;
        rest = &rest[unit_length..];
    }
    now_ns.checked_add(sign * total)
}

fn unit_nanoseconds(unit: &str) -> Option<i64> {
    let seconds = match unit {
        "ms" => return Some(NANOSECONDS_PER_MILLISECOND),
        "s" => 1,
        "m" => 60,
        "h" => 3_600,
        "d" => 86_400,
        "w" => 7 * 86_400,
        "M" => 30 * 86_400,
        "y" => 365 * 86_400,
        _ => return None,
    };
    Some(seconds * NANOSECONDS_PER_SECOND)
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: i64 = 1_700_000_000 * NANOSECONDS_PER_SECOND;

    #[test]
    fn every_form_is_read() {
        let hour = 3_600 * NANOSECONDS_PER_SECOND;
        let cases = [
            ("1700000000", NOW),
            ("1700000000.25", NOW + 250_000_000),
            ("1700000000000", NOW),
            ("1700000000123", NOW + 123_000_000),
            ("2023-11-14T22:13:20Z", NOW),
            ("2023-11-14T23:13:20+01:00", NOW),
            ("now", NOW),
            ("now-1h", NOW - hour),
            ("now-1h30m", NOW - hour - hour / 2),
            ("now+1h", NOW + hour),
            ("now-500ms", NOW - 500_000_000),
            ("0", 0),
        ];
        for (text, expected) in cases {
            assert_eq!(parse_time(text, NOW), Ok(expected), "{text}");
        }
    }

    #[test]
    fn what_is_no_time_is_refused() {
        let cases = [
            "",
            "yesterday",
            "now-",
            "now-h",
            "now-1",
            "now-1x",
            "now1h",
            "-5",
            "NaN",
            "inf",
            "1e300",
            "9223372036.9",
            "1700000000000000000",
            "2023-11-14",
            "now-99999999999y",
            "now-1é",
        ];
        for text in cases {
            let error = parse_time(text, NOW).expect_err(text);
            assert!(error.contains("RFC 3339"), "{error}");
        }
    }
}
