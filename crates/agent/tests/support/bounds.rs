//! How near to the truth a recording must come.

use candela_agent::RecordReport;

use crate::support::stacks_given_up;
use crate::support::three_standard_errors;

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

    /// Whether so many complete stacks are enough. On a busy host the agent may give some up, which it counts.
    pub(crate) fn are_complete(self, complete: u64, all: u64, report: &RecordReport) -> bool {
        match self {
            Self::Wide => {
                let given_up = stacks_given_up(report).min(all / 2);
                (complete + given_up) as f64 >= 0.9 * all as f64
            }
            Self::Sharp => complete as f64 >= 0.995 * all as f64,
        }
    }

    /// Checks the samples of functions that burn 50, 30 and 20 % of a program's CPU time.
    #[track_caller]
    pub(crate) fn assert_shares(self, samples: [(&str, u64); 3], least: u64) {
        let burned: u64 = samples.iter().map(|(_, count)| count).sum();
        assert!(burned > least, "{samples:?}");
        for ((function, count), share) in samples.into_iter().zip([0.5, 0.3, 0.2]) {
            let measured = count as f64 / burned as f64;
            let tolerance = match self {
                Self::Wide => share / 2.0,
                Self::Sharp => three_standard_errors(share, burned),
            };
            assert!(
                (measured - share).abs() <= tolerance,
                "{function}: {measured:.3} instead of {share} ± {tolerance:.3} ({burned} samples)"
            );
        }
    }
}
