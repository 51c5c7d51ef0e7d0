//! A runtime that runs until the test has ended.

use std::path::Path;
use std::process::Child;
use std::process::Command;
use std::process::Stdio;
use std::time::Instant;

use super::PATIENCE;

/// Ends with the value, by SIGTERM, so that it may clean up.
pub(crate) struct Daemon(Child);

// === impl Daemon ===

impl Daemon {
    /// Starts a command, which makes `socket` when it is ready; its log is beside it.
    pub(crate) fn start(command: &mut Command, socket: &Path) -> Self {
        let log = socket.with_extension("log");
        let file = std::fs::File::create(&log).expect("a file of the test");
        let output = file.try_clone().expect("a file");
        command.stdin(Stdio::null()).stdout(output).stderr(file);
        let mut daemon = Self(command.spawn().expect("it is installed"));
        let deadline = Instant::now() + PATIENCE;
        while !socket.try_exists().expect("a path of the test") {
            let has_ended = daemon.0.try_wait().expect("it is our child").is_some();
            if has_ended || Instant::now() > deadline {
                let log = std::fs::read_to_string(&log).unwrap_or_default();
                panic!("{command:?} is not ready: {log}");
            }
            std::thread::park_timeout(std::time::Duration::from_millis(20));
        }
        daemon
    }
}

impl Drop for Daemon {
    fn drop(&mut self) {
        let pid = self.0.id().to_string();
        let asked = Command::new("kill").args(["-TERM", &pid]).status();
        if !asked.is_ok_and(|status| status.success()) {
            let _ = self.0.kill();
        }
        let _ = self.0.wait();
    }
}
