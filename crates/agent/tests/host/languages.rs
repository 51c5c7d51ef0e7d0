//! Programs of other languages and runtimes: complete stacks and names (target A5, which `measure::truth` asks for).

use std::path::Path;
use std::path::PathBuf;
use std::process::Command;
use std::process::Stdio;
use std::time::Duration;

use crate::bounds::Bounds;
use crate::bounds::expect_complete_recording;
use crate::support;
use crate::support::Stacks;
use candela_agent::Recording;
use candela_model::FrameKind;
use candela_model::Profile;
use candela_testing::expect_within;
use candela_testing::more_than;

fn quiet(program: &Path, arguments: &[&str]) -> Command {
    let mut command = Command::new(program);
    command.args(arguments).stdout(Stdio::null());
    command
}

fn build(directory: &Path, tool: &str, flags: &[&str], source: &str, name: &str) -> PathBuf {
    let program = directory.join(name);
    let paths = [
        PathBuf::from("-o"),
        program.clone(),
        support::source(source),
    ];
    support::run(tool, flags.iter().map(PathBuf::from).chain(paths));
    program
}

/// Stripped; with C where the source has some.
fn build_go(directory: &Path, source: &Path) -> PathBuf {
    let program = directory.join("program_go");
    let output = Command::new("go")
        .args(["build", "-ldflags=-s -w", "-o"])
        .args([&program, source])
        .env("GOFLAGS", "-mod=mod")
        .env("GO111MODULE", "off")
        .env("CGO_ENABLED", "1")
        .output()
        .expect("go starts");
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    program
}

/// The stacks that `is_of_interest` accepts have `entry` at their root.
fn assert_reaches(
    bounds: Bounds,
    recording: &Recording,
    stacks: &Stacks,
    entry: &[&str],
    is_of_interest: impl Fn(&[String]) -> bool,
) {
    let all = stacks.count(&is_of_interest);
    let least = bounds.choose(50.0, 200.0);
    expect_within("samples", all as f64, more_than(least), stacks.sketch());
    let complete = stacks.count(|names| {
        let root = names.last().map(String::as_str).unwrap_or_default();
        is_of_interest(names) && entry.contains(&root)
    });
    let others = stacks.sketch_of(|names| {
        let root = names.last().map(String::as_str).unwrap_or_default();
        is_of_interest(names) && !entry.contains(&root)
    });
    let sketch = stacks.sketch();
    let details = format_args!("those that do not reach {entry:?}:\n{others}\nmost:\n{sketch}");
    let what = "share of complete stacks";
    bounds.expect_complete(what, complete, all, &recording.report, details);
}

fn assert_shares(bounds: Bounds, stacks: &Stacks, functions: [&str; 3]) {
    let samples = functions.map(|function| (function, stacks.with(function)));
    bounds.assert_shares(samples, bounds.choose(50, 200));
}

fn has_kind(profile: &Profile, kind: FrameKind) -> bool {
    profile
        .symbols
        .locations()
        .iter()
        .any(|location| location.kind == kind)
}

#[test]
fn cpp_with_exceptions_and_inlining() {
    check_cpp(Bounds::Wide);
}

pub(crate) fn check_cpp(bounds: Bounds) {
    if support::cannot_sample() || support::lacks("g++") || support::lacks("objcopy") {
        return;
    }
    let _turn = support::turn();
    let directory = tempfile::tempdir().expect("a temporary directory");
    let flags = ["-O2", "-g", "-fomit-frame-pointer"];
    let program = build(directory.path(), "g++", &flags, "shares.cpp", "shares_cpp");
    support::split_debug(&program);
    let recording = support::record_command(quiet(&program, &[bounds.choose("0.6", "2")]));
    let stacks = Stacks::all(&recording.profile);
    assert_reaches(bounds, &recording, &stacks, &["_start"], |names| {
        names.iter().any(|name| name == "main")
    });
    let burns = [
        "burner::burn<500>(int)",
        "burner::burn<300>(int)",
        "burner::burn<200>(int)",
    ];
    let burns = burns.map(|name| actual_name(&recording.profile, name));
    assert_shares(bounds, &stacks, [&burns[0], &burns[1], &burns[2]]);
    let inlined =
        stacks.count(|names| names[0].contains("mix_inlined") && names[1].contains("burn<"));
    let least = more_than(bounds.choose(20.0, 100.0));
    let what = "samples that show the inlined function";
    expect_within(what, inlined as f64, least, stacks.sketch());
    let thrown = stacks.count(|names| {
        names
            .iter()
            .any(|name| name.starts_with("_Unwind_") || name == "__cxa_throw")
    });
    assert!(thrown > 0, "no exception was sampled\n{}", stacks.sketch());
    if bounds == Bounds::Sharp {
        expect_complete_recording(&recording.report);
    }
}

