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
    let (status, was_told) = tool.wait(time, signals).map_err(failed)?;
    let Some(status) = status else {
        return Err(format!(
            "{name} did not end within {GRACE:?} and was killed"
        ));
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
    /// How it ended, none when it did not, and whether we told it to.
    fn wait(
        &mut self,
        time: Option<Duration>,
        signals: &Signals,
    ) -> std::io::Result<(Option<ExitStatus>, bool)> {
        let start = Instant::now();
        let mut told: Option<Instant> = None;
        let mut is_told_again = false;
        loop {
            if let Some(status) = self.0.try_wait()? {
                return Ok((Some(status), told.is_some()));
            }
            match told {
                Some(told) if told.elapsed() > GRACE => return Ok((None, true)),
                Some(told) if told.elapsed() > DEAF && !is_told_again => {
                    self.signal(Signal::TERM);
                    is_told_again = true;
                }
                Some(_) => {}
                None => {
                    let is_over = time.is_some_and(|time| start.elapsed() >= time);
                    if is_over || signals.is_stopped() {
                        self.signal(Signal::INT);
                        told = Some(Instant::now());
                    }
                }
            }
            park_timeout(POLL);
        }
    }

    fn signal(&self, signal: Signal) {
        let pid = i32::try_from(self.0.id()).ok().and_then(Pid::from_raw);
        if let Some(pid) = pid {
            // It may have ended meanwhile.
            let _ = kill_process_group(pid, signal);
        }
    }
}

impl Drop for Tool {
    fn drop(&mut self) {
        if let Ok(None) = self.0.try_wait() {
            self.signal(Signal::KILL);
            let _ = self.0.wait();
        }
    }
}

#[cfg(test)]
mod tests {
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
