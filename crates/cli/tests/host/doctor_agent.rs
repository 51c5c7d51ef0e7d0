//! `candela doctor --agent` against real agents.

use crate::support;
use crate::support::Running;

/// So that nobody waits ten seconds for a window.
const INTERVAL: (&str, &str) = ("CANDELA_AGENT__INTERVAL", "2s");

fn doctor(server: &str, arguments: &[&str]) -> std::process::Output {
    let asked = ["doctor", "--agent", "--server", server];
    let arguments: Vec<&str> = asked.iter().chain(arguments).copied().collect();
    support::run(&arguments)
}

#[test]
fn a_server_that_is_away_or_has_no_agent_is_told_apart() {
    let output = doctor(support::NOBODY, &[]);
    support::expect_code(&output, 7);
    let folder = tempfile::tempdir().unwrap();
    let data_dir = folder.path().to_str().unwrap();
    let server = Running::start(&["server", "--listen", "127.0.0.1:0", "--data-dir", data_dir]);
    let output = doctor(&server.url(""), &[]);
    support::expect_code(&output, 5);
    let told = support::stderr(&output);
    assert!(told.contains("candela agent --server"), "{told}");
}

#[test]
fn agents_here_and_elsewhere_tell_what_they_cost() {
    let test = "agents_here_and_elsewhere_tell_what_they_cost";
    if !support::is_root(test) {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let folder_of = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    let arguments = [
        "up",
        "--listen",
        "127.0.0.1:0",
        "--data-dir",
        &folder_of("up"),
    ];
    let up = Running::try_start(&arguments, &[INTERVAL]).unwrap();
    let report = support::eventually("the agent has a window", || {
        let output = doctor(&up.url(""), &["--json"]);
        let report: serde_json::Value = serde_json::from_slice(&output.stdout).ok()?;
        (report["agents"][0]["cost"]["cpu_ppm"].as_u64()? > 0).then_some(report)
    });
    assert_eq!(report["schema"], "candela/doctor-agent/v1");
    let cost = &report["agents"][0]["cost"];
    assert_eq!(cost["budget_ppm"], 5_000);
    assert_eq!(cost["configured_rate_millihertz"], 19_000);
    for name in ["cpu_ns", "resident_bytes", "map_bytes", "rate_millihertz"] {
        assert!(cost[name].as_u64().unwrap() > 0, "{name}: {report:#}");
    }
    assert!(report["threads"]["candela-sampler"].as_u64().unwrap() > 0);
    assert!(report["programs"]["sample_cpu"].is_object(), "{report:#}");
    assert!(report["events"]["cpu"].as_u64().unwrap() > 0);
    let output = doctor(&up.url(""), &[]);
    support::expect_code(&output, 0);
    let text = support::stdout(&output);
    assert!(text.contains("% of a core"), "{text}");
    let (status, body) = support::get(&up.url("/metrics"));
    assert_eq!(status, 200);
    let metrics = String::from_utf8(body).unwrap();
    for name in [
        "candela_agent_cpu_seconds_total{thread=\"candela-sampler\"}",
        "candela_agent_bpf_seconds_total{program=\"sample_cpu\"}",
        "candela_agent_rate_hz{setting=\"effective\"}",
        "candela_agent_events_total{kind=\"exec\"}",
        "candela_agent_drops_total{reason=\"program_recursion\"}",
        "candela_agent_map_bytes",
    ] {
        assert!(metrics.contains(&format!("\n{name} ")), "{name}: {metrics}");
    }

    let server = Running::start(&[
        "server",
        "--listen",
        "127.0.0.1:0",
        "--data-dir",
        &folder_of("server"),
    ]);
    let url = server.url("");
    let mut agent = support::candela();
    agent.args(["agent", "--server", &url, "--data-dir", &folder_of("agent")]);
    // Of several kinds the others go on without what no host has.
    let absent = "tracepoint:sched:no_such_tracepoint";
    agent
        .envs([INTERVAL])
        .env("CANDELA_AGENT__KINDS", format!("cpu,{absent}"));
    let _agent = support::Program::start(&mut agent);
    let report = support::eventually("the server hears what an agent costs", || {
        let output = doctor(&url, &["--json"]);
        let report: serde_json::Value = serde_json::from_slice(&output.stdout).ok()?;
        report["agents"][0]["events"]["cpu"]
            .as_u64()
            .map(|_| report)
    });
    let cost = &report["agents"][0]["cost"];
    assert_eq!(cost["rate_millihertz"], 19_000);
    assert!(cost["resident_bytes"].as_u64().unwrap() > 1 << 20);
    assert!(cost["cpu_ns"].as_u64().unwrap() > 0);
    let missing = &report["agents"][0]["missing"];
    assert_eq!(missing[0]["what"], absent, "{report:#}");
    let reason = missing[0]["reason"].as_str().unwrap();
    assert!(reason.contains("no_such_tracepoint"), "{reason}");
    let text = support::stdout(&doctor(&url, &[]));
    assert!(text.contains(absent) && text.contains(reason), "{text}");
    support::eventually("the kernel has measured a program elsewhere", || {
        let output = doctor(&url, &["--json"]);
        let report: serde_json::Value = serde_json::from_slice(&output.stdout).ok()?;
        report["agents"][0]["programs"]["sample_cpu"]["estimated_runs"].as_u64()
    });
}
