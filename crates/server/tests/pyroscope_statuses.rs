//! Walks `pyroscope_statuses.tsv`: what Pyroscope's clients get for what they may send.

use crate::support;
use crate::support::TestServer;

#[test]
fn every_request_gets_its_status() {
    let server = TestServer::with_demo_profile();
    let mut failures = Vec::new();
    for line in include_str!("pyroscope_statuses.tsv").lines() {
        if line.starts_with('#') {
            continue;
        }
        let fields: Vec<&str> = line.split('\t').collect();
        let [method, path, content_type, body, status, part] = fields[..] else {
            panic!("six fields: {line:?}");
        };
        let headers: &[(&str, &str)] = match content_type {
            "" => &[],
            _ => &[("Content-Type", content_type)],
        };
        let body = body
            .replace("SELECTED", r#""profileTypeID":"process_cpu:cpu:nanoseconds:cpu:nanoseconds","labelSelector":"{}""#)
            .replace("RANGE", r#""start":1699999900000,"end":1700000000000"#);
        let answer = support::request(server.address, method, path, headers, body.as_bytes());
        let text = answer.text();
        if answer.status.to_string() != status || !text.contains(part) {
            failures.push(format!("{line}\n    {} {text}", answer.status));
        }
    }
    assert!(failures.is_empty(), "{}", failures.join("\n"));
    let metrics = server.get("/metrics").text();
    assert!(!metrics.contains("code=\"500\""), "{metrics}");
}
