//! A server of S3 that others wrote, in Python.

use std::io::Read;
use std::io::Write;
use std::net::SocketAddr;
use std::net::TcpStream;
use std::path::PathBuf;
use std::process::Child;
use std::process::Command;
use std::process::Stdio;

use crate::support::own_address;
use crate::support::wait_until;

pub(crate) const BUCKET: &str = "profiles";

/// A running server; it ends with the value.
pub(crate) struct Moto {
    process: Child,
    pub(crate) address: SocketAddr,
}

impl Moto {
    /// `None` where it is not installed. With `checks_keys` only keys that were made there are taken.
    pub(crate) fn start(checks_keys: bool) -> Option<Self> {
        let program = program()?;
        let address = own_address();
        let (host, port) = (address.ip().to_string(), address.port().to_string());
        let mut command = Command::new(program);
        if checks_keys {
            // The first requests make the bucket, and who may do what; then it is strict.
            command.env("INITIAL_NO_AUTH_ACTION_COUNT", "1");
        }
        let process = command
            .args(["-H", &host, "-p", &port])
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .expect("starts");
        let moto = Self { process, address };
        wait_until("moto listens", || TcpStream::connect(address).is_ok());
        let (head, _) = moto.ask("PUT", &format!("/{BUCKET}"));
        assert!(head.starts_with("HTTP/1.1 200"), "{head}");
        Some(moto)
    }

    pub(crate) fn endpoint(&self) -> String {
        format!("http://{}", self.address)
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
        let mut stream = TcpStream::connect(self.address).expect("it answers");
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

/// In the folder of Python programs beside the build, where `scripts/install-deps test` puts it.
fn program() -> Option<PathBuf> {
    let test = std::env::current_exe().expect("a path");
    let target = test.ancestors().nth(3)?;
    let program = target.join("test-python/bin/moto_server");
    program.is_file().then_some(program)
}
