//! Profiles that stay empty because the program does not sample for them.

use candela_model::Profile;

use crate::scrape::profiles::ProfileReading;
use crate::scrape::profiles::ScrapedProfile;

/// Empty answers in a row after which somebody should hear of it.
const SOME_ANSWERS: u32 = 4;

/// Counts the answers of a profile that had nothing in them since the program's start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Silence {
    answers: u32,
}

// === impl Silence ===

impl Silence {
    /// Notes an answer as it came, before anything was subtracted; whether the profile has fallen silent by it, or is
    /// not any more.
    pub(crate) fn heard(&mut self, profile: &Profile) -> bool {
        let before = self.is_long();
        self.answers = match profile.sample_count() {
            0 => self.answers.saturating_add(1),
            _ => 0,
        };
        before != self.is_long()
    }

    /// Why the answers are empty; none where they are few, or have no usual cause.
    pub(crate) fn cause(self, profile: &ScrapedProfile) -> Option<&'static str> {
        // What was added since the answer before may well be nothing.
        if !self.is_long() || profile.reading != ProfileReading::Cumulative {
            return None;
        }
        let hint = HINTS.iter().find(|(kind, _)| *kind == profile.kind);
        hint.map(|(_, hint)| *hint)
    }

    const fn is_long(self) -> bool {
        self.answers >= SOME_ANSWERS
    }
}

/// Kinds for which Go programs sample only when they are told to.
const HINTS: [(&str, &str); 2] = [
    (
        "block",
        "runtime.SetBlockProfileRate is 0 in the program, unless none of its goroutines ever had to wait: call it, or turn the profile off",
    ),
    (
        "mutex",
        "runtime.SetMutexProfileFraction is 0 in the program, unless none of its goroutines ever waited for a lock: call it, or turn the profile off",
    ),
];

#[cfg(test)]
mod tests {
    use candela_model::Labels;
    use candela_model::ProfileSeries;
    use candela_model::ProfileType;
    use candela_model::Sample;
    use candela_model::StackId;

    use super::*;
    use crate::scrape::profiles::default_profiles;

    fn kind(name: &str) -> ScrapedProfile {
        let mut profiles = default_profiles().into_iter();
        let found = profiles.find(|profile| profile.kind == name);
        found.expect("a kind that is known")
    }

    #[test]
    fn totals_that_stay_empty_have_a_cause() {
        let mut silence = Silence::default();
        let empty = Profile::default();
        let turns: Vec<bool> = (0..5).map(|_| silence.heard(&empty)).collect();
        assert_eq!(turns, [false, false, false, true, false]);
        let hint = silence.cause(&kind("mutex")).expect("a usual cause");
        assert!(hint.contains("SetMutexProfileFraction"), "{hint}");
        let hint = silence.cause(&kind("block")).expect("a usual cause");
        assert!(hint.contains("SetBlockProfileRate"), "{hint}");
        for other in ["memory", "godeltaprof_mutex", "process_cpu"] {
            assert_eq!(silence.cause(&kind(other)), None, "{other}");
        }

        let profile_type =
            ProfileType::new("mutex", "contentions", "count", "contentions", "count");
        let mut series = ProfileSeries::new(Labels::default(), profile_type);
        series.samples.push(Sample::new(StackId::default(), 1));
        let mut heard = Profile::default();
        heard.series.push(series);
        assert!(silence.heard(&heard));
        assert_eq!(silence.cause(&kind("mutex")), None);
        assert!(!silence.heard(&empty), "it was heard of a moment ago");
    }
}
