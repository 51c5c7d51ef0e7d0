//! The fleet from the command line: its document shown, applied and rolled back, and snapshots of its nodes.

use std::io::BufRead;
use std::io::BufReader;
use std::io::Read;
use std::io::Write;
use std::path::Path;
use std::process::Command;
use std::process::Output;
use std::process::Stdio;
use std::sync::mpsc::channel;
use std::thread::JoinHandle;

use crate::support;
use crate::support::Running;
use serde_json::Value;
use serde_json::json;

const COLLECTOR: &str = r#"{"observability_daemons": [
    {"perf_collector": {"export_to": "s3://profiles", "bucket_subdirectory": "perf-data"}}
]}"#;

/// A daemon that takes snapshots when it is asked.
fn perfetto() -> String {
    let config = "buffers { size_kb: 1024 } data_sources { config { name: \"linux.perf\" } } \
                  trigger_config { trigger_mode: CLONE_SNAPSHOT trigger_timeout_ms: 1000 \
                  triggers { name: \"traces\" stop_delay_ms: 1 } }";
    let daemon = json!({
        "config_text": config,
        "export_to": "s3://profiles",
        "trigger": "PERFETTO_TRIGGER_HTTP",
        "trigger_name": "traces",
    });
    json!({"observability_daemons": [{"perfetto_daemon": daemon}]}).to_string()
}

/// A server, and a folder for documents.
struct Fleet {
    server: Running,
    folder: tempfile::TempDir,
}

impl Fleet {
    fn start() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let data = folder.path().join("data").display().to_string();
        let arguments = ["server", "--listen", "127.0.0.1:0", "--data-dir", &data];
        Self {
            server: Running::start(&arguments),
            folder,
        }
    }

    fn command(&self, words: &str) -> Command {
        let mut command = support::candela();
        command
            .args(words.split_whitespace())
            .args(["--server", &self.server.url("")])
            .current_dir(self.folder.path());
        command
    }

    fn run(&self, words: &str) -> Output {
        self.command(words).output().unwrap()
    }

    fn write(&self, name: &str, text: &str) {
        std::fs::write(self.folder.path().join(name), text).unwrap();
    }

    #[track_caller]
    fn apply(&self, document: &str) {
        self.write("applied.json", document);
        let applied = self.run("infra apply persistence -f applied.json --yes");
        support::expect_code(&applied, 0);
    }

    fn version(&self) -> u64 {
        let document = support::get_json(&self.server.url("/api/v1/fleet/persistence"));
        document["version"].as_u64().unwrap()
    }

    /// A node that listens, and answers each order with this; it ends with the server.
    fn node(&self, name: &str, result: Value) -> JoinHandle<()> {
        let (url, name) = (self.server.url(""), name.to_owned());
        let stream = ureq::get(format!("{url}/api/v1/fleet/stream?node={name}"));
        let lines = BufReader::new(stream.call().unwrap().into_body().into_reader());
        let pod =
            json!({"namespace": "shop", "name": name, "ip": "10.0.0.7", "labels": {"node": name}});
        let mut report = json!({"node": name, "version": 1, "pod": pod, "daemons": [
            {"id": "perfetto-daemon-0123456789abcdef", "state": "failed", "last_error": "no bucket"},
        ]});
        let address = format!("{url}/api/v1/fleet/report");
        ureq::post(&address).send(report.to_string()).unwrap();
        std::thread::spawn(move || {
            for line in lines.lines().map_while(Result::ok) {
                let line: Value = serde_json::from_str(&line).unwrap();
                if line["kind"] == "snapshot" {
                    let mut snapshot = result.clone();
                    snapshot["id"] = line["id"].clone();
                    report["snapshots"] = json!([snapshot]);
                    ureq::post(&address).send(report.to_string()).unwrap();
                }
            }
        })
    }
}

