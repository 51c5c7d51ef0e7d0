//! The S3 of moto, which is written by others than the one of `s3s`.

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

use candela_store::Backend;
use candela_store::S3Options;
use candela_store::Secret;

use super::serve::BUCKET;

const START_LIMIT: Duration = Duration::from_secs(60);

/// A running server; it ends with the value.
pub(crate) struct Moto {
    process: Child,
    port: u16,
}

impl Moto {
    /// `None` where it is not installed.
    pub(crate) fn start() -> Option<Self> {
        let program = program()?;
        let free = TcpListener::bind("127.0.0.1:0").expect("a port");
        let port = free.local_addr().expect("an address").port();
        drop(free);
        let process = Command::new(program)
            .args(["-H", "127.0.0.1", "-p", &port.to_string()])
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .expect("starts");
        let moto = Self { process, port };
        let deadline = Instant::now() + START_LIMIT;
        while !moto.makes_bucket() {
            assert!(Instant::now() < deadline, "moto does not answer");
            std::thread::yield_now();
        }
        Some(moto)
    }

    pub(crate) fn backend(&self) -> Backend {
        Backend::S3(S3Options {
            bucket_name: BUCKET.to_owned(),
            endpoint: Some(format!("http://127.0.0.1:{}", self.port)),
            access_key_id: Some("testing".to_owned()),
            secret_access_key: Some(Secret::new("testing")),
            ..S3Options::default()
        })
    }

    fn makes_bucket(&self) -> bool {
        let request = format!(
            "PUT /{BUCKET} HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"
        );
        let mut answer = String::new();
        let asked = TcpStream::connect(("127.0.0.1", self.port)).and_then(|mut stream| {
            stream.write_all(request.as_bytes())?;
            stream.read_to_string(&mut answer)
        });
        asked.is_ok() && answer.starts_with("HTTP/1.1 200")
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
