//! A tool that runs for a while, and what it wrote.

use std::fs::File;
use std::io::Read;
use std::io::Seek;
use std::os::unix::process::CommandExt;
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::Child;
use std::process::Command;
use std::process::ExitStatus;
use std::process::Stdio;
use std::thread::park_timeout;
use std::time::Duration;
use std::time::Instant;

use rustix::io::Errno;
use rustix::process::Pid;
use rustix::process::Signal;
use rustix::process::kill_process_group;

use crate::on_demand::session::Signals;

/// How often a tool is looked at.
const POLL: Duration = Duration::from_millis(20);
/// How long a tool may take to write what it has, once it was asked to end.
const GRACE: Duration = Duration::from_secs(20);
/// How long it may be deaf to SIGINT: who starts us in the background often has it ignored, and what we start
/// inherits that.
const DEAF: Duration = Duration::from_secs(2);
/// The most that is kept of what a tool writes.
const LARGEST_OUTPUT: u64 = 1 << 30;
/// The most that is shown of what a tool complains about.
const LONGEST_COMPLAINT: usize = 300;

/// A tool with a group of its own, which ends with this value.
struct Tool(Child);

/// What became of a tool.
enum End {
    Exited {
        status: ExitStatus,
        /// Whether by us.
        was_told: bool,
    },
    /// It was told to end and has not.
    Deaf,
    /// It could not be told.
    OutOfReach(Errno),
}

/// Runs a tool until it ends, the time is over or the session is stopped; the last two by SIGINT, upon
/// which profilers write what they have, and by SIGTERM where that is ignored. What it wrote to standard
/// output.
///
/// # Errors
/// When it cannot be started, does not end, or fails, with its last words.
pub(crate) fn run(
    mut command: Command,
    time: Option<Duration>,
    signals: &Signals,
    has_started: impl FnOnce(),
) -> Result<Vec<u8>, String> {
    let name = Path::new(command.get_program()).display().to_string();
    let failed = |error: std::io::Error| format!("cannot run {name}: {error}");
    let mut output = tempfile::tempfile().map_err(failed)?;
    let mut complaints = tempfile::tempfile().map_err(failed)?;
    command
        .process_group(0)
        .stdin(Stdio::null())
        .stdout(output.try_clone().map_err(failed)?)
        .stderr(complaints.try_clone().map_err(failed)?);
    let mut tool = Tool(command.spawn().map_err(failed)?);
    has_started();
    let (status, was_told) = match tool.wait(time, signals).map_err(failed)? {
        End::Exited { status, was_told } => (status, was_told),
        End::Deaf => {
            return Err(format!(
                "{name} did not end within {GRACE:?} and was killed"
            ));
        }
        End::OutOfReach(error) => {
            let reason = format!("{name} cannot be told to end: {error}");
            signals.cannot_end(&reason);
            return Err(reason);
        }
    };
    let asked = [Signal::INT, Signal::TERM].map(Signal::as_raw);
    let is_interrupted = was_told
        && status
            .signal()
            .is_some_and(|signal| asked.contains(&signal));
    if !status.success() && !is_interrupted {
        let words = String::from_utf8_lossy(&content(&mut complaints).map_err(failed)?)
            .trim()
            .replace('\n', " ");
        let start = words.floor_char_boundary(words.len().saturating_sub(LONGEST_COMPLAINT));
        return Err(format!("{name} failed ({status}): {}", &words[start..]));
    }
    content(&mut output).map_err(failed)
}

fn content(file: &mut File) -> std::io::Result<Vec<u8>> {
    file.rewind()?;
    let mut bytes = Vec::new();
    file.take(LARGEST_OUTPUT).read_to_end(&mut bytes)?;
    Ok(bytes)
}

// === impl Tool ===

impl Tool {
    fn wait(&mut self, time: Option<Duration>, signals: &Signals) -> std::io::Result<End> {
        let start = Instant::now();
        let mut told: Option<Instant> = None;
        let mut is_told_again = false;
        loop {
            if let Some(status) = self.0.try_wait()? {
                let was_told = told.is_some();
                return Ok(End::Exited { status, was_told });
            }
            let is_over = time.is_some_and(|time| start.elapsed() >= time);
            let wanted = match told {
                Some(told) if told.elapsed() > GRACE => return Ok(End::Deaf),
                Some(told) if told.elapsed() > DEAF && !is_told_again => Some(Signal::TERM),
                None if is_over || signals.is_stopped() => Some(Signal::INT),
                Some(_) | None => None,
            };
            if let Some(signal) = wanted {
                if let Err(error) = self.signal(signal) {
                    return Ok(End::OutOfReach(error));
                }
                is_told_again = told.is_some();
                told.get_or_insert_with(Instant::now);
            }
            park_timeout(POLL);
        }
    }

    /// # Errors
    /// When the system lets us not: a tool may have become another user's.
    fn signal(&self, signal: Signal) -> Result<(), Errno> {
        let pid = i32::try_from(self.0.id()).ok().and_then(Pid::from_raw);
        match kill_process_group(pid.ok_or(Errno::SRCH)?, signal) {
            // It has ended meanwhile.
            Err(Errno::SRCH) => Ok(()),
            told => told,
        }
    }
}

impl Drop for Tool {
    fn drop(&mut self) {
        if !matches!(self.0.try_wait(), Ok(None)) {
            return;
        }
        match self.signal(Signal::KILL) {
            Ok(()) => {
                let _ = self.0.wait();
            }
            // Whoever waited for it would wait as long as it likes.
            Err(error) => {
                tracing::warn!(pid = self.0.id(), %error, "a profiler goes on: it cannot be killed");
            }
        }
    }
}

#[cfg(test)]
mod host_tests {
    use super::*;
    use crate::on_demand::session::Ending;

    fn shell(script: &str) -> Command {
        let mut command = Command::new("/bin/sh");
        command.args(["-c", script]);
        command
    }

    #[test]
    fn what_a_tool_writes_is_there() {
        let output = run(
            shell("echo a; echo b >&2"),
            None,
            &Signals::default(),
            || {},
        );
        assert_eq!(output, Ok(b"a\n".to_vec()));
        let failed = run(
            shell("echo why >&2; exit 3"),
            None,
            &Signals::default(),
            || {},
        );
        let error = failed.expect_err("it failed");
        assert!(error.contains("exit status: 3): why"), "{error}");
        let missing = run(
            Command::new("/nonexistent/perf"),
            None,
            &Signals::default(),
            || {},
        );
        assert!(missing.expect_err("missing").contains("/nonexistent/perf"));
    }

    #[test]
    fn a_tool_ends_with_its_time_and_with_its_session() {
        let endless = "exec tail -f /dev/null";
        let time = Some(Duration::from_millis(1));
        let output = run(shell(endless), time, &Signals::default(), || {});
        assert_eq!(output, Ok(Vec::new()));
        let signals = Signals::default();
        let output = run(shell(endless), None, &signals, || signals.end(Ending::Keep));
        assert_eq!(output, Ok(Vec::new()));
    }
}
