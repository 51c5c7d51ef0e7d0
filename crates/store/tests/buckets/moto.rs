//! The S3 of moto, which is written by others than the one of `s3s`.

use std::io;
use std::io::BufRead;
use std::io::BufReader;
use std::io::Read;
use std::io::Write;
use std::net::TcpStream;
use std::path::PathBuf;
use std::process::Child;
use std::process::Command;
use std::process::Stdio;
use std::thread;

use candela_store::Backend;
use candela_store::S3Options;
use candela_store::Secret;

use super::serve::BUCKET;

/// A running server; it ends with the value.
pub(crate) struct Moto {
    process: Child,
    address: String,
}

impl Moto {
    /// `None` where it is not installed.
    pub(crate) fn start() -> Option<Self> {
        let program = program()?;
        let mut process = Command::new(program)
            .args(["-H", "127.0.0.1", "-p", "0"])
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .expect("starts");
        let mut said = BufReader::new(process.stderr.take().expect("piped"));
        let address = address_in(&mut said);
        // It says each request, and would wait for somebody who reads that.
        thread::spawn(move || io::copy(&mut said, &mut io::sink()));
        let moto = Self { process, address };
        moto.make_bucket();
        Some(moto)
    }

    pub(crate) fn backend(&self) -> Backend {
        Backend::S3(S3Options {
            bucket_name: BUCKET.to_owned(),
            endpoint: Some(format!("http://{}", self.address)),
            access_key_id: Some("testing".to_owned()),
            secret_access_key: Some(Secret::new("testing")),
            ..S3Options::default()
        })
    }

    fn make_bucket(&self) {
        let request = format!(
            "PUT /{BUCKET} HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"
        );
        let mut answer = String::new();
        let mut stream = TcpStream::connect(&self.address).expect("moto listens");
        stream.write_all(request.as_bytes()).expect("moto reads");
        stream.read_to_string(&mut answer).expect("moto answers");
        assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
    }
}

impl Drop for Moto {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// Where it says that it listens.
fn address_in(said: &mut impl BufRead) -> String {
    let mut lines = Vec::new();
    for line in said.lines() {
        let line = line.expect("text");
        if let Some((_, address)) = line.split_once("Running on http://") {
            return address.trim_end().to_owned();
        }
        lines.push(line);
    }
    panic!("moto ends: {lines:?}");
}

/// In the folder of Python programs beside the build, where `scripts/install-deps test` puts it.
fn program() -> Option<PathBuf> {
    let test = std::env::current_exe().expect("a path");
    let target = test.ancestors().nth(3)?;
    let program = target.join("test-python/bin/moto_server");
    program.is_file().then_some(program)
}
