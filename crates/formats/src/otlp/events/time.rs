//! Points of time as text (RFC 3339).

use crate::time_text::days_of_month;

/// Nanoseconds since the Unix epoch; `None` for what is no time from 1970 to 2262. Digits behind the
/// ninth of a fraction are cut.
pub(crate) fn parse_rfc3339(text: &str) -> Option<i64> {
    let (date, time) = text.trim().split_once(['T', 't', ' '])?;
    let zone_start = time.find(['Z', 'z', '+', '-'])?;
    let (time, zone) = time.split_at(zone_start);
    let [year, month, day] = numbers(date, '-')?;
    let (clock, fraction) = time.split_once('.').unwrap_or((time, "0"));
    let [hour, minute, second] = numbers(clock, ':')?;
    // A leap second is the first one of the next minute.
    let is_time = hour < 24 && minute < 60 && second <= 60;
    let is_date = (1970..=2262).contains(&year)
        && (1..=12).contains(&month)
        && (1..=days_of_month(year, month)).contains(&day);
    if !is_time || !is_date {
        return None;
    }
    let days = days_before_year(year) + days_before_month(year, month) + day - 1;
    let seconds = ((days * 24 + hour) * 60 + minute) * 60 + second - offset_seconds(zone)?;
    seconds
        .checked_mul(1_000_000_000)?
        .checked_add(nanoseconds(fraction)?)
        .filter(|time| *time >= 0)
}

/// Three numbers of digits only.
fn numbers(text: &str, separator: char) -> Option<[i64; 3]> {
    let mut parts = text.split(separator).map(|part| {
        let is_number = !part.is_empty() && part.len() <= 4;
        let is_number = is_number && part.bytes().all(|byte| byte.is_ascii_digit());
        part.parse::<i64>().ok().filter(|_| is_number)
    });
    let numbers = [parts.next()??, parts.next()??, parts.next()??];
    parts.next().is_none().then_some(numbers)
}

fn nanoseconds(fraction: &str) -> Option<i64> {
    if fraction.is_empty() || !fraction.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    let digits = fraction.bytes().chain(std::iter::repeat(b'0')).take(9);
    Some(digits.fold(0, |sum, digit| sum * 10 + i64::from(digit - b'0')))
}

/// `Z`, or hours and minutes from Greenwich, with a colon or without.
fn offset_seconds(zone: &str) -> Option<i64> {
    if zone.eq_ignore_ascii_case("z") {
        return Some(0);
    }
    let (sign, digits) = match zone.as_bytes().first()? {
        b'+' => (1, &zone[1..]),
        b'-' => (-1, &zone[1..]),
        _ => return None,
    };
    let digits = digits.replace(':', "");
    let is_offset = digits.len() == 4 && digits.bytes().all(|byte| byte.is_ascii_digit());
    let number: i64 = digits.parse().ok().filter(|_| is_offset)?;
    let (hours, minutes) = (number / 100, number % 100);
    (hours < 24 && minutes < 60).then_some(sign * (hours * 60 + minutes) * 60)
}

fn days_before_year(year: i64) -> i64 {
    let leap_days_before = |year: i64| (year - 1) / 4 - (year - 1) / 100 + (year - 1) / 400;
    (year - 1970) * 365 + leap_days_before(year) - leap_days_before(1970)
}

fn days_before_month(year: i64, month: i64) -> i64 {
    (1..month).map(|before| days_of_month(year, before)).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_become_nanoseconds() {
        let cases = [
            ("1970-01-01T00:00:00Z", 0),
            ("2024-02-29T12:30:45.5Z", 1_709_209_845_500_000_000),
            (
                "2024-02-29T13:30:45.500000000999+01:00",
                1_709_209_845_500_000_000,
            ),
            (
                "2024-02-29 07:00:45.123456789-0530",
                1_709_209_845_123_456_789,
            ),
            ("2000-12-31T23:59:60Z", 978_307_200_000_000_000),
            ("2026-11-21T21:36:51z", 1_795_297_011_000_000_000),
        ];
        for (text, nanoseconds) in cases {
            assert_eq!(parse_rfc3339(text), Some(nanoseconds), "{text}");
        }
    }

    #[test]
    fn what_is_no_time_is_refused() {
        for text in [
            "",
            "yesterday",
            "2024-02-30T00:00:00Z",
            "2023-02-29T00:00:00Z",
            "2024-13-01T00:00:00Z",
            "2024-01-01T24:00:00Z",
            "2024-01-01T00:00:00",
            "2024-01-01T00:00Z",
            "2024-01-01T00:00:00.Z",
            "2024-01-01T00:00:00+99:00",
            "1970-01-01T00:00:00+01:00",
            "2262-12-01T00:00:00Z",
            "+024-01-01T00:00:00Z",
            "2024-01-01T00:00:00é",
        ] {
            assert_eq!(parse_rfc3339(text), None, "{text}");
        }
    }
}
