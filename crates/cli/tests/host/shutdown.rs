//! How the long-running commands begin and end.

use std::io::Read;
use std::io::Write;
use std::net::TcpListener;
use std::net::TcpStream;

use crate::support;
use crate::support::Running;
use crate::support::eventually;
use crate::support::signal;
use crate::support::stderr;

pub(crate) fn server(folder: &tempfile::TempDir) -> Running {
    let data_dir = folder.path().to_str().unwrap();
    Running::start(&["server", "--listen", "127.0.0.1:0", "--data-dir", data_dir])
}

fn address(running: &Running) -> String {
    running.url("").replace("http://", "")
}

/// A request whose body never comes, once the server waits for it.
fn endless_request(running: &Running) -> TcpStream {
    let mut stream = TcpStream::connect(address(running)).unwrap();
    let request = "POST /api/v1/ingest?service=a HTTP/1.1\r\nHost: localhost\r\n\
                   Content-Length: 10\r\nExpect: 100-continue\r\n\r\n";
    stream.write_all(request.as_bytes()).unwrap();
    let mut answer = [0; 12];
    stream.read_exact(&mut answer).unwrap();
    assert_eq!(&answer, b"HTTP/1.1 100");
    stream
}

#[test]
fn a_second_signal_ends_at_once() {
    let folder = tempfile::tempdir().unwrap();
    let running = server(&folder);
    let _request = endless_request(&running);
    signal(running.pid(), "TERM");
    eventually("the port is closed", || {
        TcpStream::connect(address(&running)).err()
    });
    // Of another kind: it is a second wish however soon it comes.
    signal(running.pid(), "INT");
    assert_eq!(running.wait(), Some(130));
}

#[test]
fn a_long_profile_of_the_process_does_not_hold_up_its_end() {
    let test = "a_long_profile_of_the_process_does_not_hold_up_its_end";
    if !support::is_root(test) {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let running = server(&folder);
    let mut stream = TcpStream::connect(address(&running)).unwrap();
    let request = "GET /debug/pprof/profile?seconds=300 HTTP/1.1\r\nHost: localhost\r\n\r\n";
    stream.write_all(request.as_bytes()).unwrap();
    let descriptors = format!("/proc/{}/fd", running.pid());
    eventually("the recording is under way", || {
        let entries = std::fs::read_dir(&descriptors).unwrap();
        entries
            .filter_map(|entry| std::fs::read_link(entry.ok()?.path()).ok())
            .find(|link| link.to_string_lossy().contains("perf_event"))
    });
    assert_eq!(running.terminate(), Some(0));
}

#[test]
fn a_taken_port_is_found_before_the_agent_starts() {
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let folder = tempfile::tempdir().unwrap();
    let output = support::candela()
        .args(["up", "--listen", &taken.local_addr().unwrap().to_string()])
        .arg("--data-dir")
        .arg(folder.path())
        // The agent would complain about this first.
        .env("CANDELA_AGENT__SERVICE_RULES", "api=(")
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(1), "{}", stderr(&output));
    assert!(stderr(&output).contains("is taken"), "{}", stderr(&output));
    assert!(!stderr(&output).contains("agent"), "{}", stderr(&output));
}

#[test]
fn without_an_agent_the_status_has_none() {
    let folder = tempfile::tempdir().unwrap();
    let data_dir = folder.path().to_str().unwrap();
    let arguments = [
        "up",
        "--no-agent",
        "--listen",
        "127.0.0.1:0",
        "--data-dir",
        data_dir,
    ];
    let running = Running::start(&arguments);
    let status = support::get_json(&running.url("/api/v1/status"));
    assert_eq!(status.get("agent"), None);
    assert_eq!(status["agents"], serde_json::json!([]));
    assert_eq!(running.terminate(), Some(0));
}

#[test]
fn up_says_where_profiles_are_kept() {
    let folder = tempfile::tempdir().unwrap();
    let data_dir = folder.path().join("data");
    let link = folder.path().join("link");
    std::fs::create_dir(&data_dir).unwrap();
    std::os::unix::fs::symlink(&data_dir, &link).unwrap();
    let listen = ["up", "--no-agent", "--listen", "127.0.0.1:0"];
    let running = Running::start(&[&listen[..], &["--data-dir", link.to_str().unwrap()]].concat());
    let data_dir = data_dir.canonicalize().unwrap();
    let line = format!("profiles are kept in {}\n", data_dir.display());
    eventually("the line with the folder", || {
        running.messages().contains(&line).then_some(())
    });
    assert_eq!(running.terminate(), Some(0));
}
