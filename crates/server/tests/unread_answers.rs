//! Clients that ask for much and read nothing of it.

use std::io::ErrorKind;
use std::io::Read;
use std::io::Write;
use std::net::TcpStream;
use std::time::Duration;

use candela_model::FrameKind;
use candela_model::Location;
use candela_model::Profile;
use candela_model::Sample;
use candela_server::Bound;
use candela_server::Limits;
use candela_server::ServerOptions;
use candela_server::TenantLimits;

use crate::support;
use crate::support::PATIENCE;
use crate::support::TestServer;

/// Each line has a whole stack: 16 MB together.
const LARGE: &str = "/api/v1/flamegraph?format=folded&max_nodes=10000";

/// It has more than these.
const LARGE_BYTES: usize = 16_000_000;

/// More than sockets hold.
const LONG_BODY: usize = 64 << 20;

const DEPTH: usize = 400;
const LEAVES: usize = 800;

fn deep_profile() -> Profile {
    let mut profile = Profile::default();
    let mut location = |name: String| {
        let function = profile.symbols.intern_function(&name, "", "", 0);
        let location = Location::new(FrameKind::Unknown, 0);
        profile
            .symbols
            .intern_location(&location, &[(function, 0, 0)])
    };
    let path: Vec<_> = (0..DEPTH)
        .map(|depth| {
            location(format!(
                "a_function_with_a_long_name_to_fill_lines_{depth:07}"
            ))
        })
        .collect();
    let leaves: Vec<_> = (0..LEAVES)
        .map(|leaf| location(format!("leaf_{leaf}")))
        .collect();
    let mut series = support::cpu_series();
    for leaf in leaves {
        let stack: Vec<_> = std::iter::once(leaf).chain(path.iter().copied()).collect();
        let stack = profile.stacks.intern(&stack);
        series.samples.push(Sample::new(stack, 10));
    }
    profile.series.push(series);
    profile
}

fn start() -> TestServer {
    let server = TestServer::start();
    let body = support::pprof_bytes(&deep_profile());
    let answer = server.post("/api/v1/ingest?service=deep", &body);
    assert_eq!(answer.status, 200, "{}", answer.text());
    server
}

#[test]
fn an_answer_that_is_read_comes_whole() {
    let server = start();
    let answer = server.get(LARGE);
    assert_eq!(answer.status, 200);
    assert!(
        answer.body.len() > LARGE_BYTES,
        "{} bytes",
        answer.body.len()
    );
    assert_eq!(answer.text().lines().count(), LEAVES);
}

#[test]
fn a_connection_whose_client_reads_nothing_is_closed() {
    let server = TestServer::start_with(ServerOptions {
        limits: Limits {
            write_timeout: Duration::from_millis(500),
            ..Limits::default()
        },
        ..support::options()
    });
    let mut stream = TcpStream::connect(server.address).expect("the server accepts");
    stream
        .set_write_timeout(Some(PATIENCE))
        .expect("a timeout can be set");
    let head = format!("GET /metrics HTTP/1.1\r\nHost: {}\r\n\r\n", server.address);
    // While answers are not read, no further request is; so writing them waits, too.
    let error = loop {
        if let Err(error) = stream.write_all(head.as_bytes()) {
            break error;
        }
    };
    let closed = [ErrorKind::ConnectionReset, ErrorKind::BrokenPipe];
    assert!(closed.contains(&error.kind()), "{error}");
}

#[test]
fn a_client_that_still_writes_reads_the_answer() {
    let options = ServerOptions {
        tenant_limits: TenantLimits {
            body_size: Bound::new(1 << 20),
            ..TenantLimits::default()
        },
        ..support::options()
    };
    let server = TestServer::start_with(options);
    let mut stream = TcpStream::connect(server.address).expect("it listens");
    stream.set_read_timeout(Some(PATIENCE)).expect("a socket");
    stream.set_write_timeout(Some(PATIENCE)).expect("a socket");
    let head = format!(
        "POST /api/v1/ingest?service=x HTTP/1.1\r\nHost: localhost\r\nContent-Length: {LONG_BODY}\r\n\r\n"
    );
    stream.write_all(head.as_bytes()).expect("it reads");
    let body = vec![0; LONG_BODY];
    stream.write_all(&body).expect("it reads on, to no use");
    let mut answer = String::new();
    stream.read_to_string(&mut answer).expect("no reset");
    assert!(answer.starts_with("HTTP/1.1 413 "), "{answer}");
    assert!(answer.contains("\"too_large\""), "{answer}");
}
