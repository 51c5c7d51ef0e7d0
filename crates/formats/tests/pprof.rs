//! pprof against real files, an independent decoder, Go's tool, and hostile bytes.

mod faults;

use std::collections::BTreeMap;
use std::io::Read;
use std::process::Command;

use crate::common;
use crate::common::content;
use crate::common::pprof_proto as proto;
use crate::common::real_files;
use candela_formats::PprofOptions;
use candela_formats::ReadError;
use candela_formats::ReadOptions;
use candela_formats::read_pprof;
use candela_formats::write_pprof;
use candela_model::Profile;
use proptest::prelude::*;
use prost::Message;

fn inflated(bytes: &[u8]) -> Vec<u8> {
    if !bytes.starts_with(&[0x1f, 0x8b]) {
        return bytes.to_vec();
    }
    let mut inflated = Vec::new();
    flate2::read::MultiGzDecoder::new(bytes)
        .read_to_end(&mut inflated)
        .unwrap();
    inflated
}

fn written(profile: &Profile) -> Vec<u8> {
    let mut bytes = Vec::new();
    let options = PprofOptions {
        compress: false,
        keep_times: true,
        ..PprofOptions::default()
    };
    write_pprof(profile, &mut bytes, &options).unwrap();
    bytes
}

/// Value by function names, leaf first, for one column of the independently decoded profile.
fn oracle_stacks(profile: &proto::Profile, column: usize) -> BTreeMap<Vec<String>, i64> {
    let functions: BTreeMap<u64, &proto::Function> = profile
        .function
        .iter()
        .map(|function| (function.id, function))
        .collect();
    let locations: BTreeMap<u64, Vec<String>> = profile
        .location
        .iter()
        .map(|location| {
            let names = location.line.iter().map(|line| {
                let function = functions[&line.function_id];
                let name = profile.text(function.name);
                if name.is_empty() {
                    profile.text(function.system_name)
                } else {
                    name
                }
            });
            // A function without a name says nothing.
            let mut names: Vec<String> = names.filter(|name| !name.is_empty()).collect();
            if names.is_empty() {
                names.push(format!("{:#x}", location.address));
            }
            (location.id, names)
        })
        .collect();
    let mut stacks: BTreeMap<Vec<String>, i64> = BTreeMap::new();
    for sample in &profile.sample {
        let names = sample
            .location_id
            .iter()
            .flat_map(|id| locations[id].clone());
        if sample.value[column] != 0 {
            *stacks.entry(names.collect()).or_default() += sample.value[column];
        }
    }
    stacks
}

fn our_stacks(profile: &Profile, column: usize) -> BTreeMap<Vec<String>, i64> {
    let symbols = &profile.symbols;
    let mut stacks: BTreeMap<Vec<String>, i64> = BTreeMap::new();
    for sample in &profile.series[column].samples {
        let mut names = Vec::new();
        for &location in profile.stacks.get(sample.stack) {
            let lines = symbols.lines(location);
            if lines.is_empty() {
                names.push(format!("{:#x}", symbols.location(location).address));
            }
            names.extend(lines.iter().map(|line| {
                let name = symbols.function(line.function).name;
                symbols.strings.get(name).to_owned()
            }));
        }
        *stacks.entry(names).or_default() += sample.value;
    }
    stacks
}

#[test]
fn real_files_equal_what_an_independent_decoder_reads() {
    for file in real_files("pprof") {
        let (name, bytes) = (file.name, file.bytes);
        let result = read_pprof(&bytes[..], &ReadOptions::default());
        if file.expected != "ok" {
            println!("{name}: {:?}", result.map(|(_, report)| report));
            continue;
        }
        let (profile, report) = result.unwrap_or_else(|error| panic!("{name}: {error}"));
        println!("{name}: {:?}", report.notes);
        assert_eq!(profile.validate(), Ok(()), "{name}");
        let oracle = proto::Profile::decode(&inflated(&bytes)[..]).unwrap();
        assert_eq!(profile.series.len(), oracle.sample_type.len(), "{name}");
        for (column, series) in profile.series.iter().enumerate() {
            let total: i64 = oracle
                .sample
                .iter()
                .map(|sample| sample.value[column])
                .sum();
            assert_eq!(series.total(), total, "{name} column {column}");
            let sample_type = oracle.text(oracle.sample_type[column].kind);
            assert_eq!(series.profile_type.sample_type, sample_type, "{name}");
            assert_eq!(series.start_ns, oracle.time_nanos.max(0), "{name}");
            assert_eq!(series.duration_ns, oracle.duration_nanos, "{name}");
            assert_eq!(series.period, oracle.period, "{name}");
            let is_equal = our_stacks(&profile, column) == oracle_stacks(&oracle, column);
            assert!(is_equal, "{name} column {column}: stacks differ");
        }
        let label_count: usize = oracle.sample.iter().map(|sample| sample.label.len()).sum();
        let has_labels = profile.label_sets.len() > 1 || profile.links.len() > 1;
        assert_eq!(has_labels, label_count > 0, "{name}");
    }
}

