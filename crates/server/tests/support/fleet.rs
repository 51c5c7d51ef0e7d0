//! Documents of fleets, and nodes that listen as agents do.

use std::io::BufRead;
use std::io::BufReader;
use std::io::Read;
use std::io::Write;
use std::net::SocketAddr;
use std::net::TcpStream;
use std::thread::JoinHandle;
use std::time::Duration;
use std::time::Instant;

use candela_server::Limits;
use candela_server::ServerOptions;
use serde_json::Value;
use serde_json::json;

use super::Answer;
use super::PATIENCE;
use super::TestServer;
use super::request;

pub(crate) const DOCUMENT: &str = "/api/v1/fleet/persistence";
pub(crate) const SNAPSHOT: &str = "/api/v1/fleet/snapshot";

/// A node: a connection over which the server tells it lines, in chunks as HTTP has them.
pub(crate) struct Node {
    address: SocketAddr,
    pub(crate) name: String,
    lines: BufReader<TcpStream>,
}

impl Node {
    /// The stream of a node that is answered with 200.
    pub(crate) fn listen(server: &TestServer, name: &str) -> Self {
        Self::listen_as(server, name, "")
    }

    pub(crate) fn listen_as(server: &TestServer, name: &str, headers: &str) -> Self {
        let address = server.address;
        let stream = TcpStream::connect(address).expect("the server accepts");
        let patience = Some(PATIENCE);
        stream.set_read_timeout(patience).expect("a timeout");
        let path = format!("/api/v1/fleet/stream?node={name}");
        let head = format!("GET {path} HTTP/1.1\r\nHost: {address}\r\n{headers}\r\n");
        (&stream).write_all(head.as_bytes()).expect("it is sent");
        let mut lines = BufReader::new(stream);
        let head = read_head(&mut lines);
        assert!(head.starts_with("HTTP/1.1 200"), "{head}");
        assert!(
            head.contains("content-type: application/x-ndjson"),
            "{head}"
        );
        Self {
            address,
            name: name.to_owned(),
            lines,
        }
    }

    /// The next line; `None` once the stream has ended.
    pub(crate) fn next(&mut self) -> Option<Value> {
        let mut size = String::new();
        let _ = self.lines.read_line(&mut size);
        let size = usize::from_str_radix(size.trim(), 16).ok()?;
        let mut chunk = vec![0; size + 2];
        self.lines.read_exact(&mut chunk).expect("a chunk");
        (size > 0).then(|| serde_json::from_slice(&chunk).expect("a chunk is a line"))
    }

    /// The next line that is more than a sign of life.
    pub(crate) fn told(&mut self) -> Value {
        loop {
            let line = self.next().expect("the stream goes on");
            if line["kind"] != "keep_alive" {
                return line;
            }
        }
    }

    pub(crate) fn report(&self, more: Value) -> Answer {
        let mut report = json!({"node": self.name, "version": 1});
        if let Value::Object(more) = more {
            report.as_object_mut().expect("an object").extend(more);
        }
        let body = report.to_string();
        let answer = request(
            self.address,
            "POST",
            "/api/v1/fleet/report",
            &[],
            body.as_bytes(),
        );
        assert_eq!(answer.status, 200, "{}", answer.text());
        answer
    }

    /// Answers the next order in a thread of its own: with an object key, or with an error.
    pub(crate) fn answer_order(mut self, result: Value) -> JoinHandle<(Self, Value)> {
        std::thread::spawn(move || {
            let mut order = self.told();
            while order["kind"] != "snapshot" {
                order = self.told();
            }
            let mut snapshot = result;
            snapshot["id"] = order["id"].clone();
            let taken = self.report(json!({"pod": pod(&self.name), "snapshots": [snapshot]}));
            assert_eq!(taken.json()["snapshots"], 1, "{}", taken.text());
            (self, order)
        })
    }
}

pub(crate) fn pod(node: &str) -> Value {
    json!({
        "namespace": "shop",
        "name": format!("agent-{node}"),
        "ip": "10.0.0.7",
        "labels": {"app": "engine", "node": node},
    })
}

fn read_head(lines: &mut BufReader<TcpStream>) -> String {
    let mut head = String::new();
    while !head.ends_with("\r\n\r\n") {
        let count = lines.read_line(&mut head).expect("a head");
        assert!(count > 0, "{head}");
    }
    head
}

pub(crate) fn eventually(what: &str, mut is_so: impl FnMut() -> bool) {
    let start = Instant::now();
    while !is_so() {
        assert!(start.elapsed() < PATIENCE, "{what}");
        std::thread::park_timeout(Duration::from_millis(20));
    }
}

pub(crate) fn put(server: &TestServer, version: u64, document: &Value) -> Answer {
    let version = format!("\"{version}\"");
    let headers = [("If-Match", version.as_str())];
    let body = document.to_string();
    request(server.address, "PUT", DOCUMENT, &headers, body.as_bytes())
}

pub(crate) fn applied(server: &TestServer, version: u64, document: &Value) -> Value {
    let answer = put(server, version, document);
    assert_eq!(answer.status, 200, "{}", answer.text());
    answer.json()
}

/// A collector at some rate.
pub(crate) fn collector(hz: u32) -> Value {
    json!({"observability_daemons": [
        {"perf_collector": {"export_to": "s3://profiles", "perf_polling_frequency_hz": hz}},
    ]})
}

/// A daemon that takes snapshots when it is asked.
pub(crate) fn perfetto() -> Value {
    let config = "buffers { size_kb: 1024 } data_sources { config { name: \"linux.perf\" } } \
                  trigger_config { trigger_mode: CLONE_SNAPSHOT trigger_timeout_ms: 1000 \
                  triggers { name: \"traces\" stop_delay_ms: 1 } }";
    json!({"observability_daemons": [{"perfetto_daemon": {
        "config_text": config,
        "export_to": "s3://profiles",
        "trigger": "PERFETTO_TRIGGER_HTTP",
        "trigger_name": "traces",
    }}]})
}

/// A server that says that it is there twenty times a second.
pub(crate) fn start(fleet_nodes: usize) -> TestServer {
    TestServer::start_with(ServerOptions {
        limits: Limits {
            fleet_nodes,
            fleet_keep_alive: Duration::from_millis(50),
            ..Limits::default()
        },
        ..super::options()
    })
}

pub(crate) fn code(answer: &Answer) -> (u16, String) {
    let code = answer.json()["code"].as_str().unwrap_or("none").to_owned();
    (answer.status, code)
}
