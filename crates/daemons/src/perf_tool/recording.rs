//! `perf record`, which goes on until it is told to end.

use std::fs;
use std::fs::File;
use std::io;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::path::PathBuf;
use std::process::Child;
use std::process::ExitStatus;
use std::process::Stdio;
use std::time::Duration;
use std::time::Instant;

use crate::error::DaemonError;
use crate::perf_tool::Plan;
use crate::perf_tool::program::Program;
use crate::perf_tool::program::complaints;

/// The file that is being written; finished ones have a time behind it.
const DATA: &str = "perf.data";
const COMPLAINTS: &str = "complaints.txt";

/// How long perf may take to write what it has, once it was told to end.
const GRACE: Duration = Duration::from_secs(10);
const POLL: Duration = Duration::from_millis(10);
/// What stands in the complaints of a perf that will be refused tomorrow as today.
const REFUSALS: [&str; 3] = ["is limited", "Permission denied", "Operation not permitted"];

/// A perf that records. It ends with this value, and with the process that has it.
#[derive(Debug)]
pub(super) struct Recording {
    process: Child,
    folder: PathBuf,
}

impl Recording {
    /// # Errors
    /// When it cannot be started.
    pub(super) fn start(
        program: &Program,
        plan: &Plan,
        folder: &Path,
    ) -> Result<Self, DaemonError> {
        let started = spawn(program, plan, folder);
        let process = started.map_err(|source| DaemonError::Perf {
            reason: source.to_string(),
        })?;
        let folder = folder.to_owned();
        Ok(Self { process, folder })
    }

    pub(super) fn pid(&self) -> u32 {
        self.process.id()
    }

    /// Whether it samples: it writes the head of its file after it has opened everything.
    pub(super) fn has_begun(&self) -> bool {
        let data = fs::metadata(self.folder.join(DATA));
        data.is_ok_and(|data| data.len() > 0)
    }

    /// Why it has ended by itself, if it has.
    pub(super) fn failure(&mut self) -> Option<DaemonError> {
        let status = match self.process.try_wait() {
            Ok(None) => return None,
            Ok(Some(status)) => status,
            Err(error) => {
                let reason = error.to_string();
                return Some(DaemonError::Perf { reason });
            }
        };
        Some(why(status, &complaints(&self.folder.join(COMPLAINTS))))
    }

    /// Lets it write what it has, and waits for that.
    pub(super) fn end(&mut self) {
        // The program that it records has nothing more to read, and ends; so does perf.
        drop(self.process.stdin.take());
        let deadline = Instant::now() + GRACE;
        while matches!(self.process.try_wait(), Ok(None)) {
            if Instant::now() > deadline {
                tracing::warn!("perf record does not end and is killed; its last dump is lost");
                return;
            }
            std::thread::park_timeout(POLL);
        }
    }
}

impl Drop for Recording {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// Finished files of a folder, the oldest first.
pub(super) fn finished_files(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let mut files: Vec<PathBuf> = entries
        .map(|entry| entry.path())
        .filter(|path| ended_at(path).is_some())
        .collect();
    files.sort();
    files
}

/// When a file was finished, nanoseconds since the epoch: perf writes it behind the name, to a hundredth of a second.
pub(super) fn ended_at(path: &Path) -> Option<i64> {
    let name = path.file_name()?.to_str()?;
    let time = name.strip_prefix(DATA)?.strip_prefix('.')?;
    let (second, hundredths) = time.split_at_checked(14)?;
    let second = jiff::civil::DateTime::strptime("%Y%m%d%H%M%S", second).ok()?;
    let second = second.to_zoned(jiff::tz::TimeZone::UTC).ok()?.timestamp();
    let hundredths: i64 = hundredths.parse().ok()?;
    second
        .as_second()
        .checked_mul(1_000_000_000)?
        .checked_add(hundredths * 10_000_000)
}

/// Removes what a perf was writing that is not there any more.
pub(super) fn remove_unfinished(folder: &Path) -> bool {
    fs::remove_file(folder.join(DATA)).is_ok()
}

fn spawn(program: &Program, plan: &Plan, folder: &Path) -> io::Result<Child> {
    let mut command = program.command("record", folder);
    command
        .args(["-q", "-a", "-N", "-o", DATA])
        // The clock of our own sampler: dumps of both mean the same. Idle CPUs are in neither.
        .args(["-e", "cpu-clock:I"])
        .args(["-F", &plan.frequency_hz.to_string()])
        .arg(format!("--switch-output={}s", plan.dump.as_secs()))
        // In megabytes, as files that are told in bytes are taken for smaller ones.
        .arg(format!("--max-size={}M", (plan.most_bytes >> 20).max(1)));
    if plan.has_call_graph {
        command.arg("-g");
    }
    command
        // A program that ends with the pipe that we hold, also when we are killed: perf ends with it, and nobody is left
        // who records for ever.
        .args(["--", "cat"])
        .process_group(0)
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(File::create(folder.join(COMPLAINTS))?)
        .spawn()
}

fn why(status: ExitStatus, complaints: &str) -> DaemonError {
    if REFUSALS.iter().any(|refusal| complaints.contains(refusal)) {
        return DaemonError::Impossible {
            reason: format!(
                "perf record is refused: {complaints}; give the agent CAP_PERFMON or lower \
                 kernel.perf_event_paranoid, and restart it"
            ),
        };
    }
    DaemonError::Perf {
        reason: format!("perf record has ended ({status}): {complaints}"),
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::process::ExitStatusExt;

    use super::*;

    #[test]
    fn finished_files_tell_their_ends() {
        let ended = |name: &str| ended_at(&Path::new("/x").join(name));
        assert_eq!(
            ended("perf.data.2026022015301250"),
            Some(1_771_601_412_500_000_000)
        );
        for other in [
            "perf.data",
            "perf.data.old",
            "complaints.txt",
            "perf.data.2026",
        ] {
            assert_eq!(ended(other), None, "{other}");
        }
    }

    #[test]
    fn what_will_be_refused_again_is_told_from_what_may_pass() {
        let status = ExitStatus::from_raw(255 << 8);
        let limited =
            "Error: Access to performance monitoring and observability operations is limited.";
        let error = why(status, limited);
        assert!(
            error.is_permanent() && error.to_string().contains("CAP_PERFMON"),
            "{error}"
        );
        let full = why(
            status,
            "failed to write perf data, error: No space left on device",
        );
        assert!(
            !full.is_permanent() && full.to_string().contains("No space left"),
            "{full}"
        );
    }
}
