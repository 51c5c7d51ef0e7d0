//! From when to when a profile is.

use candela_model::Profile;
use candela_store::TimeRange;

const NANOSECONDS_PER_MILLISECOND: i64 = 1_000_000;

/// From the first start to the last end, in whole milliseconds as answers have them, so that a question for it
/// finds all of the profile: what starts at that end is in it, too.
pub(crate) fn range_of(profile: &Profile) -> TimeRange {
    let starts = profile.series.iter().map(|series| series.start_ns);
    let ends = profile
        .series
        .iter()
        .map(|series| series.start_ns.saturating_add(series.duration_ns));
    let from_ns = starts.clone().min().unwrap_or(0);
    let last_start_ns = starts.max().unwrap_or(0);
    let end_ns = ends.max().unwrap_or(0).max(last_start_ns);
    TimeRange {
        from_ns: whole_milliseconds(from_ns),
        to_ns: whole_milliseconds(end_ns).saturating_add(NANOSECONDS_PER_MILLISECOND),
    }
}

fn whole_milliseconds(time_ns: i64) -> i64 {
    time_ns.saturating_sub(time_ns.rem_euclid(NANOSECONDS_PER_MILLISECOND))
}

#[cfg(test)]
mod tests {
    use candela_model::Labels;
    use candela_model::ProfileSeries;
    use candela_model::ProfileType;

    use super::*;

    #[test]
    fn the_range_has_the_last_profile() {
        let series = |start_ns, duration_ns| ProfileSeries {
            start_ns,
            duration_ns,
            ..ProfileSeries::new(Labels::default(), ProfileType::on_cpu())
        };
        let mut profile = Profile::default();
        assert_eq!(range_of(&profile).from_ns, 0);
        profile.series = vec![series(5_000_000_999, 10), series(7_000_000_999, 0)];
        let range = range_of(&profile);
        assert_eq!(range.from_ns, 5_000_000_000);
        assert!(range.contains(7_000_000_999));
        assert_eq!(range.to_ns, 7_001_000_000);
    }
}
