//! Host and Origin on loopback.

use candela_server::ServerOptions;

use crate::support;
use crate::support::TestServer;
use crate::support::request;

#[test]
fn foreign_hosts_are_refused_on_loopback() {
    let options = ServerOptions {
        host_names: vec!["box.example".to_owned()],
        ..support::options()
    };
    let server = TestServer::start_with(options);
    let status =
        |host: &str| request(server.address, "GET", "/healthz", &[("Host", host)], b"").status;
    for host in [
        "localhost",
        "localhost:1",
        "127.0.0.1:4040",
        "[::1]:4040",
        "box.example",
    ] {
        assert_eq!(status(host), 200, "{host}");
    }
    for host in [
        "evil.example",
        "evil.example:4040",
        "10.0.0.1",
        "localhost.evil.example",
    ] {
        assert_eq!(status(host), 403, "{host}");
    }
    let answer = request(
        server.address,
        "GET",
        "/api/v1/top",
        &[("Host", "evil.example")],
        b"",
    );
    assert_eq!(answer.json()["code"], "foreign_host");
}

#[test]
fn pages_of_other_origins_cannot_write() {
    let server = TestServer::start();
    let body = support::pprof_bytes(&support::demo_profile());
    let same = format!("http://{}", server.address);
    let post = |headers: &[(&str, &str)]| {
        request(
            server.address,
            "POST",
            "/api/v1/ingest?service=x",
            headers,
            &body,
        )
        .status
    };
    assert_eq!(post(&[]), 200);
    assert_eq!(post(&[("Origin", &same)]), 200);
    assert_eq!(post(&[("Sec-Fetch-Site", "same-origin")]), 200);
    assert_eq!(post(&[("Origin", "http://evil.example")]), 403);
    assert_eq!(post(&[("Origin", "http://127.0.0.1:1")]), 403);
    assert_eq!(post(&[("Origin", "null")]), 403);
    assert_eq!(post(&[("Sec-Fetch-Site", "cross-site")]), 403);
    assert_eq!(post(&[("Sec-Fetch-Site", "same-site")]), 403);
    let otlp = request(
        server.address,
        "POST",
        "/v1/profiles",
        &[("Origin", "http://evil.example")],
        b"",
    );
    assert_eq!(otlp.json()["code"], "foreign_origin");
}
