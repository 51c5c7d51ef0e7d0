//! The reports of `go tool pprof`, line by line against those that it prints itself.

use std::path::Path;
use std::process::Command;

use crate::common::browser::has_tool;
use crate::common::browser::written;
use crate::common::found_files;
use candela_formats::Format;
use candela_formats::PprofOptions;
use candela_formats::PprofTextOptions;
use candela_formats::ReadOptions;
use candela_formats::TextLayout;
use candela_formats::TextOptions;
use candela_formats::WriteOptions;
use candela_formats::read;
use candela_formats::write;
use candela_formats::write_peek;
use candela_formats::write_pprof;
use candela_formats::write_pprof_top;
use candela_formats::write_pprof_tree;
use candela_formats::write_traces;
use candela_model::FrameKind;
use candela_model::LabelValue;
use candela_model::Labels;
use candela_model::Location;
use candela_model::Mapping;
use candela_model::Profile;
use candela_model::ProfileSeries;
use candela_model::ProfileType;
use candela_model::Sample;
use candela_model::SampleLabel;

/// The program behind `go tool pprof`, which takes a while to find it each time.
fn pprof(test: &str) -> Option<String> {
    if !has_tool(test, "go") {
        return None;
    }
    let output = Command::new("go").args(["tool", "-n", "pprof"]).output();
    let path = String::from_utf8(output.unwrap().stdout).unwrap();
    Some(path.trim().to_owned())
}

/// What `go tool pprof` prints of a file, or `None` where it refuses.
fn theirs(pprof: &str, path: &Path, arguments: &[&str]) -> Option<String> {
    let output = Command::new(pprof)
        .arg("-symbolize=none")
        .args(arguments)
        .arg(path)
        .env("TZ", "UTC")
        .env("PPROF_BINARY_PATH", "/nonexistent")
        .output()
        .unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    // In names we print no control characters.
    let printable = |character: char| match character {
        '\n' => '\n',
        control if control.is_control() => '\u{fffd}',
        other => other,
    };
    let text = text.replace("context \t \t ", "context TT");
    let text: String = text.chars().map(printable).collect();
    let text = text.replace("context TT", "context \t \t ");
    output.status.success().then_some(text)
}

fn assert_same(what: &str, ours: &str, theirs: &str) {
    let ours: Vec<&str> = ours.lines().collect();
    let theirs: Vec<&str> = theirs.lines().collect();
    assert_ne!(ours.len(), 0, "{what}");
    // Up to Go 1.21 times are written without seconds: `Time: Sep 14, 2022 at 7:46pm (UTC)`.
    let is_older_time = |line: &str| line.starts_with("Time: ") && line.contains(" at ");
    let is_same = |(left, right): (&&str, &&str)| {
        left == right || left.starts_with("Time: ") && is_older_time(right)
    };
    let mut pairs = ours.iter().zip(&theirs);
    let differs = pairs.position(|pair| !is_same(pair));
    if let Some(line) = differs {
        panic!(
            "{what}: line {line}\nours   {}\ntheirs {}",
            ours[line], theirs[line]
        );
    }
    assert_eq!(ours.len(), theirs.len(), "{what}");
}

/// The samples of `-traces` that have a value: our reader does not keep the others.
fn traces(text: &str) -> Vec<String> {
    let blocks =
        text.split("-----------+-------------------------------------------------------\n");
    let blocks = blocks.skip(1).filter(|block| {
        let mut lines = block.lines();
        !lines.any(|line| line.starts_with("         0   "))
    });
    blocks.map(str::to_owned).collect()
}

fn text(write: impl FnOnce(&mut Vec<u8>)) -> String {
    let mut bytes = Vec::new();
    write(&mut bytes);
    String::from_utf8(bytes).unwrap()
}

fn types(profile: &Profile) -> Vec<ProfileType> {
    let mut types: Vec<ProfileType> = Vec::new();
    for series in &profile.series {
        if !types.contains(&series.profile_type) {
            types.push(series.profile_type.clone());
        }
    }
    types
}

