//! Snapshots that are asked for at the port of the node.

use std::io::Read;
use std::io::Write;
use std::net::SocketAddr;
use std::net::TcpListener;
use std::net::TcpStream;

use crate::support;
use crate::support::own_address;
use crate::support::traces::TracesDaemon;
use candela_daemons::TriggerPortOptions;
use serde_json::Value;

/// Nothing is sampled: switches alone are enough of a trace.
const SOURCES: &str = "data_sources { config { name: \"linux.ftrace\" ftrace_config { ftrace_events: \"sched/sched_switch\" } } }";

/// Status and body; `None` while nobody listens.
fn ask(address: SocketAddr, method: &str, path: &str, headers: &str) -> Option<(u16, String)> {
    let mut stream = TcpStream::connect(address).ok()?;
    let request = format!(
        "{method} {path} HTTP/1.1\r\nHost: {address}\r\nContent-Length: 0\r\nConnection: close\r\n{headers}\r\n"
    );
    stream.write_all(request.as_bytes()).expect("it is asked");
    let mut answer = String::new();
    stream.read_to_string(&mut answer).expect("it answers");
    let (head, body) = answer.split_once("\r\n\r\n").expect("a head");
    let status = head.split(' ').nth(1).expect("a status");
    Some((status.parse().expect("a number"), body.to_owned()))
}

/// Why the kernel is not to be had here.
fn cannot_record() -> bool {
    let checks = candela_agent::capabilities();
    let missing = checks.iter().find(|check| check.required && !check.ok);
    if let Some(check) = missing {
        support::skipped(&format!("cannot record: {} ({})", check.name, check.detail));
    }
    missing.is_some()
}

#[test]
fn a_request_takes_a_snapshot_and_is_told_its_name() {
    if cannot_record() {
        return;
    }
    let address = own_address();
    let options = TriggerPortOptions {
        token: Some("sesame".to_owned()),
        ..TriggerPortOptions::new(address)
    };
    let daemon = TracesDaemon::start(SOURCES, 100, Some(options));
    let token = "Authorization: Bearer sesame\r\n";
    support::wait_until("the port is open", || {
        ask(address, "GET", "/snapshot", token).is_some()
    });
    let status = |method: &str, path: &str, headers: &str| {
        ask(address, method, path, headers).expect("it listens").0
    };
    assert_eq!(status("GET", "/snapshot", token), 405, "nothing to look at");
    assert_eq!(status("POST", "/elsewhere", token), 404);
    assert_eq!(status("POST", "/snapshot", ""), 401);
    let page = format!("{token}Origin: http://evil.example\r\n");
    assert_eq!(status("POST", "/snapshot", &page), 403);

    for path in ["/snapshot", "/"] {
        let (status, body) = ask(address, "POST", path, token).expect("it listens");
        assert_eq!(status, 200, "{body}");
        let answer: Value = serde_json::from_str(&body).expect("JSON");
        assert_eq!(answer["schema"], "candela/perfetto-snapshot/v1");
        assert_eq!(answer["status"], "ok");
        let file = answer["file"].as_str().expect("a name");
        assert_eq!(
            answer["object"],
            format!("s3://bucket/traces/node-1/{file}")
        );
        let bytes = daemon.taken(file);
        assert!(bytes.len() > 100, "{} bytes", bytes.len());
    }

    // Two that ask together get snapshots, one after the other; the server is answered beside them.
    let asked = [(); 2].map(|()| std::thread::spawn(move || ask(address, "POST", "/", token)));
    let answers = asked.map(|thread| thread.join().expect("no panic").expect("it listens"));
    for (status, body) in answers {
        assert_eq!(status, 200, "{body}");
    }
    daemon.end();
    assert!(
        ask(address, "POST", "/", token).is_none(),
        "the port goes with the daemon"
    );
}

#[test]
fn a_taken_port_is_told_and_taken_once_it_is_free() {
    if cannot_record() {
        return;
    }
    let address = own_address();
    let holder = TcpListener::bind(address).expect("it is ours");
    let daemon = TracesDaemon::start(SOURCES, 0, Some(TriggerPortOptions::new(address)));
    let notice = daemon.notices.recv_timeout(support::PATIENCE);
    let problem = notice.expect("a notice").expect("a problem");
    let pid = format!("(pid {})", std::process::id());
    assert!(
        problem.contains(&pid) && problem.contains("agent.perfetto_trigger.listen"),
        "{problem}"
    );
    assert!(!daemon.snapshot().is_empty(), "the server is answered");

    drop(holder);
    let notice = daemon.notices.recv_timeout(support::PATIENCE);
    assert_eq!(notice.expect("a notice"), None, "it works again");
    let (status, body) = ask(address, "POST", "/snapshot", "").expect("it listens");
    assert_eq!(status, 200, "{body}");
    daemon.end();
}
