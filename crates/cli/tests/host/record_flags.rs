//! What the flags of `candela record` choose: whose samples, of which kinds, and what people know of `perf record`.

use std::path::Path;
use std::path::PathBuf;
use std::process::Command;
use std::process::Output;

use crate::support;
use crate::support::Program;
use serde_json::Value;

/// A group of processes that goes with the test.
struct Cgroup(PathBuf);

impl Cgroup {
    /// `None` where none can be made.
    fn create() -> Option<Self> {
        let roots = ["/sys/fs/cgroup/unified", "/sys/fs/cgroup"];
        let is_unified = |root: &&str| {
            Path::new(root)
                .join("cgroup.controllers")
                .try_exists()
                .unwrap_or(false)
        };
        let root = roots.into_iter().find(is_unified)?;
        let path = Path::new(root).join(format!("candela-record-{}", std::process::id()));
        std::fs::create_dir(&path).ok()?;
        Some(Self(path))
    }
}

impl Drop for Cgroup {
    fn drop(&mut self) {
        // Busy for a moment after its last process; what stays is empty.
        let _ = std::fs::remove_dir(&self.0);
    }
}

fn record(arguments: &[&str]) -> Output {
    let arguments = [&["record"], arguments].concat();
    let output = support::run(&arguments);
    support::expect_code(&output, 0);
    output
}

/// Of a recorded file, the sum of a type's values that a filter leaves.
fn total(file: &str, profile_type: &str, filter: &[&str]) -> u64 {
    let arguments = [
        "query",
        "top",
        file,
        "--type",
        profile_type,
        "--format",
        "json",
    ];
    let output = support::run(&[&arguments, filter].concat());
    if output.status.code() == Some(5) {
        return 0;
    }
    support::expect_code(&output, 0);
    let top: Value = serde_json::from_slice(&output.stdout).unwrap();
    top["total"].as_u64().unwrap()
}

/// The names of the programs that a recording as our JSON has series of.
fn programs(file: &Path) -> Vec<String> {
    let text = std::fs::read_to_string(file).unwrap();
    let names = ["inside", "outside"];
    let quoted = |name: &&str| text.contains(&format!("\"{name}\""));
    names
        .into_iter()
        .filter(quoted)
        .map(str::to_owned)
        .collect()
}

/// Two busy programs of different names.
fn copies(folder: &Path) -> [PathBuf; 2] {
    let program = support::compile_shares(folder);
    ["inside", "outside"].map(|name| {
        let copy = folder.join(name);
        std::fs::copy(&program, &copy).unwrap();
        copy
    })
}

#[test]
fn only_a_control_group_is_recorded() {
    let test = "only_a_control_group_is_recorded";
    if !support::is_root(test) {
        return;
    }
    let Some(cgroup) = Cgroup::create() else {
        println!("SKIP {test}: no control group can be made here");
        return;
    };
    let folder = tempfile::tempdir().unwrap();
    let [inside, outside] = copies(folder.path());
    let _outside = Program::start(Command::new(&outside).arg("100000"));
    let mut shell = Command::new("sh");
    let script = r#"echo $$ >"$0/cgroup.procs" && exec "$1" 100000"#;
    shell.args(["-c", script]).arg(&cgroup.0).arg(&inside);
    let _inside = Program::start(&mut shell);
    let members = cgroup.0.join("cgroup.procs");
    support::eventually("the program is in the group", || {
        let members = std::fs::read_to_string(&members).unwrap();
        (!members.trim().is_empty()).then_some(())
    });
    let file = folder.path().join("group.json");
    let group = cgroup.0.to_str().unwrap();
    record(&[
        "--cgroup",
        group,
        "-F",
        "499",
        "-d",
        "500ms",
        "-o",
        file.to_str().unwrap(),
    ]);
    assert_eq!(programs(&file), ["inside"]);

    let missing = support::run(&["record", "--cgroup", "/nonexistent", "-d", "1s"]);
    assert_eq!(missing.status.code(), Some(1));
    let told = support::stderr(&missing);
    assert!(
        told.contains("/nonexistent") && told.contains("cgroup v2"),
        "{told}"
    );
}

