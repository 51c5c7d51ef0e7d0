//! `perf script` of one finished file, into the outbox.

use std::fs;
use std::fs::File;
use std::io::BufReader;
use std::io::Read;
use std::path::PathBuf;
use std::process::Child;
use std::process::ChildStdout;
use std::process::Stdio;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;

use flate2::Compression;
use flate2::write::GzEncoder;

use crate::error::DaemonError;
use crate::error::OutboxError;
use crate::outbox::Outbox;
use crate::outbox::OutboxFile;
use crate::perf_collector::SUFFIX;
use crate::perf_tool::filter;
use crate::perf_tool::processes::Verdicts;
use crate::perf_tool::program::Program;
use crate::perf_tool::program::complaints;

const THREAD: &str = "candela-script";
/// What our own dumps have, too.
const FIELDS: &str = "comm,pid,tid,cpu,time,period,event,ip,sym,dso";
/// How long perf may take to name what it has recorded.
const LONGEST: Duration = Duration::from_secs(300);
const COMPLAINTS: &str = "script-complaints.txt";

/// A file on its way.
#[derive(Debug)]
pub(super) struct Scripting {
    process: Child,
    thread: Option<JoinHandle<Result<OutboxFile, DaemonError>>>,
    data: PathBuf,
    began_ns: i64,
    deadline: Duration,
}

impl Scripting {
    /// Begins with a file whose first sample was taken then.
    ///
    /// # Errors
    /// When it cannot be started.
    pub(super) fn start(
        program: &Program,
        outbox: &Arc<Outbox>,
        (data, began_ns): (PathBuf, i64),
        verdicts: Verdicts,
        now: Duration,
    ) -> Result<Self, DaemonError> {
        let failed = |source: std::io::Error| DaemonError::Perf {
            reason: source.to_string(),
        };
        let file = outbox.begin()?;
        let folder = data.parent().unwrap_or(outbox.root());
        let mut process = program
            .command("script", folder)
            .args(["--header", "-F", FIELDS])
            // Inlined frames would take a process of addr2line for each library, and minutes.
            .arg("--no-inline")
            .arg("-i")
            .arg(&data)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(File::create(folder.join(COMPLAINTS)).map_err(failed)?)
            .spawn()
            .map_err(failed)?;
        let text = process.stdout.take();
        let copying = std::thread::Builder::new()
            .name(THREAD.to_owned())
            .spawn(move || copy(text, file, &verdicts));
        let thread = match copying {
            Ok(thread) => Some(thread),
            Err(source) => {
                let _ = process.kill();
                let _ = process.wait();
                let name = THREAD;
                return Err(DaemonError::Thread { name, source });
            }
        };
        Ok(Self {
            process,
            thread,
            data,
            began_ns,
            deadline: now + LONGEST,
        })
    }

    pub(super) fn pid(&self) -> u32 {
        self.process.id()
    }

    /// What became of it, once that is known: the name of the dump.
    pub(super) fn outcome(&mut self, now: Duration) -> Option<Result<String, DaemonError>> {
        let is_working = self
            .thread
            .as_ref()
            .is_some_and(|thread| !thread.is_finished());
        if is_working && now < self.deadline {
            return None;
        }
        if is_working {
            // Its pipe ends with it, and so does the thread.
            let _ = self.process.kill();
        }
        let thread = self.thread.take()?;
        let status = self.process.wait();
        // Whatever became of it, it would be no better the next time.
        let _ = fs::remove_file(&self.data);
        let copied = thread.join().unwrap_or_else(|_| {
            let reason = "the thread that reads perf script".to_owned();
            Err(DaemonError::Died { reason })
        });
        let is_success = status.is_ok_and(|status| status.success());
        Some(copied.and_then(|file| {
            if !is_success {
                file.give_up();
                let said = complaints(&self.data.with_file_name(COMPLAINTS));
                let reason = format!("perf script failed or took longer than {LONGEST:?}: {said}");
                return Err(DaemonError::Perf { reason });
            }
            Ok(file.publish(self.began_ns / 1_000_000_000, SUFFIX)?)
        }))
    }
}

impl Drop for Scripting {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

fn copy(
    text: Option<ChildStdout>,
    file: OutboxFile,
    verdicts: &Verdicts,
) -> Result<OutboxFile, DaemonError> {
    let path = file.path().to_owned();
    let mut encoder = GzEncoder::new(file, Compression::default());
    let text: Box<dyn Read> = match text {
        Some(text) => Box::new(text),
        None => Box::new(std::io::empty()),
    };
    let copied = filter::copy(BufReader::new(text), &mut encoder, verdicts);
    let finished = copied.and_then(|samples| {
        tracing::debug!(samples, "perf script is read");
        encoder.finish()
    });
    finished.map_err(|source| OutboxError::File { path, source }.into())
}
