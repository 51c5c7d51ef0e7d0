//! A program with a client in it, and the server that it sends to.

use std::fs::File;
use std::path::PathBuf;
use std::process::Child;
use std::process::Command;
use std::process::Stdio;

use tempfile::TempDir;

use crate::support;
use crate::support::Running;

/// A server with an empty data directory.
pub(crate) struct TestServer {
    pub(crate) running: Running,
    _folder: TempDir,
}

/// A program that runs until the value is dropped. What it wrote is shown when the test fails.
pub(crate) struct Client {
    child: Child,
    log: PathBuf,
    _folder: TempDir,
}

impl TestServer {
    pub(crate) fn start() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let data = folder.path().display().to_string();
        let arguments = ["server", "--listen", "127.0.0.1:0", "--data-dir", &data];
        Self {
            running: Running::start(&arguments),
            _folder: folder,
        }
    }

    /// What a client is given: `http://127.0.0.1:PORT`.
    pub(crate) fn address(&self) -> String {
        self.running.url("")
    }
}

impl Client {
    pub(crate) fn start(command: &mut Command) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let log = folder.path().join("log");
        let file = File::create(&log).unwrap();
        let child = command
            .current_dir(folder.path())
            .stdin(Stdio::null())
            .stdout(file.try_clone().unwrap())
            .stderr(file)
            .spawn()
            .unwrap_or_else(|error| panic!("{command:?}: {error}"));
        Self {
            child,
            log,
            _folder: folder,
        }
    }

    /// The first `Some` of `attempt`, tried until it comes or the program ends.
    pub(crate) fn until<T>(&mut self, what: &str, mut attempt: impl FnMut() -> Option<T>) -> T {
        support::eventually(what, || {
            if let Some(status) = self.child.try_wait().unwrap() {
                panic!("{what}: the program ended with {status}");
            }
            attempt()
        })
    }
}

impl Drop for Client {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = self.child.kill();
        let _ = self.child.wait();
        if std::thread::panicking() {
            let log = std::fs::read_to_string(&self.log).unwrap_or_default();
            println!("the program wrote:\n{log}");
        }
    }
}