#[test]
fn selectors_choose_whose_samples_are_kept() {
    let test = "selectors_choose_whose_samples_are_kept";
    if !support::is_root(test) {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let running = copies(folder.path()).map(|program| {
        let mut command = Command::new(program);
        Program::start(command.arg("100000"))
    });
    let file = folder.path().join("chosen.json");
    let chosen = |flags: &[&str]| {
        let pids = running.each_ref().map(|program| program.pid().to_string());
        let path = file.to_str().unwrap();
        let pids = pids.join(",");
        let arguments = ["-p", &pids, "-F", "499", "-d", "500ms", "-o", path];
        record(&[&arguments, flags].concat());
        programs(&file)
    };
    let (inside, outside) = (
        r#"{process_executable_name="inside"}"#,
        r#"{process_executable_name=~"out.*"}"#,
    );
    assert_eq!(chosen(&[]), ["inside", "outside"]);
    assert_eq!(chosen(&["--include", inside]), ["inside"]);
    assert_eq!(
        chosen(&["--include", inside, "--include", outside]),
        ["inside", "outside"]
    );
    assert_eq!(chosen(&["--exclude", inside]), ["outside"]);
    let nothing = ["--include", inside, "--exclude", inside];
    let pid = running[0].pid().to_string();
    let output = support::run(&[&["record", "-p", &pid, "-d", "500ms"][..], &nothing].concat());
    support::expect_code(&output, 5);
    let told = support::stderr(&output);
    assert!(
        told.contains("--include and --exclude leave all of them out"),
        "{told}"
    );
    let wrong = support::run(&["record", "-a", "--include", "inside"]);
    support::expect_code(&wrong, 2);
}

#[test]
fn waits_tell_who_ended_them() {
    let test = "waits_tell_who_ended_them";
    if !support::is_root(test) {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("waits.json");
    let path = file.to_str().unwrap();
    let command = ["--", "sh", "-c", "sleep 0.3 | cat"];
    let of = |flags: &[&str]| {
        let arguments = ["-e", "off-cpu", "-F", "499"];
        record(&[&arguments, flags, &command].concat())
    };
    of(&["-o", path]);
    let text = std::fs::read_to_string(&file).unwrap();
    assert!(!text.contains("\"waker\""), "nobody asked");
    of(&["--wakers", "-o", path]);
    let text = std::fs::read_to_string(&file).unwrap();
    assert!(
        text.contains("\"waker\"") && text.contains("\"sleep\""),
        "{text}"
    );
    let stacks = folder.path().join("waits.folded");
    of(&["--wakers=stack", "-o", stacks.to_str().unwrap()]);
    let text = std::fs::read_to_string(&stacks).unwrap();
    assert!(text.contains(";--;"), "{text}");
    let output = record(&["--wakers", "--", "true"]);
    let told = support::stderr(&output);
    assert!(told.contains("note: --wakers is about waits"), "{told}");
}

#[test]
fn what_perf_needs_for_stacks_is_taken_and_changes_nothing() {
    let test = "what_perf_needs_for_stacks_is_taken_and_changes_nothing";
    if !support::is_root(test) {
        return;
    }
    for flags in [
        &["-g"][..],
        &["--call-graph", "fp"],
        &["--call-graph", "dwarf,16384"],
        &["-g", "--call-graph=lbr"],
    ] {
        let output = record(&[flags, &["--", "true"]].concat());
        let told = support::stderr(&output);
        assert_eq!(told.matches("stacks are always taken").count(), 1, "{told}");
        let quiet = record(&[flags, &["-q", "--", "true"]].concat());
        assert_eq!(support::stderr(&quiet), "");
    }
    let output = support::run(&["record", "--call-graph", "orc", "--", "true"]);
    support::expect_code(&output, 2);
    assert!(support::stderr(&output).contains("fp, dwarf and lbr"));
}

#[test]
fn modifiers_of_counters_are_kept_or_refused() {
    let test = "modifiers_of_counters_are_kept_or_refused";
    if !support::is_root(test) {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("spaces.pb.gz");
    let path = file.to_str().unwrap();
    let script = "i=0; while [ $i -lt 300000 ]; do i=$((i+1)); done; \
                  exec dd if=/dev/zero of=/dev/null bs=1 count=500000 status=none";
    let events = "cpu-clock:u,cpu-clock:k";
    record(&[
        "-F", "499", "-e", events, "-o", path, "--", "sh", "-c", script,
    ]);
    let of_kernel = ["--focus", "kind:kernel"];
    assert!(total(path, "event:cpu-clock_u", &[]) > 0);
    assert_eq!(total(path, "event:cpu-clock_u", &of_kernel), 0);
    let in_kernel = total(path, "event:cpu-clock_k", &[]);
    assert!(in_kernel > 0);
    assert_eq!(total(path, "event:cpu-clock_k", &of_kernel), in_kernel);

    let output = support::run(&["record", "-e", "cpu-clock:pp", "--", "true"]);
    support::expect_code(&output, 2);
    let told = support::stderr(&output);
    assert!(
        told.contains("\"cpu-clock:pp\" has a modifier that is not known"),
        "{told}"
    );
}

#[test]
fn faults_come_with_the_memory_that_is_asked_for() {
    let test = "faults_come_with_the_memory_that_is_asked_for";
    if !support::is_root(test) {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let script = "seq 1 100000 | sort -n | tail -n 1";
    let recorded = |kinds: &str, name: &str| {
        let path = folder.path().join(name).to_str().unwrap().to_owned();
        record(&["-e", kinds, "-o", &path, "--", "sh", "-c", script]);
        path
    };
    let both = recorded("fault", "both.pb.gz");
    assert!(total(&both, "page_faults:faults", &[]) > 100);
    assert!(total(&both, "memory_growth:growth", &[]) > 1 << 16);
    let alone = recorded("growth", "growth.pb.gz");
    assert!(total(&alone, "memory_growth:growth", &[]) > 1 << 16);
    let types = support::stdout(&support::run(&["query", "types", &alone]));
    assert!(!types.contains("page_faults"), "growth alone: {types}");
    recorded("fault", "memory.folded");
    for part in ["memory.fault.folded", "memory.growth.folded"] {
        let text = std::fs::read_to_string(folder.path().join(part)).unwrap();
        assert!(text.lines().count() > 1, "{part}: {text}");
    }
}
