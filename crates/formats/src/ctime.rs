//! Dates as C prints them.

/// `Thu Aug 17 14:14:43 2017`, with or without the seconds, in nanoseconds since the Unix epoch. It
/// is the local time of a host that does not tell its zone; it counts as UTC.
pub(crate) fn parse_ctime(text: &str) -> Option<i64> {
    const MONTHS: [&str; 12] = [
        "Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec",
    ];
    let words: Vec<&str> = text.split_whitespace().take(6).collect();
    let [_, month, day, time, year] = words[..] else {
        return None;
    };
    let month = MONTHS.iter().position(|name| *name == month)? as i64 + 1;
    let day: i64 = day.parse().ok().filter(|day| (1..=31).contains(day))?;
    let year: i64 = year
        .parse()
        .ok()
        .filter(|year| (1970..=2200).contains(year))?;
    let mut seconds = 0;
    let fields: Vec<&str> = time.split(':').take(4).collect();
    if !matches!(fields.len(), 2 | 3) {
        return None;
    }
    let fields = fields.into_iter().chain(["0"]);
    for (field, limit) in fields.zip([24, 60, 61]) {
        let field: i64 = field
            .parse()
            .ok()
            .filter(|field| (0..limit).contains(field))?;
        seconds = seconds * 60 + field;
    }
    Some((days_since_epoch(year, month, day) * 86_400 + seconds) * 1_000_000_000)
}

/// Days of the Gregorian calendar. Years are counted from March, so that the leap day is the last.
fn days_since_epoch(year: i64, month: i64, day: i64) -> i64 {
    let (year, month) = match month > 2 {
        true => (year, month - 3),
        false => (year - 1, month + 9),
    };
    let leap_days = year / 4 - year / 100 + year / 400;
    // March 1st of the year 0 is 719,468 days before the epoch.
    365 * year + leap_days + (153 * month + 2) / 5 + day - 1 - 719_468
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_of_headers_are_read() {
        let date = "Thu Aug 17 14:14:43 2017";
        assert_eq!(parse_ctime(date), Some(1_502_979_283_000_000_000));
        let without_seconds = "Thu Aug 17 14:14 2017";
        assert_eq!(
            parse_ctime(without_seconds),
            Some(1_502_979_240_000_000_000)
        );
        assert_eq!(parse_ctime("Thu Jan  1 00:00:00 1970"), Some(0));
        assert_eq!(
            parse_ctime("Sat Feb 29 12:00:00 2020"),
            Some(1_582_977_600_000_000_000)
        );
        for text in [
            "",
            "yesterday",
            "Thu Aug 17 14 2017",
            "Thu Foo 17 14:14:43 2017",
        ] {
            assert_eq!(parse_ctime(text), None);
        }
    }
}
