//! Starting, ending, and bugs in between.

mod support;

use std::sync::Arc;
use std::sync::Mutex;
use std::sync::mpsc;
use std::time::Duration;

use candela_server::Limits;
use candela_server::SelfProfiler;
use candela_server::ServerOptions;
use candela_server::StatusSource;
use serde_json::json;
use support::TestServer;

/// A self profile that takes until the test says so.
struct Held {
    started: Mutex<mpsc::Sender<Duration>>,
    release: Mutex<mpsc::Receiver<()>>,
}

impl SelfProfiler for Held {
    fn cpu_profile(&self, duration: Duration) -> Result<Vec<u8>, String> {
        self.started
            .lock()
            .expect("unpoisoned")
            .send(duration)
            .expect("the test listens");
        self.release
            .lock()
            .expect("unpoisoned")
            .recv()
            .expect("the test releases");
        Ok(b"profile".to_vec())
    }
}

fn held_server(limits: Limits) -> (TestServer, mpsc::Receiver<Duration>, mpsc::Sender<()>) {
    let (started, is_started) = mpsc::channel();
    let (release, released) = mpsc::channel();
    let held = Held {
        started: Mutex::new(started),
        release: Mutex::new(released),
    };
    let options = ServerOptions {
        self_profiler: Some(Arc::new(held)),
        limits,
        ..support::options()
    };
    (TestServer::start_with(options), is_started, release)
}

#[test]
fn a_request_in_flight_is_answered_before_the_end() {
    let (mut server, started, release) = held_server(Limits::default());
    let address = server.address;
    let client = std::thread::spawn(move || {
        support::request(address, "GET", "/debug/pprof/profile?seconds=3", &[], b"")
    });
    assert_eq!(started.recv().expect("it starts"), Duration::from_secs(3));

    let second = server.get("/debug/pprof/profile");
    assert_eq!(second.status, 409, "{}", second.text());

    server.signal_shutdown();
    release.send(()).expect("it waits");
    let answer = client.join().expect("no panic");
    assert_eq!((answer.status, answer.text().as_str()), (200, "profile"));
    server.wait_for_end();
    assert!(std::net::TcpStream::connect(address).is_err());
}

#[test]
fn what_outlives_the_grace_period_is_cut() {
    let limits = Limits {
        shutdown_grace: Duration::from_millis(1),
        ..Limits::default()
    };
    let (mut server, started, release) = held_server(limits);
    let address = server.address;
    let client = std::thread::spawn(move || {
        std::panic::catch_unwind(|| {
            support::request(address, "GET", "/debug/pprof/profile", &[], b"")
        })
    });
    started.recv().expect("it starts");
    server.signal_shutdown();
    server.wait_for_end();
    assert!(
        client.join().expect("a result").is_err(),
        "there was no answer"
    );
    release.send(()).expect("it waits");
}

#[test]
fn the_length_of_a_self_profile_is_bounded() {
    let (server, _started, _release) = held_server(Limits::default());
    for seconds in ["0", "301", "x"] {
        let path = format!("/debug/pprof/profile?seconds={seconds}");
        assert_eq!(server.get(&path).status, 400, "{seconds}");
    }
}

/// A status source that hits a bug.
struct Broken;

impl StatusSource for Broken {
    fn status_json(&self) -> serde_json::Value {
        panic!("a bug in the agent's status")
    }

    fn metrics(&self, _: &mut String) {
        panic!("a bug in the agent's metrics")
    }
}

#[test]
fn a_bug_costs_one_request() {
    let options = ServerOptions {
        status_source: Some(Arc::new(Broken)),
        ..support::options()
    };
    let server = TestServer::start_with(options);
    for path in ["/api/v1/status", "/metrics"] {
        let answer = server.get(path);
        assert_eq!(answer.status, 500, "{path}");
        assert_eq!(answer.json()["code"], "internal");
    }
    assert_eq!(server.get("/healthz").status, 200);
    assert_eq!(server.get("/api/v1/top").status, 200);
}

/// A status source as an agent is one.
struct Agent;

impl StatusSource for Agent {
    fn status_json(&self) -> serde_json::Value {
        json!({
            "host": "h",
            "version": "1",
            "quality": {"samples": 10, "results": {"complete": 9, "truncated": 1}},
            "drops": {"sample_ring_full": 2, "spool_full": 0},
            "bpf_bytes": 7,
        })
    }

    fn metrics(&self, out: &mut String) {
        out.push_str(
            "# TYPE candela_agent_samples_total counter\ncandela_agent_samples_total 10\n",
        );
    }
}

#[test]
fn the_agent_joins_status_and_metrics() {
    let options = ServerOptions {
        status_source: Some(Arc::new(Agent)),
        ..support::options()
    };
    let server = TestServer::start_with(options);
    let status = server.json("/api/v1/status");
    assert_eq!(
        status["quality"],
        json!({"samples": 10, "complete": 9, "truncated": 1})
    );
    assert_eq!(
        status["drops"],
        json!([{"reason": "sample_ring_full", "count": 2}])
    );
    assert_eq!(status["agents"][0]["host"], "h");
    assert_eq!(
        status["agents"][0]["last_seen_ms"],
        support::NOW_NS / 1_000_000
    );
    assert_eq!(status["agent"]["bpf_bytes"], 7);
    assert!(
        server
            .get("/metrics")
            .text()
            .ends_with("candela_agent_samples_total 10\n")
    );
}
