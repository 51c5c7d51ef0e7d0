//! `candela doctor --frames FILE` of profiles that lack something: names, files, beginnings of stacks.

use std::path::Path;
use std::path::PathBuf;
use std::process::Command;

use crate::support;
use crate::support::Program;
use serde_json::Value;

/// As perf prints them: a stripped program, compiled code, the kernel, a system call without its program, a stack
/// that is cut, and one that has all.
const SCRIPT: &str = "\
app 7/7 1.000001: 10 cpu-clock:
\t55d0c0de1000 [unknown] (/srv/app)
\t55d0c0de1234 main (/srv/app)
\t7f0000021111 __libc_start_main@@GLIBC_2.34 (/usr/lib/libc.so.6)

app 7/7 1.000002: 20 cpu-clock:
\t7f1111110000 [unknown] (/tmp/perf-7.map)
\t55d0c0de1234 main (/srv/app)
\t7f0000021111 __libc_start_main@@GLIBC_2.34 (/usr/lib/libc.so.6)

app 7/7 1.000003: 30 cpu-clock:
\tffffffff81000010 vfs_read ([kernel.kallsyms])
\tffffffff81000020 do_syscall_64 ([kernel.kallsyms])
\tffffffff81000030 entry_SYSCALL_64_after_hwframe ([kernel.kallsyms])

app 7/7 1.000004: 40 cpu-clock:
\t7f0000031111 memcpy (/usr/lib/libc.so.6)
\t7f0000031999 qsort (/usr/lib/libc.so.6)

";

fn report(arguments: &[&str]) -> Value {
    let arguments = [&["doctor", "--json", "--frames"], arguments].concat();
    let output = support::run(&arguments);
    support::expect_code(&output, 0);
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(report["schema"], "candela/doctor-stored-frames/v1");
    report
}

/// What is said of the code with this path.
fn code<'a>(report: &'a Value, path: &str) -> &'a Value {
    let mut all = report["code"].as_array().unwrap().iter();
    let found = all.find(|code| code["path"] == path);
    found.unwrap_or_else(|| panic!("{path} in {report:#}"))
}

/// Value by cause of stacks that end early.
fn ends(report: &Value) -> Vec<(&str, i64)> {
    let ends = report["ends"].as_array().unwrap().iter();
    ends.map(|it| {
        (
            it["problem"]["cause"].as_str().unwrap(),
            it["value"].as_i64().unwrap(),
        )
    })
    .collect()
}

fn of_formats(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../formats/tests/data")
        .join(name)
}

#[test]
fn each_part_that_is_missing_has_its_share_its_cause_and_its_remedy() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("app.perf");
    std::fs::write(&path, SCRIPT).unwrap();
    let report = report(&[path.to_str().unwrap()]);
    assert_eq!(report["samples"], 4, "{report:#}");
    assert_eq!(report["total"], 100, "{report:#}");
    assert_eq!(
        (&report["frames"], &report["unnamed_frames"]),
        (&11.into(), &2.into())
    );
    // All but nothing: each sample lacks something.
    assert_eq!(report["incomplete"], 100);

    let app = code(&report, "/srv/app");
    assert_eq!(
        (&app["value"], &app["unnamed_addresses"]),
        (&10.into(), &1.into())
    );
    assert_eq!(app["problem"]["cause"], "no_build_id");
    let compiled = code(&report, "[compiled at run time]");
    assert_eq!(compiled["value"], 20);
    assert_eq!(compiled["problem"]["cause"], "compiled_without_names");
    assert_eq!(ends(&report), [("ends_early", 40), ("kernel_only", 30)]);
    let fix = report["ends"][0]["problem"]["fix"].as_str().unwrap();
    assert!(fix.contains("build /usr/lib/libc.so.6 with"), "{fix}");

    let output = support::run(&["doctor", "--frames", path.to_str().unwrap()]);
    support::expect_code(&output, 0);
    let text = support::stdout(&output);
    for line in [
        "9 of 11 frames have names",
        "40.00% of the profile: stacks end in functions",
        "warn  [compiled at run time], in 20.00% of the profile: 1 of 1 frames have no name, at 1 addresses",
        "100.00% of the profile lacks something",
    ] {
        assert!(text.contains(line), "{line}: {text}");
    }
}

