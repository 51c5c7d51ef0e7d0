//! What clients send.

use candela_formats::FoldedOptions;
use candela_formats::JfrOptions;
use candela_formats::Limits;
use candela_formats::OtlpOptions;
use candela_formats::PprofOptions;
use candela_formats::ReadOptions;
use candela_formats::decode_otlp_bytes;
use candela_formats::encode_otlp_bytes;
use candela_formats::read_folded;
use candela_formats::read_jfr;
use candela_formats::read_pprof;
use candela_formats::write_folded;
use candela_formats::write_pprof;
use candela_model::FlameTreeBuilder;
use candela_model::Profile;

use crate::jfr_recording::Shape;
use crate::jfr_recording::datadog;
use crate::jfr_recording::labels_snapshot;
use crate::jfr_recording::recording;
use crate::jfr_recording::recording_of_rare_events;
use crate::jfr_recording::recording_of_settings;
use crate::store::example_profile;

/// Small enough that an input which reaches a limit is quick.
pub(crate) fn options() -> ReadOptions {
    ReadOptions {
        limits: Limits {
            max_inflated_bytes: 1 << 20,
            max_samples: 10_000,
            ..Limits::default()
        },
        now_ns: 1_732_190_400_000_000_000,
        ..ReadOptions::default()
    }
}

/// The sum of all samples.
pub(crate) fn total(profile: &Profile) -> i128 {
    let samples = profile.series.iter().flat_map(|series| &series.samples);
    samples.map(|sample| i128::from(sample.value)).sum()
}

/// What was read is valid; written and read again it has the same sums, where no sum overflows.
pub(crate) fn pprof(bytes: &[u8]) {
    let Ok((profile, _)) = read_pprof(bytes, &options()) else {
        return;
    };
    check_valid(&profile);
    let mut written = Vec::new();
    let plain = PprofOptions {
        compress: false,
        ..PprofOptions::default()
    };
    // A profile without series cannot be written.
    if write_pprof(&profile, &mut written, &plain).is_ok() && !may_overflow(&profile) {
        let again = read_pprof(&written[..], &options());
        let (again, _) = again.expect("what we write can be read");
        check_valid(&again);
        assert_eq!(total(&again), total(&profile));
    }
}

pub(crate) fn pprof_seeds() -> Vec<Vec<u8>> {
    let mut seeds = Vec::new();
    for compress in [false, true] {
        let mut written = Vec::new();
        let options = PprofOptions {
            compress,
            ..PprofOptions::default()
        };
        write_pprof(&example_profile(), &mut written, &options).expect("a sound profile");
        seeds.push(written);
    }
    seeds
}

/// What was read is valid; encoded and decoded again it has the same sums.
pub(crate) fn otlp(bytes: &[u8]) {
    let Ok((profile, _)) = decode_otlp_bytes(bytes, &options()) else {
        return;
    };
    check_valid(&profile);
    if profile.series.is_empty() || may_overflow(&profile) {
        return;
    }
    let written = encode_otlp_bytes(&profile, &OtlpOptions::default());
    let (again, _) = decode_otlp_bytes(&written, &options()).expect("what we write can be read");
    check_valid(&again);
    assert_eq!(total(&again), total(&profile));
}

pub(crate) fn otlp_seeds() -> Vec<Vec<u8>> {
    vec![encode_otlp_bytes(
        &example_profile(),
        &OtlpOptions::default(),
    )]
}

/// What was read is valid, and written and read again has the same sum.
pub(crate) fn folded(bytes: &[u8]) {
    let Ok((profile, _)) = read_folded(bytes, &options()) else {
        return;
    };
    check_valid(&profile);
    let mut written = Vec::new();
    if profile.series.len() != 1 || may_overflow(&profile) {
        return;
    }
    let mut builder = FlameTreeBuilder::new();
    builder.add_series(&profile, 0);
    let tree = builder.finish();
    write_folded(&tree, &mut written, &FoldedOptions::default()).expect("memory takes it");
    if tree.root_total() == 0 {
        return;
    }
    let (again, _) = read_folded(&written[..], &options()).expect("what we write can be read");
    assert_eq!(total(&again), i128::from(tree.root_total()));
}

pub(crate) fn folded_seeds() -> Vec<Vec<u8>> {
    let texts = [
        "main;read;parse 3\nmain;read 4\nmain;walk;walk;walk 5\n",
        "a b;c d_[k];[unknown] 1\r\n\n# comment\nswapper 18446744073709551615\n",
        "one;two 1 2\nx;;y 3\n;; 9\n",
    ];
    texts.map(|text| text.as_bytes().to_vec()).to_vec()
}

/// What was read is valid; without times it has the same sums. The first byte says how long the
/// labels snapshot is that comes before the recording.
pub(crate) fn jfr(bytes: &[u8]) {
    let Some((&length, rest)) = bytes.split_first() else {
        return;
    };
    let (snapshot, recording) = rest.split_at(usize::from(length).min(rest.len()));
    let with_times = JfrOptions {
        labels_snapshot: snapshot.to_vec(),
        ..JfrOptions::default()
    };
    let Ok((profile, _)) = read_jfr(recording, &with_times, &options()) else {
        return;
    };
    check_valid(&profile);
    let without_times = JfrOptions {
        drop_times: true,
        ..with_times
    };
    let (merged, _) = read_jfr(recording, &without_times, &options()).expect("fewer rows");
    check_valid(&merged);
    if !may_overflow(&profile) {
        assert_eq!(total(&merged), total(&profile));
    }
}

pub(crate) fn jfr_seeds() -> Vec<Vec<u8>> {
    let mut seeds = Vec::new();
    for is_compressed in [true, false] {
        for is_finished in [true, false] {
            let mut seed = vec![labels_snapshot().len() as u8];
            seed.extend(labels_snapshot());
            seed.extend(recording(Shape {
                is_compressed,
                is_finished,
                ..Shape::default()
            }));
            seeds.push(seed);
        }
    }
    let mut settings = vec![0];
    settings.extend(recording_of_settings(3, 100));
    seeds.push(settings);
    let mut rare = vec![0];
    rare.extend(recording_of_rare_events());
    seeds.push(rare);
    let mut events_of_datadog = vec![0];
    events_of_datadog.extend(datadog::recording(Shape::default()));
    seeds.push(events_of_datadog);
    seeds
}

pub(crate) fn check_valid(profile: &Profile) {
    if let Err(error) = profile.validate() {
        panic!("a reader gave an invalid profile: {error}");
    }
}

/// Equal stacks are added up when a profile is written; sums that do not fit are cut.
pub(crate) fn may_overflow(profile: &Profile) -> bool {
    let values = profile.series.iter().flat_map(|series| &series.samples);
    let sum: u128 = values
        .map(|sample| u128::from(sample.value.unsigned_abs()))
        .sum();
    sum > i64::MAX as u128
}