/// Compilers differ in whether a template's return type is part of the name.
fn actual_name(profile: &Profile, wanted: &str) -> String {
    let symbols = &profile.symbols;
    let part = wanted
        .trim_start_matches("burner::")
        .trim_end_matches("(int)");
    let names = symbols
        .functions()
        .iter()
        .map(|function| symbols.strings.get(function.name));
    let found = names.into_iter().find(|name| name.contains(part));
    found.unwrap_or(wanted).to_owned()
}

#[test]
fn rust_release_with_line_tables() {
    check_rust(Bounds::Wide);
}

pub(crate) fn check_rust(bounds: Bounds) {
    if support::cannot_sample() || support::lacks("rustc") {
        return;
    }
    let _turn = support::turn();
    let directory = tempfile::tempdir().expect("a temporary directory");
    let flags = [
        "--edition=2021",
        "-Copt-level=3",
        "-Cdebuginfo=line-tables-only",
        "-Cstrip=none",
    ];
    let program = build(
        directory.path(),
        "rustc",
        &flags,
        "shares.rs",
        "shares_rust",
    );
    let recording = support::record_command(quiet(&program, &[bounds.choose("30", "80")]));
    let stacks = Stacks::all(&recording.profile);
    assert_reaches(
        bounds,
        &recording,
        &stacks,
        &["__clone3", "clone3", "__clone", "clone"],
        |names| names.iter().any(|name| name.contains("descend")),
    );
    assert_shares(
        bounds,
        &stacks,
        ["burn_fifty", "burn_thirty", "burn_twenty"].map(|name| {
            let with_path = actual_name(&recording.profile, name);
            &*with_path.leak()
        }),
    );
    let inlined = stacks.count(|names| {
        names
            .iter()
            .take(4)
            .any(|name| name.contains("mix_inlined"))
    });
    let least = more_than(bounds.choose(20.0, 100.0));
    let what = "samples that show the inlined function";
    expect_within(what, inlined as f64, least, stacks.sketch());
    assert!(has_kind(&recording.profile, FrameKind::Rust));
}

#[test]
fn stripped_go() {
    check_go(Bounds::Wide);
}

pub(crate) fn check_go(bounds: Bounds) {
    if support::cannot_sample() || support::lacks("go") {
        return;
    }
    let _turn = support::turn();
    let directory = tempfile::tempdir().expect("a temporary directory");
    let program = build_go(directory.path(), &support::source("shares.go"));
    let recording = support::record_command(quiet(&program, &[bounds.choose("30", "80")]));
    let stacks = Stacks::all(&recording.profile);
    assert_reaches(bounds, &recording, &stacks, &["runtime.goexit"], |names| {
        names.iter().any(|name| name == "main.descend")
    });
    assert_shares(
        bounds,
        &stacks,
        ["main.burnFifty", "main.burnThirty", "main.burnTwenty"],
    );
    let depth_40 = stacks.count(|names| {
        names[0] == "main.burnFifty"
            && names.iter().filter(|name| *name == "main.descend").count() == 40
    });
    let fifty = stacks.count(|names| names[0] == "main.burnFifty");
    let what = "share of stacks of burnFifty that are 40 calls deep";
    bounds.expect_complete(what, depth_40, fifty, &recording.report, stacks.sketch());
    assert!(has_kind(&recording.profile, FrameKind::Go));
}

#[test]
fn go_and_c_that_call_each_other() {
    check_go_and_c(Bounds::Wide);
}

pub(crate) fn check_go_and_c(bounds: Bounds) {
    if support::cannot_sample() || support::lacks("go") || support::lacks("gcc") {
        return;
    }
    let _turn = support::turn();
    let directory = tempfile::tempdir().expect("a temporary directory");
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../bench/driver/programs/mixed.go");
    let program = build_go(directory.path(), &source);
    let command = quiet(&program, &["120"]);
    // A single stack is to be less than 0.5 %.
    let seconds = bounds.choose(1, 6);
    let recording = support::record_running(
        command,
        bounds.choose(499, 199),
        Duration::from_secs(seconds),
    );
    let stacks = Stacks::all(&recording.profile);
    assert_reaches(bounds, &recording, &stacks, &["runtime.goexit"], |names| {
        names.iter().any(|name| name == "main.goDescend")
    });
    // The rest is the runtime's: its collector and its scheduler.
    let (own, all) = (stacks.with("main.goDescend"), stacks.total());
    let share = own as f64 / all as f64;
    let what = "share of the program's own functions";
    expect_within(what, share, bounds.choose(0.5, 0.98).., stacks.sketch());
    // From the innermost: Go, called back by C, called by Go.
    let order = [
        "main.goLeaf",
        "main.goMiddle",
        "runtime.asmcgocall",
        "main.goDescend",
        "main.main",
    ];
    let is_through_both = |names: &[String]| {
        let mut names = names.iter();
        order.iter().all(|wanted| names.any(|name| name == wanted))
    };
    let through_both = stacks.count(is_through_both);
    let leaves = stacks.with("main.goLeaf");
    let least = more_than(bounds.choose(20.0, 100.0));
    expect_within("samples of goLeaf", leaves as f64, least, stacks.sketch());
    let others = stacks
        .sketch_of(|names| names.iter().any(|name| name == order[0]) && !is_through_both(names));
    let sketch = stacks.sketch();
    let details = format_args!("those that are not through both:\n{others}\nmost:\n{sketch}");
    let what = "share of stacks of goLeaf through both languages";
    bounds.expect_complete(what, through_both, leaves, &recording.report, details);
}

