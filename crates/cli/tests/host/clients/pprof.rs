//! `go tool pprof`, which reads profiles over HTTP.

use std::process::Command;

use super::cache::succeed;
use super::client::TestServer;
use super::pages::run_commands;
use crate::support;

#[test]
fn go_tool_pprof_reads_merged_profiles() {
    let test = "go_tool_pprof_reads_merged_profiles";
    if !support::has_tool(test, "go") {
        return;
    }
    let server = TestServer::start();
    let folded = "main;handle;render 40\nmain;handle;parse 2\n";
    let url = server
        .running
        .url("/ingest?name=shop%7Bregion%3Deu%7D&sampleRate=100");
    assert_eq!(ureq::post(url).send(folded).unwrap().status(), 200);

    let folder = tempfile::tempdir().unwrap();
    let pprof = |view: &str, path: &str| {
        let mut command = Command::new("go");
        command
            .args(["tool", "pprof", view, &server.running.url(path)])
            .env("PPROF_TMPDIR", folder.path());
        succeed(&mut command)
    };
    // As people type it, in quotes: braces and all.
    let path = r#"/api/v1/pprof?query={service_name="shop"}"#;
    let top = pprof("-top", path);
    assert!(top.contains("Type: cpu"), "{top}");
    assert!(top.contains("420ms total"), "{top}");
    let render = top.lines().find(|line| line.ends_with(" render")).unwrap();
    assert!(render.trim().starts_with("400ms 95.24%"), "{top}");

    let raw = pprof("-raw", path);
    assert!(raw.contains("PeriodType: cpu nanoseconds"), "{raw}");
    assert!(raw.contains("Period: 10000000"), "{raw}");
    assert!(raw.contains("cpu/nanoseconds"), "{raw}");
    assert!(raw.contains("400000000: 1 2 3"), "{raw}");
    for function in ["main", "handle", "render", "parse"] {
        assert!(raw.contains(&format!(" {function} ")), "{raw}");
    }
    let one = pprof("-top", &format!("{path}&focus=parse"));
    assert!(one.contains("20ms total"), "{one}");
    run_commands("pprof", &server);
}