/// A file of another profiler, which leaves names to its server.
#[test]
fn addresses_of_known_files_can_still_be_named() {
    let path = of_formats("pprof/parca.inlining-disabled-cpu.stripped.pprof");
    let report = report(&[path.to_str().unwrap()]);
    let code = &report["code"][0];
    let build_id = code["build_id"].as_str().unwrap();
    assert!(!build_id.is_empty(), "{report:#}");
    let problem = &code["problem"];
    assert_eq!(problem["cause"], "not_symbolized", "{report:#}");
    assert!(problem["meaning"].as_str().unwrap().ends_with(build_id));
    let fix = problem["fix"].as_str().unwrap();
    let push = format!("candela push {} --service NAME", path.display());
    assert!(fix.contains(&push), "{fix}");
    assert!(fix.contains("candela symbols upload"), "{fix}");
    assert!(
        fix.contains("CANDELA_SYMBOLS__DEBUGINFOD_URLS=https://"),
        "{fix}"
    );
}

#[test]
fn profiles_with_all_names_lack_nothing() {
    let report = report(&[of_formats("../../../../bench/data/go-cpu.pb.gz")
        .to_str()
        .unwrap()]);
    assert_eq!(report["code"], serde_json::json!([]), "{report:#}");
    assert_eq!(report["ends"], serde_json::json!([]), "{report:#}");
    assert_eq!(report["incomplete"], 0);
    assert!(report["frames"].as_u64().unwrap() > 1000);
}

/// What it says to do gives the names.
#[test]
fn the_remedy_of_a_recording_gives_its_names() {
    let test = "the_remedy_of_a_recording_gives_its_names";
    if !support::is_root(test) || !support::has_tool(test, "objcopy") {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let file = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    let program = support::compile_shares(folder.path());
    let (program, kept, profile) = (
        program.to_str().unwrap(),
        file("kept"),
        file("shares.pb.gz"),
    );
    // Its symbols are kept, where the recording does not find them.
    std::fs::copy(program, &kept).unwrap();
    assert!(
        Command::new("strip")
            .arg(program)
            .status()
            .unwrap()
            .success()
    );
    let shares = Program::start(Command::new(program).arg("100000"));
    let pid = shares.pid().to_string();
    let record = support::run(&["record", "-d", "1s", "-p", &pid, "-o", &profile]);
    support::expect_code(&record, 0);
    drop(shares);

    let before = report(&[&profile]);
    let stripped = code(&before, program);
    assert_eq!(stripped["problem"]["cause"], "not_symbolized", "{before:#}");
    let fix = stripped["problem"]["fix"].as_str().unwrap();
    assert!(!fix.contains("this machine has its symbols"), "{fix}");

    // With the file back in its place this machine has them.
    std::fs::rename(&kept, program).unwrap();
    let again = report(&[&profile]);
    let fix = code(&again, program)["problem"]["fix"].as_str().unwrap();
    let found = format!("this machine has its symbols, in {program}: ");
    assert!(fix.starts_with(&found), "{fix}");
    let data_dir = file("data");
    let arguments = ["server", "--listen", "127.0.0.1:0", "--data-dir", &data_dir];
    // Names come to what is in a block.
    let environment = [("CANDELA_STORE__FLUSH_INTERVAL", "1s")];
    let server = support::Running::try_start(&arguments, &environment);
    let server = server.unwrap_or_else(|messages| panic!("{messages}"));
    let url = server.url("");
    let commands = ["candela push", "candela symbols upload"].map(|command| {
        let (_, after) = fix.split_once(command).unwrap();
        let end = after.find([',', ';']).unwrap_or(after.len());
        format!("{command}{}", &after[..end])
    });
    for command in commands {
        let arguments: Vec<&str> = command.split(' ').skip(1).collect();
        let arguments = [&arguments[..], &["--server", &url]].concat();
        support::expect_code(&support::run(&arguments), 0);
    }
    support::eventually("the server has the names", || {
        let top = server.url("/api/v1/top?from=now-1h&query=%7Bservice_name%3D%22NAME%22%7D");
        support::get_json(&top)
            .to_string()
            .contains("burn_fifty")
            .then_some(())
    });
}

#[test]
fn what_is_no_profile_is_a_clear_error() {
    let output = support::run(&["doctor", "--frames", "Cargo.toml"]);
    support::expect_code(&output, 1);
    let both = support::run(&["doctor", "--frames", "x", "-p", "1"]);
    support::expect_code(&both, 2);
}