#[test]
fn a_document_is_shown_applied_and_rolled_back() {
    let fleet = Fleet::start();
    let none = fleet.run("infra describe persistence");
    support::expect_code(&none, 0);
    assert_eq!(support::stdout(&none), "no document was applied\n");

    fleet.write("persistence.json", COLLECTOR);
    let refused = fleet.run("infra apply persistence -f persistence.json");
    support::expect_code(&refused, 2);
    let change = "@ [\"observability_daemons\"]\n+ [{\"perf_collector\":{\"bucket_subdirectory\":\"perf-data\",\"export_to\":\"s3://profiles\"}}]\n";
    assert_eq!(support::stdout(&refused), change);
    assert!(support::stderr(&refused).contains("add --yes"));
    assert_eq!(fleet.version(), 0);

    let applied = fleet.run("infra apply persistence -f persistence.json --yes");
    support::expect_code(&applied, 0);
    assert_eq!(support::stdout(&applied), change);
    assert_eq!(support::stderr(&applied), "version 1 is applied\n");
    let again = fleet.run("infra apply persistence -f persistence.json");
    support::expect_code(&again, 0);
    assert_eq!(support::stdout(&again), "");
    assert!(support::stderr(&again).contains("nothing to change"));

    let shown = fleet.run("infra describe persistence");
    let shown = support::stdout(&shown);
    assert!(
        shown.starts_with("version 1, applied by anonymous at 20"),
        "{shown}"
    );
    let row = "perf_collector  runs   99 Hz, a dump every 60 s  s3://profiles/perf-data";
    assert!(shown.lines().any(|line| line == row), "{shown}");

    // What is printed is what can be edited and applied.
    let printed = support::stdout(&fleet.run("infra describe persistence --json"));
    let expected: Value = serde_json::from_str(COLLECTOR).unwrap();
    assert_eq!(serde_json::from_str::<Value>(&printed).unwrap(), expected);
    let mut apply = fleet.command("infra apply persistence --yes -f -");
    apply
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    let mut apply = apply.spawn().unwrap();
    let suspended = printed.replacen('{', "{\"suspended\": true,", 1);
    apply
        .stdin
        .take()
        .unwrap()
        .write_all(suspended.as_bytes())
        .unwrap();
    let applied = apply.wait_with_output().unwrap();
    support::expect_code(&applied, 0);
    assert_eq!(support::stdout(&applied), "@ [\"suspended\"]\n+ true\n");
    let shown = support::stdout(&fleet.run("infra describe persistence"));
    assert!(shown.contains("perf_collector  suspended"), "{shown}");

    let back = fleet.run("infra apply persistence --rollback 1 --yes");
    support::expect_code(&back, 0);
    assert_eq!(support::stdout(&back), "@ [\"suspended\"]\n- true\n");
    assert_eq!(fleet.version(), 3);
    let history = support::stdout(&fleet.run("infra describe persistence --history"));
    assert!(history.contains("that of version 1"), "{history}");
    assert_eq!(history.lines().count(), 4, "{history}");
    let old = support::stdout(&fleet.run("infra describe persistence --json --version 2"));
    assert!(old.contains("\"suspended\": true"), "{old}");
    let missing = fleet.run("infra apply persistence --rollback 9 --yes");
    support::expect_code(&missing, 2);
    assert!(support::stderr(&missing).contains("1 to 3 are kept"));
}

#[test]
fn all_problems_are_told_at_once() {
    let fleet = Fleet::start();
    let bad = COLLECTOR.replace(
        "\"s3://profiles\"",
        "\"ftp://profiles\", \"call_grap\": true",
    );
    fleet.write("bad.json", &bad);
    let refused = fleet.run("infra apply persistence -f bad.json --yes");
    support::expect_code(&refused, 1);
    let messages = support::stderr(&refused);
    for part in [
        "observability_daemons[0].perf_collector.export_to: ",
        "observability_daemons[0].perf_collector.call_grap: ",
        "candela: bad.json has 2 problems; nothing was applied",
    ] {
        assert!(
            messages.lines().any(|line| line.starts_with(part)),
            "{messages}"
        );
    }
    assert_eq!(support::stdout(&refused), "");
    assert_eq!(fleet.version(), 0);
    let missing = fleet.run("infra apply persistence -f nowhere.json");
    support::expect_code(&missing, 2);
    support::expect_code(&fleet.run("infra apply persistence"), 2);
    let away = support::run(&[
        "infra",
        "describe",
        "persistence",
        "--server",
        support::NOBODY,
    ]);
    support::expect_code(&away, 7);
}

/// Runs a command of the fleet on a terminal; once it asks, does something and types an answer.
fn answered(
    fleet: &Fleet,
    words: &str,
    answer: &str,
    meanwhile: impl FnOnce(),
) -> (Option<i32>, String) {
    let command = fleet.command(words);
    let mut line = format!("'{}'", command.get_program().display());
    for argument in command.get_args() {
        line.push_str(&format!(" '{}'", Path::new(argument).display()));
    }
    let mut script = support::on_terminal(&line)
        .current_dir(fleet.folder.path())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut output = script.stdout.take().unwrap();
    let (sender, parts) = channel();
    std::thread::spawn(move || {
        let mut bytes = [0; 4096];
        // A terminal that is gone is an error of reading, not an end.
        while let Ok(count @ 1..) = output.read(&mut bytes) {
            // The test may have failed.
            let _ = sender.send(bytes[..count].to_vec());
        }
    });
    let mut shown = Vec::new();
    let asks = |shown: &[u8]| String::from_utf8_lossy(shown).contains("[y/N]");
    while !asks(&shown) {
        let part = parts.recv_timeout(support::PATIENCE);
        shown.extend(part.unwrap_or_else(|error| {
            panic!("{error}: {}", String::from_utf8_lossy(&shown));
        }));
    }
    meanwhile();
    let mut keyboard = script.stdin.take().unwrap();
    keyboard.write_all(answer.as_bytes()).unwrap();
    keyboard.flush().unwrap();
    let status = support::eventually("it ends", || script.try_wait().unwrap());
    shown.extend(parts.into_iter().flatten());
    let code = status.code();
    (code, String::from_utf8_lossy(&shown).into_owned())
}

