//! A profile as pprof: how many samples, and the CPU time that they stand for.

use candela_formats::PprofOptions;
use candela_formats::WriteError;
use candela_formats::count_samples;
use candela_formats::write_pprof;
use candela_model::Profile;

/// pprof of CPU time (nanoseconds, each series with its period), with the samples counted beside it.
///
/// # Errors
/// When the profile is not valid.
pub(crate) fn encode(mut profile: Profile, archive: bool) -> Result<Vec<u8>, WriteError> {
    count_samples(&mut profile);
    let options = PprofOptions {
        compress: archive,
        default_sample_type: Some("cpu".to_owned()),
        ..PprofOptions::default()
    };
    let mut bytes = Vec::new();
    write_pprof(&profile, &mut bytes, &options)?;
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use candela_formats::ReadOptions;
    use candela_formats::read_pprof;
    use candela_model::Labels;
    use candela_model::ProfileSeries;
    use candela_model::ProfileType;
    use candela_model::Sample;
    use candela_model::StackId;

    use super::*;

    fn profile() -> Profile {
        let cpu = ProfileType::new("process_cpu", "cpu", "nanoseconds", "cpu", "nanoseconds");
        let mut series = ProfileSeries::new(Labels::default(), cpu);
        series.start_ns = 5_000_000_000;
        series.duration_ns = 1_000_000_000;
        series.period = 10_000_000;
        for value in [10_000_000, 30_000_000] {
            series.samples.push(Sample::new(StackId::default(), value));
        }
        let mut profile = Profile::default();
        profile.series.push(series);
        profile
    }

    #[test]
    fn samples_are_counted_beside_their_time() {
        let bytes = encode(profile(), false).expect("valid");
        let (read, _) = read_pprof(bytes.as_slice(), &ReadOptions::default()).expect("a profile");
        let found: Vec<(&str, i64, i64)> = read
            .series
            .iter()
            .map(|it| (&*it.profile_type.sample_type, it.total(), it.period))
            .collect();
        let expected = [("samples", 4, 10_000_000), ("cpu", 40_000_000, 10_000_000)];
        assert_eq!(found, expected);
        assert_eq!(read.series[0].duration_ns, 1_000_000_000);
        assert_eq!(read.series[0].start_ns, 5_000_000_000);
    }

    #[test]
    fn only_archives_are_compressed() {
        let gzip = [0x1f, 0x8b];
        assert!(encode(profile(), true).expect("valid").starts_with(&gzip));
        assert!(!encode(profile(), false).expect("valid").starts_with(&gzip));
    }
}
