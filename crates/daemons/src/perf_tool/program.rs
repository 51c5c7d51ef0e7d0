//! The perf of the host, and how it is run.

use std::fs;
use std::path::Path;
use std::path::PathBuf;
use std::process::Command;

use candela_agent::trusted_program;

use crate::error::DaemonError;

const PLACES: [&str; 3] = ["/usr/local/bin/perf", "/usr/bin/perf", "/usr/sbin/perf"];

/// The most that is told of what it complains about.
const LONGEST_COMPLAINT: usize = 300;

/// A perf that may be run: nobody but root may change it.
#[derive(Clone, Debug)]
pub(super) struct Program(PathBuf);

impl Program {
    /// # Errors
    /// [`DaemonError::Impossible`].
    pub(super) fn find() -> Result<Self, DaemonError> {
        // One that may not be looked at is named by the error of its use.
        let is_there = |place: &&Path| place.try_exists().unwrap_or(true);
        let place = PLACES.iter().map(Path::new).find(is_there);
        let place = place.ok_or_else(|| DaemonError::Impossible {
            reason: "profiler \"perf\": no perf is installed on this node; install it (linux-perf on Debian) and restart \
                     the agent, or remove profiler"
                .to_owned(),
        })?;
        let is_name = |name: &str| name == "perf" || name.starts_with("perf_");
        let program = trusted_program(place, is_name).map_err(|reason| DaemonError::Impossible {
            reason: format!("profiler \"perf\": {reason}; install it from the distribution, or remove profiler"),
        })?;
        Ok(Self(program))
    }

    /// One of its commands, in a folder. Neither our environment nor anybody's settings decide what root runs, and
    /// times in names are in UTC.
    pub(super) fn command(&self, subcommand: &str, folder: &Path) -> Command {
        let mut command = Command::new(&self.0);
        command
            .env_clear()
            .env("PATH", "/usr/sbin:/usr/bin:/sbin:/bin")
            .env("HOME", folder)
            .env("TZ", "UTC")
            .current_dir(folder)
            .arg(subcommand);
        command
    }
}

/// What a command has written to its file of complaints, in one line.
pub(super) fn complaints(path: &Path) -> String {
    let text = fs::read(path).unwrap_or_default();
    let text = String::from_utf8_lossy(&text);
    let words: Vec<&str> = text.split_whitespace().collect();
    if words.is_empty() {
        return "it said nothing".to_owned();
    }
    let line = words.join(" ");
    line[..line.floor_char_boundary(LONGEST_COMPLAINT)].to_owned()
}
