//! `candela doctor -p PID` of real programs that lack something: symbols, unwind information, their own file, names
//! of code that was compiled at run time.

use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::path::PathBuf;
use std::process::Command;

use crate::support;
use crate::support::Program;
use candela_testing::expect_within;
use candela_testing::more_than;
use serde_json::Value;

/// Builds tests/programs/burn.c.
fn build(folder: &Path, flags: &[&str]) -> PathBuf {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/programs/burn.c");
    let program = folder.join("burn");
    let status = Command::new("gcc")
        .args(["-O2", "-fomit-frame-pointer", "-Wl,--build-id=sha1"])
        .args(flags)
        .arg("-o")
        .arg(&program)
        .arg(&source)
        .status()
        .unwrap();
    assert!(status.success(), "gcc compiles {}", source.display());
    program
}

fn doctor(pid: u32) -> Value {
    let output = support::run(&["doctor", "-p", &pid.to_string(), "--json"]);
    support::expect_code(&output, 0);
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(report["schema"], "candela/doctor-frames/v1");
    assert_eq!(report["pid"], pid);
    report
}

/// What is said of the file or the code with this path.
fn code<'a>(report: &'a Value, path: &str) -> &'a Value {
    let mut all = report["code"].as_array().unwrap().iter();
    let found = all.find(|code| code["path"] == path);
    found.unwrap_or_else(|| panic!("{path} in {report:#}"))
}

fn problem<'a>(code: &'a Value, cause: &str) -> Option<&'a Value> {
    let mut problems = code["problems"].as_array().unwrap().iter();
    problems.find(|problem| problem["cause"] == cause)
}

fn count(report: &Value, result: &str) -> u64 {
    let results = report["sampled"]["results"].as_array().unwrap();
    let found = results.iter().find(|it| it["name"] == result);
    found.map_or(0, |it| it["count"].as_u64().unwrap())
}

#[track_caller]
fn expect_more(what: &str, seen: u64, least: u64, report: &Value) {
    let details = format_args!("{report:#}");
    expect_within(what, seen as f64, more_than(least as f64), details);
}

#[test]
fn a_stripped_program_is_told_where_its_symbols_belong() {
    check_stripped("a_stripped_program_is_told_where_its_symbols_belong", 0);
}