/// Two functions of one name, one inlined into the other, recursion, and a binary without symbols.
fn example() -> Profile {
    let mut profile = Profile::default();
    let symbols = &mut profile.symbols;
    let binary = Mapping {
        memory_start: 0x1000,
        memory_limit: 0x9000,
        file: symbols.strings.intern("/usr/bin/demo"),
        ..Mapping::default()
    };
    let binary = symbols.intern_mapping(binary);
    let functions =
        ["main", "work", "step"].map(|name| symbols.intern_function(name, "", "demo.c", 1));
    let native = |address| Location::new(FrameKind::Native, address).in_mapping(binary);
    let [main, work, step] = functions;
    let in_main = symbols.intern_location(&native(0x1001), &[(main, 3, 0)]);
    let in_work = symbols.intern_location(&native(0x1002), &[(step, 7, 0), (work, 5, 0)]);
    let bare = symbols.intern_location(&native(0x1003), &[]);
    let thread = symbols.strings.intern("thread");
    let name = symbols.strings.intern("worker 1");
    let bytes = symbols.strings.intern("bytes");
    let none = symbols.strings.intern("");
    let size = SampleLabel {
        key: bytes,
        value: LabelValue::Number {
            value: 2048,
            unit: none,
        },
    };
    let labels = profile
        .label_sets
        .intern(vec![SampleLabel::text(thread, name), size]);
    let profile_type = "process_cpu:cpu:nanoseconds:cpu:nanoseconds"
        .parse()
        .unwrap();
    let mut series = ProfileSeries::new(Labels::default(), profile_type);
    series.start_ns = 1_600_000_000_000_000_000;
    series.duration_ns = 10_000_000_000;
    for (stack, value) in [
        (vec![in_work, in_main], 4_000_000_000),
        (vec![in_work, in_work, in_main], 500_000_000),
        (vec![bare, in_work, in_main], 17_000_000),
        (vec![in_main], 3_000_000),
    ] {
        let stack = profile.stacks.intern(&stack);
        let sample = Sample {
            label_set: labels,
            ..Sample::new(stack, value)
        };
        series.samples.push(sample);
    }
    profile.series.push(series);
    profile
}

fn as_text(layout: TextLayout, functions: &str, limit: usize) -> String {
    let options = WriteOptions {
        limit,
        text: TextOptions {
            layout,
            functions: functions.to_owned(),
        },
        ..WriteOptions::default()
    };
    text(|out| {
        write(Format::Text, &example(), out, &options).unwrap();
    })
}

#[test]
fn each_layout_is_chosen_by_name() {
    let top = as_text(TextLayout::from_name("top").unwrap(), "", 2);
    let expected = "\
File: demo
Type: cpu
Time: 2020-09-13 12:26:40 UTC
Duration: 10s, Total samples = 4520ms (45.20%)
Showing nodes accounting for 4503ms, 99.62% of 4520ms total
Dropped 1 node (cum <= 22.60ms)
Showing top 2 nodes out of 3
      flat  flat%   sum%        cum   cum%
    4500ms 99.56% 99.56%     4517ms 99.93%  step (inline)
       3ms 0.066% 99.62%     4520ms   100%  main
";
    assert_eq!(top, expected);
    let peek = as_text(TextLayout::from_name("peek").unwrap(), "^work$", 0);
    let lines: Vec<&str> = peek.lines().skip(8).collect();
    let expected = [
        "                                            4517ms   100% |   main",
        "                                             500ms 11.07% |   step",
        "         0     0%     0%     4517ms 99.93%                | work",
        "                                            4517ms   100% |   step (inline)",
    ];
    assert_eq!(lines[..4], expected, "{peek}");
    let traces = as_text(TextLayout::from_name("traces").unwrap(), "", 0);
    let first = "\
-----------+-------------------------------------------------------
    thread:  worker 1
     bytes:  2kB
        4s   step (inline)
             work
             main
-----------+-------------------------------------------------------
";
    assert!(traces.contains(first), "{traces}");
    assert!(as_text(TextLayout::Tree, "", 0).contains("context \t \t \n"));
    assert!(as_text(TextLayout::Table, "", 0).starts_with("Total CPU time: 4.52s\n"));
    for layout in TextLayout::ALL {
        assert_eq!(TextLayout::from_name(layout.name()), Some(layout));
    }
}

