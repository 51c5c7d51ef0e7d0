//! How near to the truth a recording must come.

use std::fmt::Display;

use candela_agent::RecordReport;
use candela_testing::expect_within;
use candela_testing::more_than;

use crate::support::stacks_given_up;
use crate::support::three_standard_errors;

/// Target A5 of all stacks of a recording.
#[track_caller]
pub(crate) fn expect_complete_recording(report: &RecordReport) {
    let share = report.quality.complete_share();
    let what = "share of complete stacks of the recording";
    expect_within(what, share, 0.995.., format_args!("{report:?}"));
}

/// What is asked of the stacks and shares of a program, and of how much CPU time.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Bounds {
    /// What neither chance nor a busy host can break, of a program that ends soon.
    Wide,
    /// Targets A5 and A7, on a quiet host.
    Sharp,
}

impl Bounds {
    pub(crate) fn choose<T>(self, wide: T, sharp: T) -> T {
        match self {
            Self::Wide => wide,
            Self::Sharp => sharp,
        }
    }

    /// Checks that so many of all stacks are complete. On a busy host the agent may give some up, which it counts.
    #[track_caller]
    pub(crate) fn expect_complete(
        self,
        what: &str,
        complete: u64,
        all: u64,
        report: &RecordReport,
        sketch: impl Display,
    ) {
        let (enough, least) = match self {
            Self::Wide => (complete + stacks_given_up(report).min(all / 2), 0.9),
            Self::Sharp => (complete, 0.995),
        };
        let share = enough as f64 / all as f64;
        let details = format_args!("{complete} of {all}; {report:?}\n{sketch}");
        expect_within(what, share, least.., details);
    }

    /// Checks the samples of functions that burn 50, 30 and 20 % of a program's CPU time.
    #[track_caller]
    pub(crate) fn assert_shares(self, samples: [(&str, u64); 3], least: u64) {
        let burned: u64 = samples.iter().map(|(_, count)| count).sum();
        let enough = more_than(least as f64);
        expect_within(
            "samples",
            burned as f64,
            enough,
            format_args!("{samples:?}"),
        );
        for ((function, count), share) in samples.into_iter().zip([0.5, 0.3, 0.2]) {
            let measured = count as f64 / burned as f64;
            let tolerance = match self {
                Self::Wide => share / 2.0,
                Self::Sharp => three_standard_errors(share, burned),
            };
            let what = format!("share of {function}");
            expect_within(
                &what,
                measured,
                share - tolerance..=share + tolerance,
                burned,
            );
        }
    }
}
