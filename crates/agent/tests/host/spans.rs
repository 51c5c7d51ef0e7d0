//! Samples tell of the span that their thread worked on, wherever its program keeps that (OTEP 4947).

use std::collections::BTreeSet;
use std::fs::File;
use std::io::ErrorKind;
use std::path::Path;
use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;

use crate::support;
use crate::support::Running;
use candela_agent::ALLOCATION_LIBRARY;
use candela_agent::ALLOCATION_LIBRARY_NAME;
use candela_agent::DropReason;
use candela_agent::Kind;
use candela_agent::Kinds;
use candela_agent::RecordOptions;
use candela_agent::RecordTargets;
use candela_agent::Recording;
use candela_model::LabelValue;
use candela_model::Link;
use candela_model::Profile;

const CPU: &str = "process_cpu:cpu:nanoseconds:cpu:nanoseconds";
const OFF_CPU: &str = "off_cpu:off_cpu:nanoseconds:off_cpu:nanoseconds";
const FAULTS: &str = "page_faults:faults:count:faults:count";

/// The functions of the test programs and the spans that threads in them work on.
const SPANS: [(&str, u8, u8); 3] = [
    ("serve_first", 0x11, 0x1a),
    ("serve_second", 0x22, 0x2b),
    ("serve_forever", 0x33, 0x3c),
];

const BY_ANOTHER_NAME: &str = "-DBY_ANOTHER_NAME";

const SYMBOL: &str = "otel_thread_ctx_v1";

/// A turn at sampling, and a folder for programs.
struct Place {
    _turn: File,
    folder: tempfile::TempDir,
}

impl Place {
    /// None, with a word, where nothing can be sampled or the compiler is not there.
    fn with(compiler: &str) -> Option<Self> {
        if support::cannot_sample() || support::lacks(compiler) {
            return None;
        }
        Some(Self {
            _turn: support::turn(),
            folder: tempfile::tempdir().expect("a temporary directory"),
        })
    }

    fn path(&self) -> &Path {
        self.folder.path()
    }

    /// A folder in it that is as good as new: programs of one name come one after another.
    fn emptied(&self) -> PathBuf {
        let folder = self.path().join("program");
        if let Err(error) = std::fs::remove_dir_all(&folder) {
            assert_eq!(error.kind(), ErrorKind::NotFound, "{error}");
        }
        std::fs::create_dir(&folder).expect("a new folder");
        folder
    }
}

fn link(trace: u8, span: u8) -> Link {
    Link {
        trace_id: [trace; 16],
        span_id: [span; 8],
    }
}

/// Compiles and links with a C compiler; the path of what came of it.
fn build(compiler: &str, directory: &Path, name: &str, flags: &[&str], files: &[&str]) -> PathBuf {
    let built = directory.join(name);
    let common = ["-O2", "-g", "-fomit-frame-pointer", "-pthread", "-o"];
    let common = common.map(PathBuf::from).into_iter().chain([built.clone()]);
    // A library stands behind the files that need it.
    let files = files.iter().map(|file| support::source(file));
    let arguments = common.chain(files).chain(flags.iter().map(PathBuf::from));
    support::run(compiler, arguments);
    built
}

fn build_library(compiler: &str, directory: &Path, flags: &[&str]) -> PathBuf {
    let flags: Vec<&str> = ["-shared", "-fPIC"]
        .into_iter()
        .chain(flags.iter().copied())
        .collect();
    build(
        compiler,
        directory,
        "libpointer.so",
        &flags,
        &["span_pointer.c"],
    )
}

/// Records a program that runs already, which says when it does.
fn record(command: Command, kinds: Kinds) -> Profile {
    let recording = record_labelled(command, kinds);
    assert_eq!(recording.report.count(DropReason::LabelsCut), 0);
    recording.profile
}

fn record_labelled(mut command: Command, kinds: Kinds) -> Recording {
    let (child, line) = support::start(&mut command);
    let program = Running(child);
    assert_eq!(line, "ready\n", "{command:?}");
    // Worth 250 samples of its CPU time; what else it does is a sample less often.
    let cpu_time = match kinds == Kinds::default() {
        true => Duration::from_millis(500),
        false => Duration::from_secs(1),
    };
    let options = RecordOptions {
        rate_hz: 499,
        kinds,
        ..RecordOptions::new(RecordTargets::Pids(vec![program.pid()]))
    };
    let recording =
        support::record_while(options, || support::wait_for_work(program.pid(), cpu_time));
    let unread = recording.report.count(DropReason::ContextUnread);
    assert_eq!(unread, 0, "spans that could not be read");
    recording
}

