//! Requests that are refused: their clients read why, also those that still write.

use std::ffi::OsString;
use std::path::Path;
use std::path::PathBuf;

use crate::support;
use crate::support::Running;

/// 34 MB, more than sockets hold, so that a client cannot have written all before the answer comes.
const TOO_MANY_LINES: &str = "2800000";

/// Nearly as large as a body may be here.
const MANY_LINES: &str = "79000";

/// Without the empty header curl would ask before it sends so much.
const CURL: &str = r#"yes "main;work 1" | head -n "$3" |
    curl --silent --show-error $1 --data-binary @- -H Expect: -H "Content-Encoding: $4" -w ' %{http_code}\n' "$2""#;

/// Takes a URL, a number of lines and an encoding.
struct PushClient {
    tool: &'static str,
    arguments: Vec<OsString>,
}

impl PushClient {
    fn new<const N: usize>(tool: &'static str, arguments: [&Path; N]) -> Self {
        Self {
            tool,
            arguments: arguments.map(OsString::from).to_vec(),
        }
    }

    /// Those that are installed.
    fn all(test: &str, folder: &Path) -> Vec<Self> {
        let script = folder.join("push.sh");
        std::fs::write(&script, CURL).expect("our folder");
        let mut clients = vec![
            Self::new("python3", [&program("push.py")]),
            Self::new("java", [&program("Push.java")]),
            Self::new("go", [Path::new("run"), &program("push.go")]),
        ];
        if support::has_tool(test, "curl") {
            for version in ["--http1.1", "--http2-prior-knowledge"] {
                clients.push(Self::new("sh", [&script, Path::new(version)]));
            }
        }
        clients.retain(|client| support::has_tool(test, client.tool));
        clients
    }

    fn expect_answer(&self, request: [&str; 3], status: &str, code: &str) {
        let mut command = support::in_clean_environment(self.tool);
        command.args(&self.arguments).args(request);
        let output = command.output().expect("it is installed");
        let (text, messages) = (support::stdout(&output), support::stderr(&output));
        let is_whole = text.contains(status) && text.contains(&format!("{code:?}"));
        assert!(is_whole, "{command:?}: {text} {messages}");
    }
}

fn program(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests/programs/push")
        .join(name)
}

#[test]
fn clients_that_still_write_read_the_answer() {
    let test = "clients_that_still_write_read_the_answer";
    let folder = tempfile::tempdir().expect("a temporary folder");
    let data = folder.path().join("data");
    let data = data.to_str().expect("a text");
    let arguments = ["server", "--listen", "127.0.0.1:0", "--data-dir", data];
    let limits = [
        ("CANDELA_SERVER__LIMITS__BODY_SIZE", "1MiB"),
        ("CANDELA_SERVER__LIMITS__INGEST_RATE", "1"),
        ("CANDELA_SERVER__LIMITS__INGEST_BURST", "0"),
    ];
    let server = Running::try_start(&arguments, &limits).expect("it starts");
    let url = server.url("/api/v1/ingest?service=x");
    let clients = PushClient::all(test, folder.path());
    for client in &clients {
        let too_large = [&url, TOO_MANY_LINES, "identity"];
        client.expect_answer(too_large, "413", "too_large");
        let unreadable = [&url, TOO_MANY_LINES, "rot13"];
        client.expect_answer(unreadable, "415", "unknown_encoding");
    }
    // At a byte a second nothing more comes in for ten days. That is known when the body was read.
    let first = "main;work 1\n".repeat(80_000);
    let (stored, _) = support::try_post(&url, first.as_bytes()).expect("it runs");
    assert_eq!(stored, 200);
    for client in &clients {
        let next = [&url, MANY_LINES, "identity"];
        client.expect_answer(next, "429", "rate_limited");
    }
}
