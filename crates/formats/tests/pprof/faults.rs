//! Files that break the rules of the format.

use candela_formats::ReadOptions;
use candela_formats::read_pprof;

use super::proto;
use super::read;
use super::small;

#[test]
fn faults_are_refused_with_the_reason() {
    type Change = fn(&mut proto::Profile);
    let cases: [(&str, Change); 10] = [
        ("sample refers to location 9", |profile| {
            profile.sample[0].location_id = vec![9];
        }),
        ("2 values, the profile has 1", |profile| {
            profile.sample[0].value = vec![1, 2];
        }),
        ("line refers to function 8", |profile| {
            profile.location[0].line[0].function_id = 8;
        }),
        ("reserved id 0", |profile| profile.location[0].id = 0),
        ("two locations have the id 1", |profile| {
            profile.location.push(profile.location[0].clone());
        }),
        ("two functions have the id 1", |profile| {
            profile.function.push(profile.function[0]);
        }),
        ("string 99 does not exist", |profile| {
            profile.function[0].name = 99;
        }),
        ("string 0 must be empty", |profile| {
            profile.string_table[0] = b"x".to_vec();
        }),
        ("string table is missing", |profile| {
            profile.string_table.clear();
        }),
        ("no sample types", |profile| profile.sample_type.clear()),
    ];
    for (reason, change) in cases {
        let mut profile = small();
        change(&mut profile);
        let message = read(&profile).expect_err(reason).to_string();
        assert!(message.contains(reason), "{reason}: {message}");
        assert!(message.starts_with("pprof: "), "{message}");
    }
    assert!(read_pprof(&b""[..], &ReadOptions::default()).is_err());
}

#[test]
fn lesser_faults_are_repaired_and_noted() {
    type Change = fn(&mut proto::Profile);
    let cases: [(&str, Change); 8] = [
        ("mapping_unknown", |profile| {
            profile.location[0].mapping_id = 5;
        }),
        ("lines_without_function", |profile| {
            profile.location[0].line[0].function_id = 0;
        }),
        ("strings_repaired", |profile| {
            profile.string_table[3] = vec![0xff, b'm'];
        }),
        ("labels_without_value", |profile| {
            profile.sample[0].label[0].str = 0;
        }),
        ("window_repaired", |profile| profile.duration_nanos = -4),
        ("function_id_zero", |profile| {
            profile.function[0].id = 0;
            profile.location[0].line[0].function_id = 0;
        }),
        ("function_id_zero", |profile| profile.function[0].id = 0),
        ("mapping_id_zero", |profile| {
            profile.mapping[0].id = 0;
            profile.location[0].mapping_id = 0;
        }),
    ];
    for (code, change) in cases {
        let mut profile = small();
        change(&mut profile);
        let (profile, report) = read(&profile).unwrap_or_else(|error| panic!("{code}: {error}"));
        assert_eq!(report.count(code), 1, "{code}: {:?}", report.notes);
        assert_eq!(profile.series[0].total(), 7, "{code}");
        assert_eq!(profile.validate(), Ok(()), "{code}");
    }
}

#[test]
fn functions_that_all_have_the_id_0_are_numbered_where_there_is_one_for_each_location() {
    let mut profile = small();
    profile.string_table.push(b"other".to_vec());
    let other = profile.string_table.len() as i64 - 1;
    profile.function[0].id = 0;
    profile.function.push(proto::Function {
        name: other,
        ..profile.function[0]
    });
    let mut location = profile.location[0].clone();
    location.id = 2;
    location.line[0].function_id = 2;
    profile.location.push(location);
    profile.sample[0].location_id = vec![2, 1];
    let (numbered, report) = read(&profile).unwrap();
    assert_eq!(report.count("functions_numbered"), 2);
    let symbols = &numbered.symbols;
    let stack = numbered.stacks.get(numbered.series[0].samples[0].stack);
    let names = stack.iter().map(|&location| {
        let function = symbols.lines(location)[0].function;
        symbols.strings.get(symbols.function(function).name)
    });
    assert_eq!(names.collect::<Vec<_>>(), ["other", "main"]);

    // Where another function has an id, the order tells nothing.
    profile.function.push(proto::Function {
        id: 1,
        ..profile.function[0]
    });
    profile.location[1].line[0].function_id = 0;
    let (rest, report) = read(&profile).unwrap();
    assert_eq!(report.count("functions_left_out"), 2);
    assert_eq!(report.count("lines_without_function"), 1);
    assert_eq!(rest.series[0].total(), 7);
}
