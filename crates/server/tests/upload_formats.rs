//! `POST /api/v1/ingest` takes profiles of every format that can be read.

use candela_formats::Format;
use candela_formats::WriteOptions;

use crate::support;
use crate::support::TestServer;

const CALLGRIND: &str =
    "version: 1\nevents: Ir\n\nfn=main\n1 30\ncfn=work\ncalls=1 2\n1 70\n\nfn=work\n2 70\n";
const PERF_SCRIPT: &str =
    "app 7 1.5: 100 cycles:\n\t1000 work+0x1 (/bin/app)\n\t2000 main+0x2 (/bin/app)\n\n";

/// Functions of what the server has, up to a second from its standing clock.
fn functions_of(server: &TestServer) -> String {
    let milliseconds = support::NOW_NS / 1_000_000;
    let range = format!("from={}&to={}", milliseconds - 1_000, milliseconds + 1_000);
    let types = server.json(&format!("/api/v1/types?{range}"));
    let profile_type = types["types"][0]["id"].as_str().expect("a type");
    let top = server.json(&format!("/api/v1/top?type={profile_type}&{range}"));
    top["functions"].to_string()
}

#[test]
fn whatever_we_write_and_read_is_taken() {
    let server = TestServer::start();
    let profile = support::demo_profile();
    let mut taken = 0;
    for format in Format::all().filter(|format| format.is_writable() && format.is_readable()) {
        let mut bytes = Vec::new();
        let written =
            candela_formats::write(format, &profile, &mut bytes, &WriteOptions::default());
        written.expect("a sound profile");
        let answer = server.post(&format!("/api/v1/ingest?service={format}"), &bytes);
        assert_eq!(answer.status, 200, "{format}: {}", answer.text());
        assert!(answer.json()["samples"].as_u64() > Some(0), "{format}");
        taken += 1;
    }
    assert!(taken > 8, "{taken}");
}

#[test]
fn formats_of_other_tools_are_taken() {
    for (service, body) in [("callgrind", CALLGRIND), ("perf", PERF_SCRIPT)] {
        let server = TestServer::start();
        let path = format!("/api/v1/ingest?service={service}");
        let answer = server.post(&path, body.as_bytes());
        assert_eq!(answer.status, 200, "{service}: {}", answer.text());
        let functions = functions_of(&server);
        assert!(functions.contains("\"work\""), "{service}: {functions}");
    }
}

#[test]
fn what_is_no_profile_is_refused_with_what_helps() {
    let server = TestServer::start();
    let heap_dump = b"JAVA PROFILE 1.0.2\0\0\0\0\x08";
    let answer = server.post("/api/v1/ingest?service=heap", heap_dump);
    assert_eq!(answer.status, 415);
    let text = answer.text();
    assert!(text.contains("is no profile"), "{text}");
}
