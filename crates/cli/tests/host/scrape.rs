//! A real Go program, scraped by the real agent into a real server: its hot functions are found by
//! query.

use std::io::BufRead;
use std::io::BufReader;
use std::path::Path;
use std::process::Child;
use std::process::Command;
use std::process::Stdio;

use crate::support;
use crate::support::Program;
use crate::support::Running;

/// The program of `programs/shop.go`, and where it listens.
struct Shop {
    child: Child,
    address: String,
}

impl Shop {
    fn start(folder: &Path, arguments: &[&str]) -> Self {
        let program = folder.join("shop");
        let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/programs/shop.go");
        let built = Command::new("go")
            .args(["build", "-o"])
            .args([&program, &source])
            .env("GOTOOLCHAIN", "local")
            .output()
            .unwrap();
        assert!(built.status.success(), "{}", support::stderr(&built));
        let mut child = Command::new(program)
            .args(arguments)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut address = String::new();
        let stdout = child.stdout.take().unwrap();
        BufReader::new(stdout).read_line(&mut address).unwrap();
        let address = address.trim().to_owned();
        Self { child, address }
    }
}

impl Drop for Shop {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// What a function and all that it calls have, of one profile type; none while it is not there.
fn total(server: &Running, profile_type: &str, function: &str) -> Option<i64> {
    let query = "query=%7Bservice_name%3D%22shop%22%7D&from=now-10m&limit=1000";
    let url = server.url(&format!("/api/v1/top?{query}&type={profile_type}"));
    let (status, body) = support::get(&url);
    if status != 200 {
        // Not before its first profile is the type known.
        return None;
    }
    let top: serde_json::Value = serde_json::from_slice(&body).unwrap();
    let functions = top["functions"].as_array()?;
    let row = functions.iter().find(|row| row["name"] == function)?;
    row["total"].as_i64().filter(|total| *total > 0)
}

/// The configuration of an agent that only scrapes one program, by a file of targets.
fn write_configuration(folder: &Path, address: &str) -> String {
    let targets =
        format!("- targets: [\"{address}\"]\n  labels: {{__meta_app: shop, env: test}}\n");
    std::fs::write(folder.join("targets.yml"), targets).unwrap();
    let pattern = folder.join("*.yml").display().to_string();
    let configuration = format!(
        r#"
agent:
  sampling: false
  scrape:
    - name: go
      target_files: ["{pattern}"]
      scrape_interval: 2s
      relabel:
        - {{source_labels: [__meta_app], target_label: service_name}}
        - {{source_labels: [env], regex: test, action: keep}}
"#
    );
    let path = folder.join("candela.yaml");
    std::fs::write(&path, configuration).unwrap();
    path.display().to_string()
}

#[test]
fn hot_functions_of_a_scraped_program_are_found() {
    let test = "hot_functions_of_a_scraped_program_are_found";
    if !support::has_tool(test, "go") {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let shop = Shop::start(folder.path(), &[]);
    let path = |name: &str| folder.path().join(name).display().to_string();
    let server = Running::start(&[
        "server",
        "--listen",
        "127.0.0.1:0",
        "--data-dir",
        &path("data"),
    ]);
    let configuration = write_configuration(folder.path(), &shop.address);
    let checked = support::run(&["--config", &configuration, "config", "check"]);
    support::expect_code(&checked, 0);
    let url = server.url("");
    let data = path("agent");
    let arguments = ["--config", &configuration, "agent", "--server", &url];
    let mut agent = support::candela();
    agent.args(arguments).args(["--data-dir", &data]);
    let agent = Program::start(&mut agent);

    let hot = [
        (
            "process_cpu:cpu:nanoseconds:cpu:nanoseconds",
            "main.priceEverything",
        ),
        ("memory:alloc_space:bytes:space:bytes", "main.fillBasket"),
        ("memory:inuse_space:bytes:space:bytes", "runtime.main"),
        (
            "mutex:delay:nanoseconds:contentions:count",
            "main.takeFromStock",
        ),
        (
            "block:delay:nanoseconds:contentions:count",
            "main.takeFromStock",
        ),
        ("goroutine:goroutine:count:goroutine:count", "main.main"),
    ];
    for (profile_type, function) in hot {
        support::eventually(&format!("{function} in {profile_type}"), || {
            total(&server, profile_type, function)
        });
    }
    drop(agent);

    let cpu = "process_cpu:cpu:nanoseconds:cpu:nanoseconds";
    let all = total(&server, cpu, "main.main").unwrap();
    let hot = total(&server, cpu, "main.priceEverything").unwrap();
    assert!(2 * hot > all, "{hot} of {all} ns");
    let labels = "query=%7Bservice_name%3D%22shop%22%7D&from=now-10m&label=instance";
    let values = support::get_json(&server.url(&format!("/api/v1/label-values?{labels}")));
    assert!(values.to_string().contains(&shop.address), "{values}");
}

#[test]
fn profiles_that_the_program_does_not_fill_are_told_with_their_cause() {
    let test = "profiles_that_the_program_does_not_fill_are_told_with_their_cause";
    if !support::has_tool(test, "go") {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let shop = Shop::start(folder.path(), &["silent"]);
    let configuration = write_configuration(folder.path(), &shop.address);
    let data_dir = folder.path().join("data");
    let up = Running::start(&[
        "--config",
        &configuration,
        "up",
        "--listen",
        "127.0.0.1:0",
        "--data-dir",
        data_dir.to_str().unwrap(),
    ]);
    let url = up.url("");
    let report = support::eventually("both profiles were empty several times", || {
        let output = support::run(&["doctor", "--agent", "--json", "--server", &url]);
        let report: serde_json::Value = serde_json::from_slice(&output.stdout).ok()?;
        (report["empty_profiles"].as_array()?.len() == 2).then_some(report)
    });
    for (position, path, cause) in [
        (0, "/debug/pprof/block", "runtime.SetBlockProfileRate is 0"),
        (
            1,
            "/debug/pprof/mutex",
            "runtime.SetMutexProfileFraction is 0",
        ),
    ] {
        let profile = &report["empty_profiles"][position];
        let url = format!("http://{}{path}", shop.address);
        assert_eq!(profile["url"], url);
        assert_eq!(profile["job"], "go");
        let hint = profile["hint"].as_str().unwrap();
        assert!(hint.contains(cause), "{hint}");
    }
    let text = support::stdout(&support::run(&["doctor", "--agent", "--server", &url]));
    assert!(
        text.contains("/debug/pprof/mutex stays empty: runtime."),
        "{text}"
    );
}

#[test]
fn jobs_that_cannot_run_are_told_by_config_check() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("candela.yaml");
    let cases = [
        (
            "[{name: a, target_files: [x], scrape_intervall: 1m}]",
            "did you mean scrape_interval?",
        ),
        (
            "[{name: a, target_files: [x], scrape_interval: 1s}]",
            "choose 2s to 1h",
        ),
        (
            "[{name: a, target_files: [x]}, {name: a, target_files: [x]}]",
            "a name of its own",
        ),
        ("7", "must be a list"),
    ];
    for (jobs, part) in cases {
        std::fs::write(&path, format!("agent:\n  scrape: {jobs}\n")).unwrap();
        let configuration = path.display().to_string();
        let output = support::run(&["--config", &configuration, "config", "check"]);
        support::expect_code(&output, 2);
        let message = support::stderr(&output);
        assert!(message.contains(part), "{jobs}: {message}");
    }
}