#[test]
fn real_files_round_trip() {
    for file in real_files("pprof") {
        if file.expected != "ok" {
            continue;
        }
        let (name, bytes) = (file.name, file.bytes);
        let (profile, _) = read_pprof(&bytes[..], &ReadOptions::default()).unwrap();
        let first = written(&profile);
        let (again, report) = read_pprof(&first[..], &ReadOptions::default()).unwrap();
        assert_eq!(report.notes, [], "{name}");
        common::assert_same_content(&again, &profile, &name);
        assert_eq!(written(&profile), first, "{name}: writing is deterministic");
        let column_types = |profile: &Profile| -> Vec<String> {
            profile
                .series
                .iter()
                .map(|series| series.profile_type.to_string())
                .collect()
        };
        assert_eq!(column_types(&again), column_types(&profile), "{name}");
    }
}

/// The smallest profile that has something of everything.
fn small() -> proto::Profile {
    let strings = [
        "",
        "cpu",
        "nanoseconds",
        "main",
        "main.c",
        "bin",
        "abc123",
        "thread",
        "t1",
        "bytes",
        "n",
    ];
    proto::Profile {
        sample_type: vec![proto::ValueType { kind: 1, unit: 2 }],
        sample: vec![proto::Sample {
            location_id: vec![1],
            value: vec![7],
            label: vec![
                proto::Label {
                    key: 7,
                    str: 8,
                    ..proto::Label::default()
                },
                proto::Label {
                    key: 10,
                    num: 512,
                    num_unit: 9,
                    ..proto::Label::default()
                },
            ],
        }],
        mapping: vec![proto::Mapping {
            id: 1,
            memory_start: 0x1000,
            memory_limit: 0x2000,
            filename: 5,
            build_id: 6,
            ..proto::Mapping::default()
        }],
        location: vec![proto::Location {
            id: 1,
            mapping_id: 1,
            address: 0x1234,
            line: vec![proto::Line {
                function_id: 1,
                line: 3,
            }],
        }],
        function: vec![proto::Function {
            id: 1,
            name: 3,
            filename: 4,
            ..proto::Function::default()
        }],
        string_table: strings
            .iter()
            .map(|text| text.as_bytes().to_vec())
            .collect(),
        time_nanos: 1_000,
        duration_nanos: 10,
        period: 5,
        ..proto::Profile::default()
    }
}

fn read(profile: &proto::Profile) -> Result<(Profile, candela_formats::Report), ReadError> {
    read_pprof(&profile.encode_to_vec()[..], &ReadOptions::default())
}

#[test]
fn a_function_with_a_system_name_alone_has_it_once() {
    let mut file = small();
    file.function[0].name = 0;
    file.function[0].system_name = 3;
    let (profile, _) = read(&file).unwrap();
    let function = profile.symbols.functions().last().unwrap();
    assert_eq!(profile.symbols.strings.get(function.name), "main");
    assert_eq!(profile.symbols.strings.get(function.system_name), "");
}

#[test]
fn everything_in_a_small_profile_is_kept() {
    let (profile, report) = read(&small()).unwrap();
    assert_eq!(report.notes, []);
    let content = content(&profile);
    let expected = "{} process_cpu:cpu:nanoseconds:cpu:nanoseconds [1000+10 /5] \
        [\"0x1234/bin/abc123/4096-8192+0/[\\\"main||main.c|0@3:0\\\"]\"] \
        [\"n=512 bytes\", \"thread=\\\"t1\\\"\"]";
    let (key, value) = content.iter().next().unwrap();
    assert!(key.starts_with(expected), "{key}");
    assert_eq!((content.len(), *value), (1, 7));
}

#[test]
fn a_cut_file_names_the_byte() {
    let bytes = small().encode_to_vec();
    let message = read_pprof(&bytes[..bytes.len() - 3], &ReadOptions::default())
        .expect_err("cut")
        .to_string();
    assert!(
        message.contains("a number is cut off at byte")
            || message.contains("points behind the end at byte"),
        "{message}"
    );
}