/// Every sample of a function has its span and no other sample has one.
fn assert_spans(profile: &Profile, profile_type: &str, functions: &[&str]) {
    let of_type = profile
        .series
        .iter()
        .filter(|series| series.profile_type.to_string() == profile_type);
    let mut counts = vec![0; functions.len()];
    for sample in of_type.flat_map(|series| &series.samples) {
        let locations = profile.stacks.get(sample.stack).iter();
        let names = locations.flat_map(|&location| support::names_of(profile, location));
        let names: Vec<String> = names.collect();
        let is_in = |function: &str| {
            let is_last_part = |name: &String| {
                let before = name.strip_suffix(function);
                before.is_some_and(|path| path.is_empty() || path.ends_with([':', '.']))
            };
            names.iter().any(is_last_part)
        };
        let found = profile.links[sample.link.index()];
        let span = SPANS.iter().find(|(function, ..)| is_in(function));
        if let Some(&(function, trace, span)) = span {
            assert_eq!(found, link(trace, span), "{profile_type} of {names:?}");
            if let Some(position) = functions.iter().position(|wanted| *wanted == function) {
                counts[position] += 1;
            }
        } else if is_in("serve_nobody") {
            assert_eq!(found, Link::default(), "{profile_type} of {names:?}");
        }
    }
    assert!(
        counts.iter().all(|&count| count > 0),
        "{profile_type}: {counts:?} samples of {functions:?}"
    );
}

const SERVING: [&str; 2] = ["serve_first", "serve_second"];

fn program_with_pointer(directory: &Path) -> Command {
    let export = format!("-Wl,--export-dynamic-symbol={SYMBOL}");
    let files = ["spans.c", "span_pointer.c"];
    Command::new(build("gcc", directory, "spans", &[&export], &files))
}

/// The program, which loads a library that has the pointer.
fn program_that_loads_late(
    compiler: &str,
    directory: &Path,
    library_flags: &[&str],
    flags: &[&str],
) -> Command {
    let library = build_library(compiler, directory, library_flags);
    let flags = [&["-DLOADS_LATE"], flags].concat();
    let program = build(compiler, directory, "spans", &flags, &["spans.c"]);
    let mut command = Command::new(program);
    command.arg(library);
    command
}

#[test]
fn samples_of_all_kinds_tell_of_their_spans() {
    if support::cannot_sample_off_cpu() {
        return;
    }
    let Some(place) = Place::with("gcc") else {
        return;
    };
    let kinds = [Kind::Cpu, Kind::OffCpu, Kind::Fault].into();
    let profile = record(program_with_pointer(place.path()), kinds);
    assert_spans(&profile, CPU, &SERVING);
    assert_spans(
        &profile,
        OFF_CPU,
        &["serve_first", "serve_second", "serve_forever"],
    );
    assert_spans(&profile, FAULTS, &SERVING);
}

/// Types of samples that the program gives with `MUCH_ELSE`.
const OTHER_TYPES: [&str; 6] = [
    "mutex:delay:nanoseconds:contentions:count",
    "runq:delay:nanoseconds:delay:nanoseconds",
    "memory_growth:growth:bytes:growth:bytes",
    "kernel_lock:delay:nanoseconds:contentions:count",
    "memory:alloc_space:bytes:space:bytes",
    REQUESTS,
];

const REQUESTS: &str = "block_io:requests:count:requests:count";

#[test]
fn samples_of_the_other_kinds_tell_of_their_spans() {
    if support::cannot_sample_off_cpu() {
        return;
    }
    let Some(place) = Place::with("gcc") else {
        return;
    };
    let export = format!("-Wl,--export-dynamic-symbol={SYMBOL}");
    let files = ["spans.c", "span_pointer.c"];
    let flags = [export.as_str(), "-DMUCH_ELSE"];
    let library = place.path().join(ALLOCATION_LIBRARY_NAME);
    std::fs::write(&library, ALLOCATION_LIBRARY).expect("written");
    let mut command = Command::new(build("gcc", place.path(), "spans", &flags, &files));
    command
        .current_dir(place.path())
        .env("LD_PRELOAD", &library);
    let kinds = [
        Kind::Lock,
        Kind::RunQueue,
        Kind::Growth,
        Kind::KernelLock,
        Kind::Alloc,
        Kind::BlockIo,
    ];
    let recording = record_labelled(command, kinds.into());
    let profile = &recording.profile;
    let types = profile.series.iter();
    let types: BTreeSet<String> = types.map(|it| it.profile_type.to_string()).collect();
    for profile_type in OTHER_TYPES {
        if profile_type == REQUESTS && !types.contains(REQUESTS) {
            support::skipped("the temporary directory has no block device behind it");
            continue;
        }
        assert_spans(profile, profile_type, &SERVING);
    }
}

#[test]
fn a_library_that_the_program_is_linked_with_has_the_pointer() {
    let Some(place) = Place::with("gcc") else {
        return;
    };
    for dialect in [
        "-mtls-dialect=gnu2",
        "-mtls-dialect=gnu",
        "-ftls-model=initial-exec",
    ] {
        let directory = place.emptied();
        let library = build_library("gcc", &directory, &[dialect]);
        let library = library.to_str().expect("an UTF-8 path");
        let run_path = format!("-Wl,-rpath,{}", directory.display());
        let program = build(
            "gcc",
            &directory,
            "spans",
            &[library, &run_path],
            &["spans.c"],
        );
        let profile = record(Command::new(program), Kinds::default());
        assert_spans(&profile, CPU, &SERVING);
    }
}