/// With more frames and complete stacks than `least`.
pub(crate) fn check_stripped(test: &str, least: u64) {
    if !support::is_root(test) {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let path = build(folder.path(), &["-s"]);
    let program = Program::start(&mut Command::new(&path));
    let report = doctor(program.pid());
    let burn = code(&report, path.to_str().unwrap());
    let unnamed = burn["unnamed_frames"].as_u64().unwrap();
    expect_more("frames without a name", unnamed, least, &report);
    let stripped = problem(burn, "stripped").unwrap_or_else(|| panic!("{report:#}"));
    let id = burn["build_id"].as_str().unwrap();
    let place = format!("/usr/lib/debug/.build-id/{}/{}.debug", &id[..2], &id[2..]);
    let remedy = stripped["fix"].as_str().unwrap();
    assert!(remedy.contains(&place), "{remedy}");
    assert!(remedy.contains("DEBUGINFOD_URLS=https://"), "{remedy}");
    // Nothing is wrong with its stacks.
    let complete = count(&report, "complete");
    expect_more("complete stacks", complete, least, &report);
    assert_eq!(burn["short_stacks"], 0, "{report:#}");

    let output = support::run(&["doctor", "-p", &program.pid().to_string()]);
    support::expect_code(&output, 0);
    let text = support::stdout(&output);
    assert!(text.contains("frames have no name"), "{text}");
    assert!(text.contains("fix: fetch them by build id"), "{text}");
}

#[test]
fn a_program_with_symbols_lacks_nothing() {
    check_with_symbols("a_program_with_symbols_lacks_nothing", 0);
}

/// With more frames than `least`.
pub(crate) fn check_with_symbols(test: &str, least: u64) {
    if !support::is_root(test) {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let path = build(folder.path(), &["-g"]);
    let program = Program::start(&mut Command::new(&path));
    let report = doctor(program.pid());
    let burn = code(&report, path.to_str().unwrap());
    assert_eq!(burn["named_by"], serde_json::json!(["dwarf", "symtab"]));
    assert_eq!(burn["unwound_by"][0], "eh_frame");
    assert_eq!(burn["problems"], serde_json::json!([]), "{report:#}");
    assert_eq!(burn["unnamed_frames"], 0, "{report:#}");
    let frames = burn["frames"].as_u64().unwrap();
    expect_more("frames", frames, least, &report);
}

#[test]
fn without_unwind_information_frames_are_found_by_the_code() {
    check_found_by_code("without_unwind_information_frames_are_found_by_the_code", 0);
}

/// With more complete stacks than `least`.
pub(crate) fn check_found_by_code(test: &str, least: u64) {
    if !support::is_root(test) || !support::has_tool(test, "objcopy") {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let path = build(folder.path(), &["-static"]);
    let bare = folder.path().join("bare");
    let status = Command::new("objcopy")
        .args([
            "--remove-section=.eh_frame",
            "--remove-section=.eh_frame_hdr",
        ])
        .args([&path, &bare])
        .status()
        .unwrap();
    assert!(status.success());
    let program = Program::start(&mut Command::new(&bare));
    let report = doctor(program.pid());
    let bare = code(&report, bare.to_str().unwrap());
    assert_eq!(
        bare["unwound_by"],
        serde_json::json!(["code"]),
        "{report:#}"
    );
    let complete = count(&report, "complete");
    expect_more("complete stacks", complete, least, &report);
}

#[test]
fn a_deleted_program_is_read_by_root() {
    let test = "a_deleted_program_is_read_by_root";
    if !support::is_root(test) {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let path = build(folder.path(), &[]);
    let program = Program::start(&mut Command::new(&path));
    support::eventually("it runs", || {
        let exe = std::fs::read_link(format!("/proc/{}/exe", program.pid())).ok()?;
        (exe == path).then_some(())
    });
    std::fs::remove_file(&path).unwrap();
    let report = doctor(program.pid());
    let burn = code(&report, path.to_str().unwrap());
    assert_eq!(burn["is_deleted"], true);
    assert_eq!(burn["named_by"], serde_json::json!(["symtab"]));
    assert_eq!(burn["unnamed_frames"], 0, "{report:#}");
}

/// Who may sample own processes alone has these, who may not is told so; and of a deleted program why it cannot be read.
#[test]
fn without_privileges_code_is_looked_into_all_the_same() {
    let test = "without_privileges_code_is_looked_into_all_the_same";
    if !support::is_root(test) || !support::has_tool(test, "setpriv") {
        return;
    }
    // The program under test need not be readable by others where it was built.
    let folder = tempfile::tempdir_in("/tmp").unwrap();
    let everybody = std::fs::Permissions::from_mode(0o755);
    std::fs::set_permissions(folder.path(), everybody.clone()).unwrap();
    let candela = folder.path().join("candela");
    std::fs::copy(env!("CARGO_BIN_EXE_candela"), &candela).unwrap();
    let path = build(folder.path(), &["-s"]);
    for path in [&candela, &path] {
        std::fs::set_permissions(path, everybody.clone()).unwrap();
    }
    let as_nobody = |program: &Path| {
        let mut command = support::in_clean_environment("setpriv");
        command.args(["--reuid=65534", "--regid=65534", "--clear-groups"]);
        command.env("HOME", "/nonexistent").arg(program);
        command
    };
    let program = Program::start(&mut as_nobody(&path));
    let pid = program.pid().to_string();
    support::eventually("setpriv has become the program", || {
        let exe = std::fs::read_link(format!("/proc/{pid}/exe")).ok()?;
        (exe == path).then_some(())
    });
    let look = || -> Value {
        let output = as_nobody(&candela)
            .args(["doctor", "-p", &pid, "--json"])
            .output();
        let output = output.unwrap();
        support::expect_code(&output, 0);
        serde_json::from_slice(&output.stdout).unwrap()
    };
    let report = look();
    let paranoid = std::fs::read_to_string("/proc/sys/kernel/perf_event_paranoid").unwrap();
    // Up to 2 everybody's own processes may be sampled by perf events.
    let may_sample = paranoid.trim().parse::<i32>().unwrap() <= 2;
    assert_eq!(report["sampled"].is_object(), may_sample, "{report:#}");
    let refusal = report["not_sampled"].as_str().unwrap();
    assert_eq!(refusal.is_empty(), may_sample, "{report:#}");
    let burn = code(&report, path.to_str().unwrap());
    assert!(problem(burn, "stripped").is_some(), "{report:#}");

    std::fs::remove_file(&path).unwrap();
    let report = look();
    let burn = code(&report, path.to_str().unwrap());
    let deleted = problem(burn, "deleted").unwrap_or_else(|| panic!("{report:#}"));
    assert!(
        deleted["fix"]
            .as_str()
            .unwrap()
            .contains("restart the process")
    );
}

#[test]
fn a_runtime_is_told_which_flag_gives_names() {
    check_runtime("a_runtime_is_told_which_flag_gives_names", 0);
}

/// With more frames with names than `least`.
pub(crate) fn check_runtime(test: &str, least: u64) {
    if !support::is_root(test) || !support::has_tool(test, "node") {
        return;
    }
    let script =
        "function burn(n) { return n < 2 ? n : burn(n - 1) + burn(n - 2) } for (;;) burn(20)";
    const COMPILED: &str = "[compiled at run time]";
    let start = |flags: &[&str]| {
        let mut command = support::in_clean_environment("node");
        Program::start(command.args(flags).args(["-e", script]))
    };
    let nameless = start(&[]);
    // A busy host takes its time until the function is compiled.
    let report = support::eventually("it runs compiled code", || {
        let report = doctor(nameless.pid());
        assert_eq!(report["runtime"], "Node.js", "{report:#}");
        let mut code = report["code"].as_array()?.iter();
        code.any(|code| code["path"] == COMPILED)
            .then_some(report.clone())
    });
    let compiled = code(&report, COMPILED);
    let problem_of_names = problem(compiled, "compiled_without_names");
    let remedy = &problem_of_names.unwrap_or_else(|| panic!("{report:#}"))["fix"];
    let remedy = remedy.as_str().unwrap();
    let (_, flags) = remedy.split_once("NODE_OPTIONS='").unwrap();
    let (flags, _) = flags.split_once('\'').unwrap();

    // The flags that it named are the remedy.
    let flags: Vec<&str> = flags.split(' ').collect();
    let named = start(&flags);
    // Node writes a name a moment after it has compiled the function.
    let report = support::eventually("the names are there", || {
        let report = doctor(named.pid());
        let mut code = report["code"].as_array()?.iter();
        let compiled = code.find(|code| code["path"] == COMPILED)?;
        let is_named = compiled["named_by"] == serde_json::json!(["perf_map"]);
        let frames = compiled["frames"].as_u64()?;
        let unnamed = compiled["unnamed_frames"].as_u64()?;
        (is_named && unnamed * 20 < frames).then_some(report.clone())
    });
    let compiled = code(&report, COMPILED);
    assert!(
        problem(compiled, "compiled_without_names").is_none(),
        "{report:#}"
    );
    let frames = compiled["frames"].as_u64().unwrap();
    expect_more("frames of compiled code", frames, least, &report);
    let map = format!("/tmp/perf-{}.map", named.pid());
    check_names_behind_a_link(named.pid(), Path::new(&map));
    drop(named);
    std::fs::remove_file(map).unwrap();
}

/// Links are not followed, and the report says so. Afterwards the link is in the place of the map.
fn check_names_behind_a_link(pid: u32, map: &Path) {
    let elsewhere = tempfile::NamedTempFile::new().unwrap();
    std::fs::copy(map, elsewhere.path()).unwrap();
    std::fs::remove_file(map).unwrap();
    std::os::unix::fs::symlink(elsewhere.path(), map).unwrap();
    let report = doctor(pid);
    let compiled = code(&report, "[compiled at run time]");
    let refused = problem(compiled, "names_refused").unwrap_or_else(|| panic!("{report:#}"));
    let meaning = refused["meaning"].as_str().unwrap();
    assert!(meaning.contains("symbolic link"), "{meaning}");
}

#[test]
fn what_is_no_process_is_a_clear_error() {
    let output = support::run(&["doctor", "-p", support::NO_PID]);
    support::expect_code(&output, 1);
    assert!(support::stderr(&output).contains(support::NO_PID));
}