#[test]
fn limits_hold() {
    let mut profile = small();
    profile.sample = vec![profile.sample[0].clone(); 20];
    let bytes = profile.encode_to_vec();
    let mut options = ReadOptions::default();
    options.limits.max_samples = 19;
    assert!(matches!(
        read_pprof(&bytes[..], &options),
        Err(ReadError::TooLarge { limit: 19, .. })
    ));
    options.limits.max_samples = 20;
    options.limits.max_inflated_bytes = bytes.len() - 1;
    assert!(matches!(
        read_pprof(&bytes[..], &options),
        Err(ReadError::TooLarge { .. })
    ));
    let mut profile = small();
    profile.sample[0].location_id = vec![1; 100];
    let mut options = ReadOptions::default();
    options.limits.max_stack_depth = 64;
    let (profile, report) = read_pprof(&profile.encode_to_vec()[..], &options).unwrap();
    assert_eq!(
        profile.stacks.get(profile.series[0].samples[0].stack).len(),
        64
    );
    assert_eq!(report.count("stacks_cut"), 1);
}

fn too_large(profile: &proto::Profile, options: &ReadOptions) -> &'static str {
    match read_pprof(&profile.encode_to_vec()[..], options) {
        Err(ReadError::TooLarge { what, .. }) => what,
        other => panic!("{other:?}"),
    }
}

#[test]
fn what_costs_more_in_memory_than_on_the_wire_is_bounded() {
    let options = ReadOptions::default();
    let mut types = small();
    types.sample_type = vec![proto::ValueType::default(); 65];
    assert_eq!(too_large(&types, &options), "the number of sample types");

    let mut comments = small();
    comments.comment = vec![1; 1025];
    assert_eq!(too_large(&comments, &options), "the number of comments");
    comments.comment.pop();
    assert_eq!(read(&comments).unwrap().1.comments.len(), 1024);

    let mut labels = small();
    labels.sample[0].label = vec![
        proto::Label {
            key: 7,
            str: 8,
            ..proto::Label::default()
        };
        101
    ];
    assert_eq!(
        too_large(&labels, &options),
        "the number of labels of a sample"
    );

    // Two columns of ten rows each.
    let mut rows = small();
    rows.sample_type = vec![rows.sample_type[0]; 2];
    rows.sample[0].value = vec![1, 1];
    rows.sample = vec![rows.sample[0].clone(); 10];
    let mut options = ReadOptions::default();
    options.limits.max_samples = 19;
    assert_eq!(
        too_large(&rows, &options),
        "the number of values that are not 0"
    );
    options.limits.max_samples = 20;
    assert!(read_pprof(&rows.encode_to_vec()[..], &options).is_ok());
}

#[test]
fn long_strings_are_cut_at_a_character_and_noted() {
    let mut profile = small();
    profile.string_table[3] = "é".repeat(10).into_bytes();
    let mut options = ReadOptions::default();
    options.limits.max_string_bytes = 15;
    let (profile, report) = read_pprof(&profile.encode_to_vec()[..], &options).unwrap();
    assert_eq!(report.count("strings_cut"), 1);
    let names: Vec<&str> = our_names(&profile);
    assert!(names.contains(&"é".repeat(7).as_str()), "{names:?}");
}

fn our_names(profile: &Profile) -> Vec<&str> {
    let symbols = &profile.symbols;
    let functions = symbols.functions().iter();
    functions
        .map(|function| symbols.strings.get(function.name))
        .collect()
}

#[test]
fn trace_ids_become_links_and_labels_again() {
    let mut profile = small();
    let trace = "0af7651916cd43dd8448eb211c80319c";
    for text in ["trace_id", trace, "span_id", "b7ad6b7169203331"] {
        profile.string_table.push(text.as_bytes().to_vec());
    }
    profile.sample[0].label = vec![
        proto::Label {
            key: 11,
            str: 12,
            ..proto::Label::default()
        },
        proto::Label {
            key: 13,
            str: 14,
            ..proto::Label::default()
        },
    ];
    let (ours, _) = read(&profile).unwrap();
    assert_eq!(ours.links.len(), 2);
    assert_eq!(ours.links[1].trace_id[..3], [0x0a, 0xf7, 0x65]);
    assert_eq!(ours.links[1].span_id[0], 0xb7);
    assert_eq!(ours.label_sets.len(), 1);
    let oracle = proto::Profile::decode(&written(&ours)[..]).unwrap();
    let texts: Vec<String> = oracle.sample[0]
        .label
        .iter()
        .map(|label| oracle.text(label.str))
        .collect();
    assert_eq!(texts, [trace, "b7ad6b7169203331"]);
}

