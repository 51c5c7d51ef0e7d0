//! Pushed profiles as servers mend them.

use crate::common::content;
use crate::common::folded_lines;
use crate::common::real_files;
use candela_formats::Limits;
use candela_formats::NormalizeOptions;
use candela_formats::ReadOptions;
use candela_formats::Report;
use candela_formats::normalize;
use candela_formats::read_pprof;
use candela_model::FrameKind;
use candela_model::Labels;
use candela_model::Link;
use candela_model::Location;
use candela_model::Mapping;
use candela_model::Profile;
use candela_model::ProfileSeries;
use candela_model::Sample;
use candela_model::SampleLabel;
use proptest::prelude::*;

/// Stacks of `name@file`, root first, each with a label, a link and a mapping of its own.
fn profile(id: &str, stacks: &[(&str, i64)]) -> Profile {
    let mut profile = Profile::default();
    let mut series = ProfileSeries::new(Labels::from_pairs([("host", "h")]), id.parse().unwrap());
    for (position, (stack, value)) in stacks.iter().enumerate() {
        let mut leaf_first = Vec::new();
        for frame in stack.split(';').rev() {
            let (name, file) = frame.split_once('@').unwrap_or((frame, ""));
            let symbols = &mut profile.symbols;
            let function = symbols.intern_function(name, "", file, 3);
            let file = symbols.strings.intern("/usr/bin/app");
            let build_id = symbols.strings.intern("beef");
            let mapping = symbols.intern_mapping(Mapping {
                memory_start: 4096,
                file,
                build_id,
                ..Mapping::default()
            });
            let location = Location::new(FrameKind::Unknown, 0x1000).in_mapping(mapping);
            leaf_first.push(symbols.intern_location(&location, &[(function, 7, 1)]));
        }
        let strings = &mut profile.symbols.strings;
        let label = SampleLabel::text(strings.intern("thread_name"), strings.intern("t"));
        let link = Link {
            span_id: [position as u8 + 1; 8],
            ..Link::default()
        };
        series.samples.push(Sample {
            stack: profile.stacks.intern(&leaf_first),
            value: *value,
            label_set: profile.label_sets.intern(vec![label]),
            link: profile.intern_link(link),
            time_ns: 9,
        });
    }
    profile.series.push(series);
    profile
}

fn lines(profile: Profile, spy: &str) -> (Vec<String>, Report) {
    let options = NormalizeOptions {
        spy: spy.to_owned(),
        ..NormalizeOptions::default()
    };
    let mut report = Report::default();
    let normalized = normalize(profile, &options, &mut report);
    assert_eq!(normalized.validate(), Ok(()));
    (folded_lines(&normalized), report)
}

#[test]
fn functions_of_go_lose_their_type_parameters() {
    let stacks = [
        ("main.main@/src/main.go;main.Map[...]@/src/map.go", 2),
        (
            "main.main@/src/main.go;main.Map[go.shape.int]@/src/map.go",
            3,
        ),
    ];
    let (found, report) = lines(
        profile("process_cpu:cpu:nanoseconds:cpu:nanoseconds", &stacks),
        "gospy",
    );
    let head = "{host=\"h\"} process_cpu:cpu:nanoseconds:cpu:nanoseconds [thread_name=t]";
    let expected = [2, 3].map(|value| format!("{head} main.main;main.Map {value}"));
    assert_eq!(found, expected);
    assert_eq!(report.count("functions_renamed"), 2);
    // Brackets mean something else in other languages.
    let (found, _) = lines(profile("a:b:c:d:e", &[("operator[]@x.cc", 1)]), "");
    assert_eq!(
        found,
        ["{host=\"h\"} a:b:c:d:e [thread_name=t] operator[] 1"]
    );
}

#[test]
fn scripts_stand_in_front_of_their_functions() {
    for spy in ["pyspy", "rbspy", "scripting"] {
        let (found, _) = lines(profile("a:b:c:d:e", &[("run@app/main.py", 1)]), spy);
        assert_eq!(
            found,
            ["{host=\"h\"} a:b:c:d:e [thread_name=t] app/main.py run 1"]
        );
    }
    let (found, _) = lines(profile("a:b:c:d:e", &[("run@app/main.py", 1)]), "");
    assert_eq!(found, ["{host=\"h\"} a:b:c:d:e [thread_name=t] run 1"]);
}