#[test]
fn what_chooses_nothing_is_an_error() {
    let profile = example();
    let profile_type = &profile.series[0].profile_type;
    let error = |pattern| write_peek(&profile, profile_type, pattern, Vec::new()).unwrap_err();
    assert_eq!(
        error("nothing").to_string(),
        "no function's name matches \"nothing\""
    );
    let message = error("(").to_string();
    assert!(message.contains("is no regular expression"), "{message}");
}

#[test]
fn a_type_without_samples_is_a_report_too() {
    let mut profile = example();
    profile.series[0].samples.clear();
    let profile_type = profile.series[0].profile_type.clone();
    let options = PprofTextOptions::default();
    let top = text(|out| write_pprof_top(&profile, &profile_type, &options, out).unwrap());
    assert!(
        top.contains("Showing nodes accounting for 0, 0% of 0 total\n"),
        "{top}"
    );
    text(|out| write_pprof_tree(&profile, &profile_type, &options, out).unwrap());
    text(|out| write_traces(&profile, &profile_type, out).unwrap());
}

mod host {
    use super::*;

    #[test]
    fn reports_of_real_profiles_are_those_of_pprof() {
        let test = "reports_of_real_profiles_are_those_of_pprof";
        let Some(pprof) = pprof(test) else {
            return;
        };
        let mut compared = 0;
        for file in found_files("pprof") {
            let Ok((profile, _)) = read(Format::Pprof, &file.bytes[..], &ReadOptions::default())
            else {
                continue;
            };
            let path = written(&file.name.replace('/', "_"), &file.bytes);
            for profile_type in types(&profile) {
                let index = format!("-sample_index={}", profile_type.sample_type);
                let options = PprofTextOptions::default();
                let theirs = |arguments: &[&str]| {
                    theirs(&pprof, &path, &[&[index.as_str()], arguments].concat())
                };
                let Some(top) = theirs(&["-top"]) else {
                    println!("{}: pprof refuses it", file.name);
                    break;
                };
                let what = |layout: &str| format!("{} {profile_type} {layout}", file.name);
                let ours =
                    text(|out| write_pprof_top(&profile, &profile_type, &options, out).unwrap());
                assert_same(&what("top"), &ours, &top);

                let options = PprofTextOptions {
                    max_functions: 80,
                    ..options
                };
                let ours =
                    text(|out| write_pprof_tree(&profile, &profile_type, &options, out).unwrap());
                assert_same(&what("tree"), &ours, &theirs(&["-tree"]).unwrap());

                match theirs(&["-peek=[Rr]ead|main"]) {
                    Some(peek) => {
                        let ours = text(|out| {
                            write_peek(&profile, &profile_type, "[Rr]ead|main", out).unwrap();
                        });
                        assert_same(&what("peek"), &ours, &peek);
                    }
                    None => {
                        let ours = write_peek(&profile, &profile_type, "[Rr]ead|main", Vec::new());
                        assert!(ours.is_err(), "{}", what("peek"));
                    }
                }
                let ours = text(|out| write_traces(&profile, &profile_type, out).unwrap());
                let theirs = theirs(&["-traces"]).unwrap();
                assert_eq!(traces(&ours), traces(&theirs), "{}", what("traces"));
                compared += 1;
            }
        }
        println!("{compared} sample types compared");
    }

    #[test]
    fn the_example_is_as_pprof_prints_it() {
        let Some(pprof) = pprof("the_example_is_as_pprof_prints_it") else {
            return;
        };
        let mut bytes = Vec::new();
        write_pprof(&example(), &mut bytes, &PprofOptions::default()).unwrap();
        let path = written("example.pb.gz", &bytes);
        for (layout, limit, arguments) in [
            (TextLayout::Top, 2, &["-top", "-nodecount=2"][..]),
            (TextLayout::Tree, 0, &["-tree"]),
            (TextLayout::Peek, 0, &["-peek=o"]),
            (TextLayout::Traces, 0, &["-traces"]),
        ] {
            let theirs = theirs(&pprof, &path, arguments).unwrap();
            let ours = as_text(layout, "o", limit);
            // The comment with which we tell ourselves the profile type.
            let theirs: Vec<&str> = theirs.lines().collect();
            let is_report = |line: &&&str| !line.starts_with("candela.");
            let theirs: Vec<&str> = theirs.iter().filter(is_report).copied().collect();
            assert_same(layout.name(), &ours, &theirs.join("\n"));
        }
    }
}
