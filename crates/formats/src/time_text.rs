//! Points of time as text, in UTC.

/// The parts of a point of time.
struct Civil {
    year: i64,
    month: i64,
    day: i64,
    hour: i64,
    minute: i64,
    second: i64,
    nanosecond: i64,
}

/// Nanoseconds since the Unix epoch as `2020-12-17 10:08:38 UTC`; what is before 1970 as its start.
#[must_use]
pub fn utc(nanoseconds: i64) -> String {
    let time = Civil::of(nanoseconds);
    format!(
        "{:04}-{:02}-{:02} {:02}:{:02}:{:02} UTC",
        time.year, time.month, time.day, time.hour, time.minute, time.second
    )
}

/// Nanoseconds since the Unix epoch as `2020-12-17T10:08:38.000000001Z` (RFC 3339), always with nine
/// digits, so that texts sort as times do; what is before 1970 as its start.
pub(crate) fn rfc3339(nanoseconds: i64) -> String {
    let time = Civil::of(nanoseconds);
    format!(
        "{:04}-{:02}-{:02}T{:02}:{:02}:{:02}.{:09}Z",
        time.year, time.month, time.day, time.hour, time.minute, time.second, time.nanosecond
    )
}

impl Civil {
    fn of(nanoseconds: i64) -> Self {
        let nanoseconds = nanoseconds.max(0);
        let seconds = nanoseconds / 1_000_000_000;
        // 64 bits of nanoseconds end in 2262, so counting the years is quick.
        let (mut year, mut day) = (1970, seconds / 86_400);
        while day >= days_of_year(year) {
            day -= days_of_year(year);
            year += 1;
        }
        let mut month = 1;
        while day >= days_of_month(year, month) {
            day -= days_of_month(year, month);
            month += 1;
        }
        Self {
            year,
            month,
            day: day + 1,
            hour: seconds / 3600 % 24,
            minute: seconds / 60 % 60,
            second: seconds % 60,
            nanosecond: nanoseconds % 1_000_000_000,
        }
    }
}

fn days_of_year(year: i64) -> i64 {
    365 + i64::from(is_leap(year))
}

pub(crate) fn is_leap(year: i64) -> bool {
    (year % 4 == 0 && year % 100 != 0) || year % 400 == 0
}

pub(crate) fn days_of_month(year: i64, month: i64) -> i64 {
    match month {
        2 => 28 + i64::from(is_leap(year)),
        4 | 6 | 9 | 11 => 30,
        _ => 31,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_as_text() {
        let cases = [
            (-5, "1970-01-01T00:00:00.000000000Z"),
            (0, "1970-01-01T00:00:00.000000000Z"),
            (1_709_209_845_500_000_000, "2024-02-29T12:30:45.500000000Z"),
            (1_735_689_599_000_000_001, "2024-12-31T23:59:59.000000001Z"),
            (i64::MAX, "2262-04-11T23:47:16.854775807Z"),
        ];
        for (nanoseconds, text) in cases {
            assert_eq!(rfc3339(nanoseconds), text);
        }
        assert_eq!(utc(1_608_199_718_000_000_000), "2020-12-17 10:08:38 UTC");
    }
}
