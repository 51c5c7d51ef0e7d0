//! curl in the network of a `candela`.

use std::path::Path;
use std::path::PathBuf;
use std::process::Child;
use std::process::Command;
use std::process::Stdio;

use crate::support;
use crate::support::Running;

/// Where a `candela` listens.
pub(crate) struct Network {
    pid: u32,
    folder: tempfile::TempDir,
}

/// A request under way. curl ends with this value.
pub(crate) struct Asking {
    curl: Option<Child>,
    headers: tempfile::NamedTempFile,
    body: PathBuf,
}

/// What came back.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) code: u16,
    headers: Vec<(String, String)>,
    pub(crate) body: Vec<u8>,
}

impl Network {
    pub(crate) fn of(candela: &Running) -> Self {
        Self {
            pid: candela.pid(),
            folder: tempfile::tempdir().unwrap(),
        }
    }

    /// A second `candela up` there, at another port of its own.
    pub(crate) fn run_candela(&self, arguments: &[&str]) -> Running {
        let up = [&["up", "--listen", "127.0.0.1:0"], arguments].concat();
        let mut command = self.command(env!("CARGO_BIN_EXE_candela"));
        command.args(up);
        Running::launch(&mut command).unwrap()
    }

    /// Asks and waits for the answer.
    pub(crate) fn ask(&self, arguments: &[&str]) -> Answer {
        self.start(&self.folder.path().join("body"), arguments)
            .wait()
    }

    /// Asks; what is answered goes to a file.
    pub(crate) fn start(&self, body: &Path, arguments: &[&str]) -> Asking {
        // Without a body curl leaves the file alone, and it has that of the answer before.
        let _ = std::fs::remove_file(body);
        let headers = tempfile::NamedTempFile::new().unwrap();
        let curl = self
            .command("curl")
            .args(arguments)
            .args(["--silent", "--show-error", "--max-time", "120"])
            .arg("--output")
            .arg(body)
            .arg("--dump-header")
            .arg(headers.path())
            .stdin(Stdio::null())
            .spawn()
            .unwrap();
        Asking {
            curl: Some(curl),
            headers,
            body: body.to_owned(),
        }
    }

    fn command(&self, program: &str) -> Command {
        let mut command = support::in_clean_environment("nsenter");
        command.args([&format!("--net=/proc/{}/ns/net", self.pid), "--", program]);
        command
    }
}

impl Asking {
    /// Whether there is an answer, whatever it says.
    pub(crate) fn succeeds(mut self) -> bool {
        let mut curl = self.curl.take().unwrap();
        curl.wait().unwrap().success()
    }

    pub(crate) fn wait(mut self) -> Answer {
        let mut curl = self.curl.take().unwrap();
        let status = curl.wait().unwrap();
        assert!(status.success(), "curl: {status}");
        let headers = std::fs::read_to_string(self.headers.path()).unwrap();
        let mut lines = headers.lines();
        let code = lines.next().unwrap().split(' ').nth(1).unwrap();
        let pairs = lines.filter_map(|line| line.split_once(": "));
        Answer {
            code: code.parse().unwrap(),
            headers: pairs
                .map(|(name, value)| (name.to_lowercase(), value.to_owned()))
                .collect(),
            body: std::fs::read(&self.body).unwrap_or_default(),
        }
    }
}

impl Drop for Asking {
    fn drop(&mut self) {
        if let Some(mut curl) = self.curl.take() {
            // nsenter has become curl, so this is curl's end.
            support::signal(curl.id(), "KILL");
            let _ = curl.wait();
        }
    }
}

impl Answer {
    /// A header that must be there.
    pub(crate) fn header(&self, name: &str) -> &str {
        let found = self.headers.iter().find(|(found, _)| found == name);
        let found = found.unwrap_or_else(|| panic!("{name} in {:?}", self.headers));
        &found.1
    }
}