#[test]
fn series_of_several_labels_and_types_fit_in_one_file() {
    let (mut profile, _) = read(&small()).unwrap();
    let mut other = profile.series[0].clone();
    profile.series[0].labels.set("service_name", "api");
    profile.series[0].labels.set("host", "h1");
    other.labels.set("service_name", "db");
    other.labels.set("host", "h1");
    other.profile_type = "off_cpu:off_cpu:nanoseconds:off_cpu:nanoseconds"
        .parse()
        .unwrap();
    profile.series.push(other);
    let bytes = written(&profile);
    let oracle = proto::Profile::decode(&bytes[..]).unwrap();
    assert_eq!(oracle.sample_type.len(), 2);
    assert_eq!(
        oracle.sample.len(),
        2,
        "samples of other services do not join"
    );
    let (again, _) = read_pprof(&bytes[..], &ReadOptions::default()).unwrap();
    assert_eq!(again.series[1].profile_type.name, "off_cpu");
    assert_eq!(again.series[1].labels.to_string(), "{host=\"h1\"}");
    let description = common::describe(&again, &again.series[1].samples[0]);
    assert!(
        description.contains("service_name=\\\"db\\\"")
            || description.contains("service_name=\"db\""),
        "{description}"
    );
}

proptest! {
    #[test]
    fn any_bytes_are_survived(bytes in prop::collection::vec(any::<u8>(), 0..400)) {
        let _ = read_pprof(&bytes[..], &ReadOptions::default());
    }

    #[test]
    fn mutated_profiles_are_survived(
        changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..6),
        cut in any::<prop::sample::Index>(),
    ) {
        let mut bytes = small().encode_to_vec();
        for (index, value) in changes {
            let position = index.index(bytes.len());
            bytes[position] = value;
        }
        for bytes in [&bytes[..], &bytes[..cut.index(bytes.len())]] {
            if let Ok((profile, _)) = read_pprof(bytes, &ReadOptions::default()) {
                prop_assert_eq!(profile.validate(), Ok(()));
                let again = written(&profile);
                let (again, _) = read_pprof(&again[..], &ReadOptions::default()).unwrap();
                prop_assert_eq!(content(&again), content(&profile));
            }
        }
    }
}

mod host {
    use super::*;

    #[test]
    fn go_reads_what_we_write() {
        if Command::new("go").arg("version").output().is_err() {
            eprintln!("skipped: no go");
            return;
        }
        let names = [
            "parca.alloc_objects.pb.gz",
            "parca.many.1644509275338070000.pb.gz",
            "parca.labels.pb.gz",
            "large.cpu",
        ];
        let files = real_files("pprof").into_iter();
        for file in files.filter(|file| names.contains(&&*file.name)) {
            let (name, bytes) = (&file.name, &file.bytes);
            let (profile, report) = read_pprof(&bytes[..], &ReadOptions::default()).unwrap();
            let file = tempfile::Builder::new()
                .suffix(".pb.gz")
                .tempfile()
                .unwrap();
            let options = PprofOptions {
                default_sample_type: report.default_sample_type,
                ..PprofOptions::default()
            };
            write_pprof(&profile, &file, &options).unwrap();
            let raw = |path: &std::path::Path| {
                let output = Command::new("go")
                    .args(["tool", "pprof", "-symbolize=none", "-top", "-nodecount=40"])
                    .arg(path)
                    .output()
                    .unwrap();
                let text = String::from_utf8_lossy(&output.stdout).into_owned();
                assert!(
                    output.status.success(),
                    "{}",
                    String::from_utf8_lossy(&output.stderr)
                );
                // The first lines name the file and the build id.
                let rows = text.lines().skip_while(|line| !line.contains("flat%"));
                rows.map(str::to_owned).collect::<Vec<_>>()
            };
            let ours = raw(file.path());
            assert!(ours.len() > 5, "{name}: {ours:?}");
            let original = tempfile::Builder::new()
                .suffix(".pb.gz")
                .tempfile()
                .unwrap();
            std::fs::write(&original, bytes).unwrap();
            assert_eq!(ours, raw(original.path()), "{name}");
        }
    }
}
