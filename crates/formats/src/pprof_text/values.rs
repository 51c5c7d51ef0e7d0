//! Values as pprof prints them: bytes in powers of 1024 named kB, two digits behind the point, and
//! none when they are zero. Facts: `go tool pprof` of Go 1.26, asked with values around each step.

/// A unit that values are shown in.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Shown {
    /// The one that fits the value.
    Fitting,
    /// The same for all values of a report.
    Fixed(Step),
    /// None: the values count something.
    Bare,
}

/// A unit of a family: how it is written, and how many of the family's smallest it is.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Step {
    name: &'static str,
    size: f64,
}

/// Units that can be told in each other.
struct Family {
    steps: &'static [Step],
    /// What zero is told in, and all that is less than the smallest.
    base: Step,
}

const fn step(name: &'static str, size: f64) -> Step {
    Step { name, size }
}

const SECOND: Step = step("s", 1e9);

static BYTES: Family = Family {
    steps: &[
        step("B", 1.0),
        step("kB", 1024.0),
        step("MB", 1_048_576.0),
        step("GB", 1_073_741_824.0),
        step("TB", 1_099_511_627_776.0),
        step("PB", 1_125_899_906_842_624.0),
    ],
    base: step("B", 1.0),
};

static TIME: Family = Family {
    steps: &[
        step("ns", 1.0),
        step("us", 1e3),
        step("ms", 1e6),
        SECOND,
        step("hrs", 3.6e12),
    ],
    base: SECOND,
};

/// The family of a unit and how many of its smallest the unit is.
fn family(unit: &str) -> Option<(&'static Family, f64)> {
    let lower = unit.to_lowercase();
    let singular = match lower.strip_suffix('s') {
        Some(singular) if lower.len() > 2 => singular,
        _ => lower.as_str(),
    };
    let found = match singular {
        "b" | "byte" => (&BYTES, 1.0),
        "kb" | "kbyte" | "kilobyte" => (&BYTES, 1024.0),
        "mb" | "mbyte" | "megabyte" => (&BYTES, 1_048_576.0),
        "gb" | "gbyte" | "gigabyte" => (&BYTES, 1_073_741_824.0),
        "tb" | "tbyte" | "terabyte" => (&BYTES, 1_099_511_627_776.0),
        "pb" | "pbyte" | "petabyte" => (&BYTES, 1_125_899_906_842_624.0),
        "ns" | "nanosecond" => (&TIME, 1.0),
        "μs" | "us" | "microsecond" => (&TIME, 1e3),
        "ms" | "millisecond" => (&TIME, 1e6),
        "s" | "sec" | "second" => (&TIME, 1e9),
        "hour" | "hr" => (&TIME, 3.6e12),
        _ => return None,
    };
    Some(found)
}

/// Whether values of a unit are time, and how many nanoseconds this one is.
pub(super) fn nanoseconds(value: i64, unit: &str) -> Option<f64> {
    let (family, size) = family(unit)?;
    (family.base == SECOND).then_some(value as f64 * size)
}

/// The unit that fits a value.
fn fitting(value: i64, unit: &str) -> Shown {
    let Some((family, size)) = family(unit) else {
        return Shown::Bare;
    };
    let smallest = value.unsigned_abs() as f64 * size;
    let steps = family.steps.iter().rev();
    let step = steps.copied().find(|step| smallest >= step.size);
    Shown::Fixed(step.unwrap_or(family.base))
}

/// The one unit of a report in which the smallest of its values is at least 0.01, if the largest is
/// not of the same unit anyway. `smallest` and `largest` are magnitudes.
pub(super) fn common_unit(smallest: i64, largest: i64, unit: &str) -> Shown {
    let of_smallest = fitting(smallest, unit);
    let hundredfold = smallest.saturating_mul(100);
    if of_smallest != fitting(largest, unit) && hundredfold < largest {
        return fitting(hundredfold, unit);
    }
    of_smallest
}

/// A value with its unit.
pub(super) fn label(value: i64, unit: &str, shown: Shown) -> String {
    let shown = match shown {
        Shown::Fitting => fitting(value, unit),
        other => other,
    };
    let (number, name) = match (shown, family(unit)) {
        (Shown::Fixed(step), Some((_, size))) => (value as f64 * size / step.size, step.name),
        _ => (value as f64, ""),
    };
    let digits = format!("{number:.2}");
    let digits = digits.strip_suffix(".00").unwrap_or(&digits);
    if digits == "0" || digits == "-0" {
        return "0".to_owned();
    }
    format!("{digits}{name}")
}

/// A share, six characters wide as long as it is at least 0.01 %: two digits behind the point from 1 % on,
/// two digits in all below. The sign is left out.
pub(super) fn percentage(value: i64, total: i64) -> String {
    let percent = match total {
        0 => 0.0,
        _ => (value as f64 / total as f64).abs() * 100.0,
    };
    if (99.95..=100.05).contains(&percent) {
        return "  100%".to_owned();
    }
    if percent >= 1.0 {
        return format!("{percent:5.2}%");
    }
    format!("{:>5}%", two_digits(percent))
}

/// A number from 0 to 1 with two significant digits, without zeros at its end; tiny ones with
/// an exponent.
fn two_digits(number: f64) -> String {
    if number == 0.0 {
        return "0".to_owned();
    }
    let scientific = format!("{number:.1e}");
    let Some((digits, exponent)) = scientific.split_once('e') else {
        return scientific;
    };
    let exponent: i32 = exponent.parse().unwrap_or(0);
    if exponent < -4 {
        let digits = digits.strip_suffix(".0").unwrap_or(digits);
        return format!("{digits}e-{:02}", exponent.unsigned_abs());
    }
    let decimals = usize::try_from(1 - exponent).unwrap_or(0);
    let fixed = format!("{number:.decimals$}");
    fixed.trim_end_matches('0').trim_end_matches('.').to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_as_pprof_prints_them() {
        let cases = [
            (0, "nanoseconds", "0"),
            (999, "nanoseconds", "999ns"),
            (17_020, "nanoseconds", "17.02us"),
            (3_000_000_000, "nanoseconds", "3s"),
            (7_200_000_000_000, "nanoseconds", "2hrs"),
            (-1_500, "bytes", "-1.46kB"),
            (110, "count", "110"),
            (110, "cards", "110"),
            (90, "seconds", "90s"),
            (2, "s", "2s"),
        ];
        for (value, unit, text) in cases {
            assert_eq!(label(value, unit, Shown::Fitting), text);
        }
        let milliseconds = common_unit(20_000, 100_000_000, "nanoseconds");
        assert_eq!(label(17_020, "nanoseconds", milliseconds), "0.02ms");
        let same = common_unit(2, 100, "count");
        assert_eq!(label(17, "count", same), "17");
    }

    #[test]
    fn shares_as_pprof_prints_them() {
        let cases = [
            (0, 7, "    0%"),
            (1, 1, "  100%"),
            (-1, 2, "50.00%"),
            (1, 20, " 5.00%"),
            (4, 1000, "  0.4%"),
            (17, 100_000, "0.017%"),
            (45, 10_000_000, "0.00045%"),
            (46, 1_000_000_000, "4.6e-06%"),
            (40, 1_000_000_000, "4e-06%"),
            (9_996, 1_000_000, "    1%"),
            (300, 100, "300.00%"),
            (3, 0, "    0%"),
        ];
        for (value, total, text) in cases {
            assert_eq!(percentage(value, total), text, "{value} of {total}");
        }
    }
}