#[test]
fn a_snapshot_has_a_line_of_each_node() {
    let fleet = Fleet::start();
    let none = fleet.run("profiling perfetto-snapshot");
    support::expect_code(&none, 2);
    assert!(support::stderr(&none).contains("no perfetto_daemon of the fleet's document runs"));
    fleet.apply(&perfetto());
    let nobody = fleet.run("profiling perfetto-snapshot");
    support::expect_code(&nobody, 5);
    support::expect_code(&fleet.run("infra describe nodes"), 5);

    let good = fleet.node("a", json!({"status": "ok", "object_key": "traces/a/1.pb"}));
    let taken = fleet.run("profiling perfetto-snapshot");
    support::expect_code(&taken, 0);
    let expected = "NODE  STATUS  OBJECT\na     ok      traces/a/1.pb\n";
    assert_eq!(support::stdout(&taken), expected);
    let bad = fleet.node("b", json!({"status": "failed", "error": "no room"}));
    let taken = fleet.run("profiling perfetto-snapshot --timeout 90s");
    support::expect_code(&taken, 1);
    let expected = "NODE  STATUS  OBJECT\na     ok      traces/a/1.pb\nb     failed  no room\n";
    assert_eq!(support::stdout(&taken), expected);
    assert!(support::stderr(&taken).contains("1 of 2 nodes have no snapshot"));
    for words in [
        "--node a",
        "--pod-label node=a",
        "--pod-label node!=b,!gone",
        "--pod-field metadata.name=a --pod-field metadata.namespace=shop",
    ] {
        let taken = fleet.run(&format!("profiling perfetto-snapshot --json {words}"));
        support::expect_code(&taken, 0);
        let taken: Value = serde_json::from_slice(&taken.stdout).unwrap();
        assert_eq!(taken["schema"], "candela/fleet-snapshot/v1");
        assert_eq!(
            taken["results"].as_array().map(Vec::len),
            Some(1),
            "{words}"
        );
    }
    support::expect_code(&fleet.run("profiling perfetto-snapshot --pod-label a>b"), 2);
    support::expect_code(&fleet.run("profiling perfetto-snapshot --node nobody"), 1);

    let nodes = fleet.run("infra describe nodes");
    support::expect_code(&nodes, 0);
    let rows = support::stdout(&nodes);
    let is_row = |line: &str| line.starts_with("a     yes        1        1 failed  20");
    assert!(rows.lines().any(is_row), "{rows}");
    let errors = support::stderr(&nodes);
    assert!(
        errors.contains("b perfetto-daemon-0123456789abcdef: no bucket"),
        "{errors}"
    );
    assert_eq!(
        fleet.server.terminate(),
        Some(0),
        "with streams that are open"
    );
    good.join().unwrap();
    bad.join().unwrap();
}

#[test]
fn shells_and_manual_pages_know_the_commands() {
    for shell in ["bash", "zsh", "fish"] {
        let script = support::stdout(&support::run(&["completions", shell]));
        // Scripts for fish know no flags below the second word.
        let flags: &[&str] = if shell == "fish" {
            &[]
        } else {
            &["--rollback"]
        };
        for word in ["persistence", "perfetto-snapshot"].iter().chain(flags) {
            assert!(script.contains(word), "{shell}: {word}");
        }
    }
    let folder = tempfile::tempdir().unwrap();
    support::expect_code(&support::run(&["man", folder.path().to_str().unwrap()]), 0);
    for name in ["infra-apply-persistence", "profiling-perfetto-snapshot"] {
        let page = folder.path().join(format!("candela-{name}.1"));
        assert!(
            std::fs::read_to_string(page).unwrap().contains("NAME"),
            "{name}"
        );
    }
}

mod host {
    use super::*;

    #[test]
    fn on_a_terminal_it_asks_and_tells_who_was_quicker() {
        let test = "on_a_terminal_it_asks_and_tells_who_was_quicker";
        if !support::has_tool(test, "script") {
            return;
        }
        let fleet = Fleet::start();
        fleet.write("persistence.json", COLLECTOR);
        let apply = "infra apply persistence -f persistence.json";
        let (code, shown) = answered(&fleet, apply, "n\n", || ());
        assert_eq!(code, Some(1), "{shown}");
        assert!(shown.contains("+ [{\"perf_collector\""), "{shown}");
        assert!(shown.contains("nothing was applied"), "{shown}");
        assert_eq!(fleet.version(), 0);
        let (code, shown) = answered(&fleet, apply, "y\n", || ());
        assert_eq!(code, Some(0), "{shown}");
        assert_eq!(fleet.version(), 1);

        fleet.write("persistence.json", "{\"suspended\": true}");
        let (code, shown) = answered(&fleet, apply, "y\n", || fleet.apply("{}"));
        assert_eq!(code, Some(1), "{shown}");
        assert!(
            shown.contains("is at version 2, which anonymous applied at 20"),
            "{shown}"
        );
        assert_eq!(fleet.version(), 2);
    }
}
