//! Starting, ending, and bugs in between.

use std::io::Read;
use std::io::Write;
use std::net::TcpStream;
use std::sync::Arc;
use std::sync::Condvar;
use std::sync::Mutex;
use std::sync::mpsc;
use std::time::Duration;

use candela_server::Limits;
use candela_server::SelfProfiler;
use candela_server::ServerOptions;
use candela_server::StatusSource;
use serde_json::json;

use crate::support;
use crate::support::PATIENCE;
use crate::support::TestServer;
use crate::support::fleet::eventually;

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

/// Limits under which a busy machine answers what is in flight, too.
fn patient() -> Limits {
    Limits {
        shutdown_grace: PATIENCE,
        ..Limits::default()
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
    let (mut server, started, release) = held_server(patient());
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
}

/// A self profile that takes until it is told to stop.
struct Stoppable {
    started: Mutex<mpsc::Sender<()>>,
    is_stopped: Mutex<bool>,
    stopped: Condvar,
}

impl SelfProfiler for Stoppable {
    fn cpu_profile(&self, _: Duration) -> Result<Vec<u8>, String> {
        let started = self.started.lock().expect("unpoisoned");
        started.send(()).expect("the test listens");
        let is_stopped = self.is_stopped.lock().expect("unpoisoned");
        let is_running = |is_stopped: &mut bool| !*is_stopped;
        let waited = self.stopped.wait_while(is_stopped, is_running);
        drop(waited.expect("unpoisoned"));
        Ok(b"short".to_vec())
    }

    fn stop(&self) {
        *self.is_stopped.lock().expect("unpoisoned") = true;
        self.stopped.notify_all();
    }
}

#[test]
fn a_self_profile_ends_with_the_server() {
    let (started, is_started) = mpsc::channel();
    let profiler = Stoppable {
        started: Mutex::new(started),
        is_stopped: Mutex::new(false),
        stopped: Condvar::new(),
    };
    let options = ServerOptions {
        self_profiler: Some(Arc::new(profiler)),
        limits: patient(),
        ..support::options()
    };
    let mut server = TestServer::start_with(options);
    let address = server.address;
    let client = std::thread::spawn(move || {
        support::request(address, "GET", "/debug/pprof/profile?seconds=300", &[], b"")
    });
    is_started.recv().expect("it starts");
    server.signal_shutdown();
    let answer = client.join().expect("no panic");
    assert_eq!((answer.status, answer.text().as_str()), (200, "short"));
    server.wait_for_end();
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

/// A status source that answers when the test says so.
struct Slow {
    started: Mutex<mpsc::Sender<()>>,
    release: Mutex<mpsc::Receiver<()>>,
}

impl StatusSource for Slow {
    fn status_json(&self) -> serde_json::Value {
        let started = self.started.lock().expect("unpoisoned");
        started.send(()).expect("the test listens");
        let release = self.release.lock().expect("unpoisoned");
        release.recv().expect("the test releases");
        json!({})
    }

    fn metrics(&self, _: &mut String) {}
}

/// One list is being computed, and nothing else.
fn with_a_list_that_takes_long(check: impl FnOnce(&TestServer)) {
    let (started, is_started) = mpsc::channel();
    let (release, released) = mpsc::channel();
    let slow = Slow {
        started: Mutex::new(started),
        release: Mutex::new(released),
    };
    let options = ServerOptions {
        status_source: Some(Arc::new(slow)),
        limits: Limits {
            concurrent_queries: 1,
            query_wait: Duration::from_millis(1),
            ..Limits::default()
        },
        ..support::options()
    };
    let server = TestServer::start_with(options);
    let address = server.address;
    let client =
        std::thread::spawn(move || support::request(address, "GET", "/api/v1/status", &[], b""));
    is_started.recv_timeout(PATIENCE).expect("it starts");
    // A check that fails lets the server end.
    let release = release;
    check(&server);
    release.send(()).expect("it waits");
    assert_eq!(client.join().expect("no panic").status, 200);
}

#[test]
fn too_many_at_once_are_told_to_come_back() {
    with_a_list_that_takes_long(|server| {
        for path in [
            "/api/v1/services",
            "/api/v1/labels",
            "/api/v1/label-values?label=service_name",
            "/api/v1/types",
        ] {
            let refused = server.get(path);
            assert_eq!(refused.status, 429, "{path}: {}", refused.text());
            let error = refused.json();
            assert_eq!(error["code"], "busy");
            assert_eq!(error["position"], 1);
            assert_eq!(refused.header("retry-after"), Some("1"));
        }
        for path in [
            "/api/0/services",
            "/pyroscope/label-values?label=service_name",
        ] {
            assert_eq!(server.get(path).status, 429, "{path}");
        }
        for call in [
            "LabelNames",
            "LabelValues",
            "ProfileTypes",
            "Series",
            "GetProfileStats",
        ] {
            let path = format!("/querier.v1.QuerierService/{call}");
            let headers = [("Content-Type", "application/json")];
            let refused = support::request(server.address, "POST", &path, &headers, b"{}");
            assert_eq!(refused.status, 429, "{call}: {}", refused.text());
        }
    });
}

#[test]
fn lists_and_queries_do_not_wait_for_each_other() {
    with_a_list_that_takes_long(|server| {
        for path in [
            "/api/v1/top",
            "/api/v1/flamegraph",
            "/api/v1/tree",
            "/api/v1/series",
            "/api/v1/heatmap",
            "/api/v1/pprof",
        ] {
            let answer = server.get(path);
            assert_eq!(answer.status, 200, "{path}: {}", answer.text());
        }
    });
}

#[test]
fn a_body_that_does_not_come_is_given_up() {
    let options = ServerOptions {
        limits: Limits {
            body_timeout: Duration::from_millis(1),
            ..Limits::default()
        },
        ..support::options()
    };
    let server = TestServer::start_with(options);
    let headers = [("Content-Length", "10")];
    let path = "/api/v1/ingest?service=x";
    let answer = support::request(server.address, "POST", path, &headers, b"");
    assert_eq!(answer.status, 408, "{}", answer.text());
    assert_eq!(answer.json()["code"], "slow_body");
}

#[test]
fn a_connection_without_a_request_is_closed() {
    let limits = Limits {
        header_timeout: Duration::from_millis(1),
        ..Limits::default()
    };
    let server = TestServer::start_with(ServerOptions {
        limits,
        ..support::options()
    });
    // Nothing at all, and the start of what every connection of HTTP/2 starts with.
    for opening in ["", "PRI * HT"] {
        let mut stream = TcpStream::connect(server.address).expect("the server accepts");
        stream
            .write_all(opening.as_bytes())
            .expect("the server reads");
        let mut answer = Vec::new();
        // Closed with bytes unread, it is reset, which ends it as well.
        let _ = stream.read_to_end(&mut answer);
        assert_eq!(answer, b"", "{opening:?}");
    }
}

#[test]
fn a_connection_that_stays_idle_after_its_request_is_closed() {
    let limits = Limits {
        header_timeout: Duration::from_millis(200),
        ..Limits::default()
    };
    let server = TestServer::start_with(ServerOptions {
        limits,
        ..support::options()
    });
    let head = format!("GET /healthz HTTP/1.1\r\nHost: {}\r\n\r\n", server.address);
    let mut answer = Vec::new();
    eventually("a request is not too late", || {
        let mut stream = TcpStream::connect(server.address).expect("the server accepts");
        stream
            .set_read_timeout(Some(PATIENCE))
            .expect("a timeout can be set");
        // On a busy machine the connection may be closed before its request is there, so that both fail.
        let _ = stream.write_all(head.as_bytes());
        let ended = stream.read_to_end(&mut answer);
        if answer.is_empty() {
            return false;
        }
        ended.expect("the server ends it");
        true
    });
    let answer = String::from_utf8_lossy(&answer);
    assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
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

#[test]
fn who_has_a_turn_is_named_by_address_where_there_are_no_accounts() {
    let server = TestServer::start();
    let status = server.get("/api/v1/status").json();
    let asker = &status["turns"]["lists"]["askers"][0];
    assert_eq!(asker["tenant"], "anonymous");
    assert_eq!(asker["caller"], "127.0.0.1");
    assert_eq!(asker["running"], 1);
}