#[test]
fn python_native_frames() {
    check_python(Bounds::Wide);
}

pub(crate) fn check_python(bounds: Bounds) {
    let python = Path::new("/usr/bin/python3");
    if support::cannot_sample() || std::fs::metadata(python).is_err() {
        support::skipped(&format!("needs {}", python.display()));
        return;
    }
    let _turn = support::turn();
    let script = support::source("burn.py");
    let script = script.to_str().expect("an UTF-8 path");
    let recording = support::record_command(quiet(python, &[script, bounds.choose("0.6", "1.5")]));
    let services: Vec<_> = recording
        .profile
        .series
        .iter()
        .map(|series| &series.labels)
        .collect();
    let stacks = Stacks::of(&recording.profile, |series| {
        series.labels.get("service_name") == Some("python:burn.py")
    });
    assert!(
        !stacks.rows.is_empty(),
        "{services:?}\n{:?}",
        recording.report
    );
    assert_reaches(bounds, &recording, &stacks, &["_start"], |names| {
        names
            .iter()
            .any(|name| name.starts_with("_PyEval_EvalFrameDefault"))
    });
}

#[test]
fn node_native_frames() {
    check_node(Bounds::Wide);
}

pub(crate) fn check_node(bounds: Bounds) {
    if support::cannot_sample() || support::lacks("node") {
        return;
    }
    let _turn = support::turn();
    let script = support::source("burn.js");
    let script = script.to_str().expect("an UTF-8 path");
    let arguments = ["--perf-basic-prof", script, bounds.choose("1", "2")];
    let directory = tempfile::tempdir().expect("a temporary directory");
    let mut command = quiet(Path::new("node"), &arguments);
    command.current_dir(directory.path());
    let recording = support::record_command(command);
    let stacks = Stacks::of(&recording.profile, |series| {
        series.labels.get("service_name") == Some("node:burn.js")
    });
    assert_reaches(bounds, &recording, &stacks, &["_start"], |names| {
        names
            .iter()
            .any(|name| name.contains("node::Start") || name == "main")
    });
    let scripts = stacks.count(|names| names.iter().any(|name| name.contains("burnScript")));
    let least = more_than(bounds.choose(20.0, 50.0));
    expect_within(
        "samples of burnScript",
        scripts as f64,
        least,
        stacks.sketch(),
    );
    if bounds == Bounds::Sharp {
        let complete = recording.report.quality.complete_share();
        let details = format_args!("{:?}", recording.report);
        expect_within(
            "share of complete stacks",
            complete,
            more_than(0.9),
            details,
        );
    }
}

/// What runs already has its tables when the recording begins, so that stacks are copied only for what
/// is mapped meanwhile, as a JIT compiler does.
#[test]
fn a_short_recording_of_what_runs_already() {
    if support::cannot_sample() || support::lacks("node") {
        return;
    }
    let _turn = support::turn();
    let script = support::source("burn.js");
    let arguments = [script.to_str().expect("an UTF-8 path"), "120"];
    let command = quiet(Path::new("node"), &arguments);
    let recording = support::record_running(command, 499, Duration::from_millis(300));
    let report = recording.report;
    assert!(report.quality.samples > 50, "{report:?}");
    assert!(report.quality.complete_share() > 0.98, "{report:?}");
    assert!(
        report.source.stack_copies * 20 <= report.quality.samples,
        "{report:?}"
    );
}

#[test]
fn static_musl() {
    check_musl(Bounds::Wide);
}

pub(crate) fn check_musl(bounds: Bounds) {
    if support::cannot_sample() || support::lacks("musl-gcc") {
        return;
    }
    let _turn = support::turn();
    let directory = tempfile::tempdir().expect("a temporary directory");
    let flags = ["-O2", "-static", "-fomit-frame-pointer"];
    let program = build(
        directory.path(),
        "musl-gcc",
        &flags,
        "shares.c",
        "shares_musl",
    );
    let recording = support::record_command(quiet(&program, &[bounds.choose("0.6", "1.5")]));
    let stacks = Stacks::all(&recording.profile);
    assert_reaches(
        bounds,
        &recording,
        &stacks,
        &["_start", "_start_c"],
        |names| names[0].starts_with("burn_"),
    );
    assert_shares(
        bounds,
        &stacks,
        ["burn_fifty", "burn_thirty", "burn_twenty"],
    );
}
