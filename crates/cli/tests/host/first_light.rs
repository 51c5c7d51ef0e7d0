//! `candela up` end to end over HTTP: sampling, history over a restart, pprof for other tools.

use std::process::Command;

use crate::support;
use crate::support::Program;
use crate::support::Running;

const BURNER: &str = "query=%7Bservice_name%3D%22shares%22%7D&from=now-10m";

/// Self value of a function of the burner, once it is there.
fn self_value(candela: &Running, function: &str) -> Option<i64> {
    let top = support::get_json(&candela.url(&format!("/api/v1/top?{BURNER}")));
    let functions = top["functions"].as_array()?;
    let row = functions.iter().find(|row| row["name"] == function)?;
    row["self"].as_i64()
}

#[test]
fn history_survives_a_restart_and_pprof_reads_it() {
    let test = "history_survives_a_restart_and_pprof_reads_it";
    if !support::is_root(test) {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let program = support::compile_shares(folder.path());
    let data_dir = folder.path().join("data");
    let arguments = [
        "up",
        "--listen",
        "127.0.0.1:0",
        "--data-dir",
        data_dir.to_str().unwrap(),
        "--rate",
        "99",
    ];

    let burner = Program::start(Command::new(&program).arg("100000"));
    let candela = Running::start(&arguments);
    support::eventually("the burner's hot function is in the table", || {
        self_value(&candela, "burn_fifty")
    });
    drop(burner);
    assert_eq!(candela.terminate(), Some(0));

    let candela = Running::start(&arguments);
    let after = support::eventually("the history is there after a restart", || {
        self_value(&candela, "burn_fifty")
    });
    assert!(after > 0);
    check_go_tool_pprof(test, &candela);
    let status = support::get_json(&candela.url("/api/v1/status"));
    assert!(
        status["storage"]["blocks"].as_u64().unwrap() >= 1,
        "{status:#}"
    );
}

fn check_go_tool_pprof(test: &str, candela: &Running) {
    if !support::has_tool(test, "go") {
        return;
    }
    let output = Command::new("go")
        .args([
            "tool",
            "pprof",
            "-top",
            &candela.url(&format!("/api/v1/pprof?{BURNER}")),
        ])
        .env("PPROF_TMPDIR", env!("CARGO_TARGET_TMPDIR"))
        .output()
        .unwrap();
    let text = support::stdout(&output);
    assert!(
        text.contains("burn_fifty"),
        "{text}\n{}",
        support::stderr(&output)
    );
}

#[test]
fn the_process_profiles_itself() {
    let test = "the_process_profiles_itself";
    if !support::is_root(test) {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let candela = Running::start(&[
        "up",
        "--listen",
        "127.0.0.1:0",
        "--data-dir",
        folder.path().to_str().unwrap(),
    ]);
    let stop = std::sync::atomic::AtomicBool::new(false);
    std::thread::scope(|scope| {
        // A process that does nothing has an empty profile: keep it busy with questions.
        scope.spawn(|| {
            while !stop.load(std::sync::atomic::Ordering::Relaxed) {
                support::get(&candela.url("/api/v1/services"));
            }
        });
        let (status, body) = support::get(&candela.url("/debug/pprof/profile?seconds=2"));
        stop.store(true, std::sync::atomic::Ordering::Relaxed);
        assert_eq!(status, 200, "{}", String::from_utf8_lossy(&body));
        assert_eq!(body[..2], [0x1f, 0x8b], "gzip");
        let file = folder.path().join("self.pb.gz");
        std::fs::write(&file, &body).unwrap();
        let output = support::run(&["query", "top", "--limit", "0", file.to_str().unwrap()]);
        assert!(
            support::stdout(&output).contains("tokio"),
            "{}",
            support::stdout(&output)
        );
    });
}
