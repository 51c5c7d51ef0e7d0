//! A server of S3 that others wrote, in Python.

use std::io::Read;
use std::io::Write;
use std::net::TcpListener;
use std::net::TcpStream;
use std::path::PathBuf;
use std::process::Child;
use std::process::Command;
use std::process::Stdio;
use std::time::Duration;
use std::time::Instant;

pub(crate) const BUCKET: &str = "profiles";

const START_LIMIT: Duration = Duration::from_secs(60);

/// A running server; it ends with the value.
pub(crate) struct Moto {
    process: Child,
    pub(crate) port: u16,
}

impl Moto {
    /// `None` where it is not installed. With `checks_keys` only keys that were made there are taken.
    pub(crate) fn start(port: u16, checks_keys: bool) -> Option<Self> {
        let program = program()?;
        let mut command = Command::new(program);
        if checks_keys {
            // The first requests make the bucket, and who may do what; then it is strict.
            command.env("INITIAL_NO_AUTH_ACTION_COUNT", "1");
        }
        let process = command
            .args(["-H", "127.0.0.1", "-p", &port.to_string()])
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .expect("starts");
        let moto = Self { process, port };
        let deadline = Instant::now() + START_LIMIT;
        while TcpStream::connect(("127.0.0.1", port)).is_err() {
            assert!(Instant::now() < deadline, "moto does not answer");
            std::thread::park_timeout(Duration::from_millis(20));
        }
        let (head, _) = moto.ask("PUT", &format!("/{BUCKET}"));
        assert!(head.starts_with("HTTP/1.1 200"), "{head}");
        Some(moto)
    }

    pub(crate) fn endpoint(&self) -> String {
        format!("http://127.0.0.1:{}", self.port)
    }

    /// The keys in the bucket in their order.
    pub(crate) fn keys(&self) -> Vec<String> {
        let (_, body) = self.ask("GET", &format!("/{BUCKET}?list-type=2"));
        let body = String::from_utf8(body).expect("XML");
        let keys = body.split("<Key>").skip(1);
        keys.map(|rest| rest.split('<').next().unwrap_or_default().to_owned())
            .collect()
    }

    pub(crate) fn object(&self, key: &str) -> Vec<u8> {
        let (head, body) = self.ask("GET", &format!("/{BUCKET}/{key}"));
        assert!(head.starts_with("HTTP/1.1 200"), "{head}");
        body
    }

    /// Head and body of an answer.
    fn ask(&self, method: &str, path: &str) -> (String, Vec<u8>) {
        // Objects are nobody's who does not say who he is; whether that is true is not looked at.
        let request = format!(
            "{method} {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: AWS testing:x\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"
        );
        let mut stream = TcpStream::connect(("127.0.0.1", self.port)).expect("it answers");
        stream.write_all(request.as_bytes()).expect("it is asked");
        let mut answer = Vec::new();
        stream.read_to_end(&mut answer).expect("it answers");
        let end = answer.windows(4).position(|four| four == b"\r\n\r\n");
        let body = answer.split_off(end.expect("a head") + 4);
        (String::from_utf8_lossy(&answer).into_owned(), body)
    }
}

impl Drop for Moto {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// A port that nobody has at the moment.
pub(crate) fn free_port() -> u16 {
    let free = TcpListener::bind("127.0.0.1:0").expect("a port");
    free.local_addr().expect("an address").port()
}

/// In the folder of Python programs beside the build, where `scripts/install-deps test` puts it.
fn program() -> Option<PathBuf> {
    let test = std::env::current_exe().expect("a path");
    let target = test.ancestors().nth(3)?;
    let program = target.join("test-python/bin/moto_server");
    program.is_file().then_some(program)
}
