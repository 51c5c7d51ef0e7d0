//! What tests of several crates share: figures with their bounds.
#![forbid(unsafe_code)]

use std::fmt::Display;
use std::ops::Bound;
use std::ops::RangeBounds;

/// How the line of a figure begins; `cargo xtask acceptance` lists these lines.
pub const FIGURE: &str = "measured: ";

/// Prints a figure with its bound.
///
/// # Panics
///
/// If the figure is not within the bound; `details` say what it is of.
#[track_caller]
#[expect(clippy::print_stdout, reason = "nextest reports what a test prints")]
pub fn expect_within(what: &str, figure: f64, bound: impl RangeBounds<f64>, details: impl Display) {
    let line = format!("{what}: {} ({})", rounded(figure), in_words(&bound));
    println!("{FIGURE}{line}");
    assert!(bound.contains(&figure), "{line}; {details}");
}

/// The bound of what must be above `least`.
pub fn more_than(least: f64) -> (Bound<f64>, Bound<f64>) {
    (Bound::Excluded(least), Bound::Unbounded)
}

/// Whole numbers as they are, others to four digits.
fn rounded(figure: f64) -> String {
    if figure.fract() == 0.0 {
        return figure.to_string();
    }
    let digits_before = figure.abs().log10().floor().clamp(-3.0, 3.0) as i32 + 1;
    let digits_after = usize::try_from(4 - digits_before).unwrap_or_default();
    format!("{figure:.digits_after$}")
}

fn in_words(bound: &impl RangeBounds<f64>) -> String {
    let least = match bound.start_bound() {
        Bound::Included(least) => Some(format!("at least {}", rounded(*least))),
        Bound::Excluded(least) => Some(format!("more than {}", rounded(*least))),
        Bound::Unbounded => None,
    };
    let most = match bound.end_bound() {
        Bound::Included(most) => Some(format!("at most {}", rounded(*most))),
        Bound::Excluded(most) => Some(format!("less than {}", rounded(*most))),
        Bound::Unbounded => None,
    };
    let ends: Vec<String> = least.into_iter().chain(most).collect();
    ends.join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_and_bounds_are_short() {
        let figures = [
            0.0,
            1_234_567.0,
            0.998_765,
            12.345_678,
            123_456.7,
            -0.000_123_4,
        ];
        let texts = figures.map(rounded);
        let wanted = ["0", "1234567", "0.9988", "12.35", "123457", "-0.000123"];
        assert_eq!(texts, wanted);
        assert_eq!(in_words(&(0.98..1.02)), "at least 0.9800, less than 1.020");
        assert_eq!(in_words(&(..=15.0)), "at most 15");
        assert_eq!(in_words(&more_than(2.0)), "more than 2");
    }

    #[test]
    fn a_figure_on_its_bound_passes() {
        expect_within("seconds", 15.0, ..=15.0, "");
    }

    #[test]
    #[should_panic(expected = "seconds: 15.10 (at most 15); of the first")]
    fn a_figure_outside_of_its_bound_panics_with_details() {
        expect_within("seconds", 15.1, ..=15.0, "of the first");
    }

    #[test]
    #[should_panic(expected = "share: NaN (at least 0)")]
    fn what_is_no_number_is_within_nothing() {
        expect_within("share", f64::NAN, 0.0.., "");
    }
}