/// As many functions as a sender likes have one long path for their file.
#[test]
fn names_in_all_are_bounded() {
    const FUNCTIONS: usize = 1000;
    const RENAMED: usize = 3;
    let file = "d/".repeat(2000);
    let frames: Vec<String> = (0..FUNCTIONS)
        .map(|function| format!("run_{function:04}@{file}"))
        .collect();
    let before = profile("a:b:c:d:e", &[(&frames.join(";"), 1)]);
    let text_bytes = before.symbols.strings.text_bytes();
    let name_bytes = file.len() + " run_0000".len();
    let bound = RENAMED * name_bytes + name_bytes / 2;
    let (copied, copied_report) = normalized_within(bound, with_unused_stack(&before));
    let (renamed, report) = normalized_within(bound, before);

    assert_eq!(report.count("functions_renamed"), RENAMED as u64);
    let kept = (FUNCTIONS - RENAMED) as u64;
    assert_eq!(report.count("functions_not_renamed"), kept);
    for normalized in [&renamed, &copied] {
        let grown = normalized.symbols.strings.text_bytes();
        assert!(grown <= text_bytes + bound, "{text_bytes} became {grown}");
    }
    assert_eq!(copied_report.notes, report.notes);
    assert_eq!(content(&copied), content(&renamed));
}

#[test]
fn what_no_sample_refers_to_changes_neither_names_nor_notes() {
    let stacks = [("main@app.py;run@jobs.py", 2), ("main@app.py;stop", 3)];
    let used = profile("a:b:c:d:e", &stacks);
    for bound in [0, 12, 24, 1000] {
        let (copied, copied_report) = normalized_within(bound, with_unused_stack(&used));
        let (renamed, report) = normalized_within(bound, used.clone());
        assert_eq!(copied_report.notes, report.notes, "{bound}");
        assert_eq!(content(&copied), content(&renamed), "{bound}");
        assert!(copied.symbols.strings.find("unused").is_none());
        let told = ["functions_renamed", "functions_not_renamed"].map(|code| report.count(code));
        assert_eq!(told.iter().sum::<u64>(), 2, "{bound}: {told:?}");
    }
}

/// The profile of a scripting language, where names may take so many bytes.
fn normalized_within(bound: usize, profile: Profile) -> (Profile, Report) {
    let options = NormalizeOptions {
        spy: "scripting".to_owned(),
        limits: Limits {
            max_inflated_bytes: bound,
            ..Limits::default()
        },
    };
    let mut report = Report::default();
    let normalized = normalize(profile, &options, &mut report);
    assert_eq!(normalized.validate(), Ok(()));
    (normalized, report)
}

/// The same samples, and a stack of none of them: such a profile is copied, others are changed where
/// they are.
fn with_unused_stack(profile: &Profile) -> Profile {
    let mut profile = profile.clone();
    let symbols = &mut profile.symbols;
    let function = symbols.intern_function("unused", "", "unused.py", 1);
    let location = Location::new(FrameKind::Unknown, 0x2000);
    let location = symbols.intern_location(&location, &[(function, 1, 0)]);
    profile.stacks.intern(&[location]);
    profile
}

#[test]
fn what_is_left_out_leaves_nothing_behind() {
    let before = profile("a:lock-count:c:d:e", &[("keep", 1), ("drop", -1)]);
    let mut report = Report::default();
    let after = normalize(before, &NormalizeOptions::default(), &mut report);
    assert_eq!(report.count("negative_values"), 1);
    assert_eq!(report.count("types_renamed"), 1);
    assert_eq!(after.symbols.functions().len(), 1);
    assert_eq!(after.links.len(), 2);
    assert!(after.symbols.strings.find("drop").is_none());
}

#[test]
fn real_profiles_stay_what_they_are() {
    for file in real_files("pprof") {
        let Ok((profile, _)) = read_pprof(&file.bytes[..], &ReadOptions::default()) else {
            continue;
        };
        let sums = |profile: &Profile| -> Vec<i64> {
            let series = profile.series.iter();
            series.map(ProfileSeries::total).collect()
        };
        let expected = sums(&profile);
        let has_negative = profile
            .series
            .iter()
            .flat_map(|one| &one.samples)
            .any(|one| one.value < 0);
        let mut report = Report::default();
        let after = normalize(profile, &NormalizeOptions::default(), &mut report);
        assert_eq!(after.validate(), Ok(()), "{}", file.name);
        if !has_negative {
            assert_eq!(sums(&after), expected, "{}", file.name);
        }
        println!("{}: {:?}", file.name, report.notes);
    }
}

proptest! {
    #[test]
    fn what_is_usual_already_stays(stacks in prop::collection::vec(("[a-c](;[a-c]){0,4}", 1_i64..100), 1..20)) {
        let borrowed: Vec<(&str, i64)> = stacks.iter().map(|(s, v)| (s.as_str(), *v)).collect();
        let before = profile("a:b:c:d:e", &borrowed);
        let expected = content(&before);
        let mut report = Report::default();
        let after = normalize(before, &NormalizeOptions::default(), &mut report);
        prop_assert_eq!(report.notes, []);
        prop_assert_eq!(content(&after), expected);
    }
}
