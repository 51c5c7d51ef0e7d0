//! Reading and writing the text of `perf script` in tests.

use candela_formats::ReadOptions;
use candela_formats::Report;
use candela_formats::read_perf_script;
use candela_formats::write_perf_script;
use candela_model::Profile;

pub(crate) fn read(text: &[u8]) -> (Profile, Report) {
    let (profile, report) = read_perf_script(text, &ReadOptions::default()).unwrap();
    assert_eq!(profile.validate(), Ok(()));
    (profile, report)
}

pub(crate) fn written(profile: &Profile) -> Vec<u8> {
    let mut bytes = Vec::new();
    write_perf_script(profile, &mut bytes).unwrap();
    bytes
}

pub(crate) fn types(profile: &Profile) -> Vec<String> {
    let series = profile.series.iter();
    series
        .map(|series| series.profile_type.to_string())
        .collect()
}
