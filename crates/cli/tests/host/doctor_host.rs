//! `candela doctor` about kinds of profile: what it says of each is what a recording of it meets.

use crate::support;
use serde_json::Value;

/// What `candela doctor --json` calls them, and how they are recorded. Each program has a `main`, and this one its
/// symbols.
const EVENTS: [(&str, &str); 12] = [
    ("kind:cpu", "cpu"),
    ("kind:off-cpu", "off-cpu"),
    ("kind:lock", "lock"),
    ("kind:runq", "runq"),
    ("kind:fault", "fault"),
    ("kind:growth", "growth"),
    ("kind:io", "io"),
    ("kind:kernel-lock", "kernel-lock"),
    ("kind:alloc", "alloc"),
    ("kind:tracepoint", "tracepoint:sched:sched_process_exec"),
    (
        "kind:uprobe",
        concat!("uprobe:", env!("CARGO_BIN_EXE_candela"), ":main"),
    ),
    ("kind:counters", "cycles"),
];

fn checks() -> Vec<Value> {
    let output = support::run(&["doctor", "--json"]);
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(report["schema"], "candela/doctor/v1");
    report["checks"].as_array().unwrap().clone()
}

#[test]
fn what_is_said_of_a_kind_is_what_a_recording_meets() {
    let test = "what_is_said_of_a_kind_is_what_a_recording_meets";
    if !support::is_root(test) {
        return;
    }
    let checks = checks();
    let kinds = checks
        .iter()
        .filter(|it| it["name"].as_str().unwrap().starts_with("kind:"));
    assert_eq!(kinds.count(), EVENTS.len(), "{checks:#?}");
    for (name, event) in EVENTS {
        let check = checks.iter().find(|it| it["name"] == name);
        let check = check.unwrap_or_else(|| panic!("{name} in {checks:#?}"));
        let output = support::run(&["record", "-e", event, "--", "true"]);
        let told = support::stderr(&output);
        if check["ok"] == true {
            assert_eq!(output.status.code(), Some(0), "{name}: {told}");
            continue;
        }
        assert_eq!(output.status.code(), Some(6), "{name}: {told}");
        let detail = check["detail"].as_str().unwrap();
        assert!(told.contains(detail), "{name}: {detail} is not in {told}");
    }
}

/// Both are right, each on machines of its kind.
#[test]
fn a_machine_without_counters_says_so() {
    let test = "a_machine_without_counters_says_so";
    if !support::is_root(test) {
        return;
    }
    let output = support::run(&["record", "-e", "cycles", "-d", "1s", "-a"]);
    let told = support::stderr(&output);
    let checks = checks();
    let counters = checks.iter().find(|it| it["name"] == "kind:counters");
    let counters = counters.unwrap();
    if counters["ok"] == true {
        support::expect_code(&output, 0);
        return;
    }
    support::expect_code(&output, 6);
    let reason = "cannot sample cycles: this machine has no such counter; virtual machines often have none at all";
    assert!(told.contains(reason), "{told}");
    assert_eq!(counters["detail"], reason);
    let fix = counters["fix"].as_str().unwrap();
    assert!(fix.contains("cpu-clock"), "what works here: {fix}");
    let text = support::stdout(&support::run(&["doctor"]));
    let line = text.lines().find(|line| line.contains("kind:counters"));
    assert!(line.unwrap().starts_with("warn"), "{text}");

    // Of several kinds the others go on.
    let busy = "i=0; while [ $i -lt 300000 ]; do i=$((i+1)); done";
    let output = support::run(&["record", "-e", "cpu,cycles", "--", "sh", "-c", busy]);
    support::expect_code(&output, 0);
    let told = support::stderr(&output);
    assert!(
        told.contains("without cycles: cannot sample cycles: this machine has no such counter"),
        "{told}"
    );
}