#[test]
fn a_library_that_the_program_loads_has_the_pointer() {
    let Some(place) = Place::with("gcc") else {
        return;
    };
    for flags in [
        &["-mtls-dialect=gnu2"][..],
        &["-mtls-dialect=gnu"],
        // The relocation names the module alone.
        &["-mtls-dialect=gnu2", BY_ANOTHER_NAME],
        &["-mtls-dialect=gnu", BY_ANOTHER_NAME],
    ] {
        let directory = place.emptied();
        let command = program_that_loads_late("gcc", &directory, flags, &["-ldl"]);
        let profile = record(command, Kinds::default());
        assert_spans(&profile, CPU, &SERVING);
    }
}

#[test]
fn musl_keeps_the_pointer_elsewhere() {
    let Some(place) = Place::with("musl-gcc") else {
        return;
    };
    let command = program_that_loads_late("musl-gcc", place.path(), &[], &[]);
    let profile = record(command, Kinds::default());
    assert_spans(&profile, CPU, &SERVING);
}

#[test]
fn a_program_in_rust_tells_of_its_spans() {
    let Some(place) = Place::with("rustc") else {
        return;
    };
    let program = place.path().join("spans_rust");
    let export = format!("-Clink-arg=-Wl,--export-dynamic-symbol={SYMBOL}");
    let flags = ["-O", "-g", "--edition=2024", &export, "-o"].map(PathBuf::from);
    let files = [
        program.clone(),
        support::source("../../../ebpf/tests/programs/spans.rs"),
    ];
    support::run("rustc", flags.into_iter().chain(files));
    let profile = record(Command::new(program), Kinds::default());
    assert_spans(&profile, CPU, &SERVING);
}

#[test]
fn elastic_keeps_it_in_another_record() {
    let Some(place) = Place::with("gcc") else {
        return;
    };
    let flags = ["-mtls-dialect=gnu2", "-DELASTIC"];
    let command = program_that_loads_late("gcc", place.path(), &flags, &["-DELASTIC"]);
    let profile = record(command, Kinds::default());
    assert_spans(&profile, CPU, &SERVING);
}

#[test]
fn goroutines_tell_of_their_spans_in_labels() {
    let Some(place) = Place::with("go") else {
        return;
    };
    for (with_c, flags) in [("0", "-ldflags=-s -w"), ("1", "-ldflags=")] {
        let directory = place.emptied();
        let program = directory.join("spans_go");
        let mut files = vec![support::source("spans.go")];
        if with_c == "1" {
            let in_c = directory.join("in_c.go");
            std::fs::copy(&files[0], directory.join("spans.go")).expect("copied");
            std::fs::write(&in_c, GO_WITH_C).expect("written");
            files = vec![directory.join("spans.go"), in_c];
        }
        let output = Command::new("go")
            .args(["build", flags, "-o"])
            .arg(&program)
            .args(files)
            .env("GO111MODULE", "off")
            .env("CGO_ENABLED", with_c)
            .output()
            .expect("go starts");
        let messages = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{messages}");
        let recording = record_labelled(Command::new(program), Kinds::default());
        assert_spans(&recording.profile, CPU, &SERVING);
        assert_routes(&recording.profile);
        assert!(recording.report.count(DropReason::LabelsCut) > 0);
    }
}

/// Its thread-local variable moves that of Go.
const GO_WITH_C: &str = "package main

// static _Thread_local long one_more;
// static long count(void) { return ++one_more; }
import \"C\"

func init() { C.count() }
";

/// What is no id is a label of the sample, cut to what fits.
fn assert_routes(profile: &Profile) {
    let strings = &profile.symbols.strings;
    let mut seen = [0, 0];
    for sample in profile.series.iter().flat_map(|series| &series.samples) {
        let labels = profile.label_sets.get(sample.label_set).iter();
        let mut routes = labels.filter(|label| strings.get(label.key) == "route");
        let route = routes.next().map(|label| match label.value {
            LabelValue::Text(text) => strings.get(text),
            LabelValue::Number { .. } => panic!("a route is a text"),
        });
        let found = profile.links[sample.link.index()];
        if found == link(0x11, 0x1a) {
            assert_eq!(route, Some("/first"));
            seen[0] += 1;
        } else if found == link(0x22, 0x2b) {
            let cut = format!("/second/{}", "x".repeat(56));
            assert_eq!(route, Some(&*cut));
            seen[1] += 1;
        } else {
            assert_eq!(route, None);
        }
    }
    assert!(seen[0] > 0 && seen[1] > 0, "{seen:?}");
}
