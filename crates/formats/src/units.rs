//! Values as people read them.

/// Units of time by what they are in nanoseconds, largest first.
const TIME_STEPS: [(i64, &str); 6] = [
    (3_600_000_000_000, "h"),
    (60_000_000_000, "min"),
    (1_000_000_000, "s"),
    (1_000_000, "ms"),
    (1_000, "µs"),
    (1, "ns"),
];

const BYTE_STEPS: [(i64, &str); 6] = [
    (1 << 50, "PiB"),
    (1 << 40, "TiB"),
    (1 << 30, "GiB"),
    (1 << 20, "MiB"),
    (1 << 10, "KiB"),
    (1, "B"),
];

/// A value of a profile with its unit: nanoseconds become `1.50s`, bytes `2.00MiB`, counts stay
/// whole numbers, and any other unit is written behind the number.
///
/// ```
/// assert_eq!(candela_formats::format_value(1_500_000_000, "nanoseconds"), "1.50s");
/// assert_eq!(candela_formats::format_value(2 << 20, "bytes"), "2.00MiB");
/// assert_eq!(candela_formats::format_value(12, "count"), "12");
/// ```
#[must_use]
pub fn format_value(value: i64, unit: &str) -> String {
    if let Some(nanoseconds) = nanoseconds_per(unit) {
        return stepped(value, nanoseconds, &TIME_STEPS);
    }
    match unit {
        "bytes" | "byte" | "By" | "b" => stepped(value, 1, &BYTE_STEPS),
        "kilobytes" | "kilobyte" | "kb" => stepped(value, 1 << 10, &BYTE_STEPS),
        "megabytes" | "megabyte" | "mb" => stepped(value, 1 << 20, &BYTE_STEPS),
        "count" | "objects" | "samples" | "" | "1" => value.to_string(),
        other => format!("{value} {other}"),
    }
}

/// A share of a total as `12.34%`; `0%` of an empty total.
#[must_use]
pub fn format_share(value: i64, total: i64) -> String {
    if total == 0 {
        return "0%".to_owned();
    }
    let percent = 100.0 * value as f64 / total as f64;
    format!("{percent:.2}%")
}

fn nanoseconds_per(unit: &str) -> Option<i64> {
    let nanoseconds = match unit {
        "nanoseconds" | "nanosecond" | "ns" => 1,
        "microseconds" | "microsecond" | "us" | "µs" => 1_000,
        "milliseconds" | "millisecond" | "ms" => 1_000_000,
        "seconds" | "second" | "s" => 1_000_000_000,
        _ => return None,
    };
    Some(nanoseconds)
}

fn stepped(value: i64, scale: i64, steps: &[(i64, &str)]) -> String {
    // 128 bits: seconds near the limits of 64 bits are no nanoseconds of 64 bits.
    let scaled = i128::from(value) * i128::from(scale);
    let (size, name) = steps
        .iter()
        .find(|(size, _)| scaled.unsigned_abs() >= size.unsigned_abs().into())
        .or(steps.last())
        .copied()
        .unwrap_or((1, ""));
    if size == 1 {
        return format!("{scaled}{name}");
    }
    format!("{:.2}{name}", scaled as f64 / size as f64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_get_the_unit_that_fits() {
        let cases = [
            (0, "nanoseconds", "0ns"),
            (999, "nanoseconds", "999ns"),
            (1_500, "nanoseconds", "1.50µs"),
            (-2_500_000, "nanoseconds", "-2.50ms"),
            (90, "seconds", "1.50min"),
            (7_200_000, "milliseconds", "2.00h"),
            (1023, "bytes", "1023B"),
            (1536, "bytes", "1.50KiB"),
            (i64::MAX, "bytes", "8192.00PiB"),
            (i64::MIN, "seconds", "-2562047788015215.50h"),
            (12_345, "count", "12345"),
            (3, "cards", "3 cards"),
        ];
        for (value, unit, text) in cases {
            assert_eq!(format_value(value, unit), text);
        }
    }

    #[test]
    fn shares_of_nothing_are_nothing() {
        assert_eq!(format_share(1, 3), "33.33%");
        assert_eq!(format_share(0, 0), "0%");
    }
}
