//! How many samples a CPU profile has, beside the time that they stand for.

use candela_model::Profile;
use candela_model::ProfileSeries;
use candela_model::ProfileType;

/// Puts `samples/count` before the CPU time of a profile, as the CPU profiles of Go and of everybody since have
/// it: the value over the period of its series, at least one. A profile that has counts already stays as it is,
/// and so does one of which any series has no period: a part of the counts would pass for all of them.
pub fn count_samples(profile: &mut Profile) {
    let is_named = |series: &ProfileSeries, name: &str| series.profile_type.sample_type == name;
    let is_time = |series: &&ProfileSeries| is_cpu(series) && is_named(series, "cpu");
    let has_counts = profile
        .series
        .iter()
        .any(|series| is_cpu(series) && is_named(series, "samples"));
    let lacks_period = profile
        .series
        .iter()
        .filter(is_time)
        .any(|it| it.period < 2);
    if has_counts || lacks_period {
        return;
    }
    let counts: Vec<ProfileSeries> = profile.series.iter().filter(is_time).map(counted).collect();
    profile.series.splice(0..0, counts);
}

fn is_cpu(series: &ProfileSeries) -> bool {
    series.profile_type.name == "process_cpu"
}

/// The same samples with 1 instead of a period.
fn counted(series: &ProfileSeries) -> ProfileSeries {
    let mut counted = ProfileSeries {
        profile_type: ProfileType::new("process_cpu", "samples", "count", "cpu", "nanoseconds"),
        ..series.clone()
    };
    for sample in &mut counted.samples {
        sample.value = (sample.value / series.period).max(1);
    }
    counted
}

#[cfg(test)]
mod tests {
    use candela_model::Labels;
    use candela_model::Sample;
    use candela_model::StackId;

    use super::*;

    fn cpu(period: i64, values: &[i64]) -> Profile {
        let cpu = ProfileType::new("process_cpu", "cpu", "nanoseconds", "cpu", "nanoseconds");
        let mut series = ProfileSeries::new(Labels::default(), cpu);
        series.period = period;
        let samples = values
            .iter()
            .map(|&value| Sample::new(StackId::default(), value));
        series.samples = samples.collect();
        let mut profile = Profile::default();
        profile.series.push(series);
        profile
    }

    #[test]
    fn counts_stand_before_the_time() {
        let mut profile = cpu(10_000_000, &[10_000_000, 30_000_000]);
        count_samples(&mut profile);
        let [counts, time] = &profile.series[..] else {
            panic!("two series: {:?}", profile.series);
        };
        assert_eq!(counts.profile_type.sample_type, "samples");
        assert_eq!((counts.total(), time.total()), (4, 40_000_000));
        let once = profile.clone();
        count_samples(&mut profile);
        assert_eq!(profile.series.len(), once.series.len(), "they are there");
    }

    #[test]
    fn without_a_period_nothing_is_counted() {
        let mut profile = cpu(0, &[30_000_000]);
        profile.series.extend(cpu(10_000_000, &[10_000_000]).series);
        count_samples(&mut profile);
        assert_eq!(profile.series.len(), 2);
        let growth = ProfileType::new("memory_growth", "growth", "bytes", "growth", "bytes");
        let mut other = Profile::default();
        other
            .series
            .push(ProfileSeries::new(Labels::default(), growth));
        count_samples(&mut other);
        assert_eq!(other.series.len(), 1);
    }
}
