//! The processes of this host, by `/proc`.

use std::fs;

use crate::labels::ProcessFacts;
use crate::processes::find_context;

/// What the executable of PostgreSQL's server is called.
const POSTGRES_NAMES: [&str; 2] = ["postgres", "postmaster"];

/// A process that runs.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct HostProcess {
    pub(crate) pid: u32,
    pub(crate) parent: u32,
    /// The name of the main thread.
    pub(crate) command: String,
    /// The path of the executable; empty where it cannot be read.
    pub(crate) executable: String,
}

// === impl HostProcess ===

impl HostProcess {
    /// All that run now, by number.
    pub(crate) fn all() -> Vec<Self> {
        let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
        let pids = entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
        let mut all: Vec<Self> = pids.filter_map(Self::read).collect();
        all.sort_by_key(|process| process.pid);
        all
    }

    /// None when it has ended, also when nobody has waited for it.
    fn read(pid: u32) -> Option<Self> {
        // The kernel cuts names in the middle of a letter, too.
        let stat = fs::read(format!("/proc/{pid}/stat")).ok()?;
        let stat = String::from_utf8_lossy(&stat);
        let (command, parent) = parse_stat(&stat)?;
        let facts = ProcessFacts::read(pid, command, "", None);
        Some(Self {
            pid,
            parent,
            command: facts.command,
            executable: facts.executable,
        })
    }

    /// What its labels are made of.
    pub(crate) fn facts(&self) -> ProcessFacts {
        let context = find_context(self.pid);
        ProcessFacts::read(self.pid, &self.command, &self.executable, context)
    }

    pub(crate) fn is_called(&self, name: &str) -> bool {
        self.command == name || self.executable_name() == name
    }

    /// The executable decides where it can be read: titles and names of threads change.
    pub(crate) fn is_postgres(&self) -> bool {
        let name = match self.executable_name() {
            "" => self.command.as_str(),
            name => name,
        };
        POSTGRES_NAMES.contains(&name)
    }

    fn executable_name(&self) -> &str {
        self.executable.rsplit('/').next().unwrap_or_default()
    }
}

/// Name and parent of `/proc/PID/stat` (proc_pid_stat(5)): `pid (name) state ppid …`, where the name may
/// have anything in it. None for what has ended.
fn parse_stat(stat: &str) -> Option<(&str, u32)> {
    let (_, rest) = stat.split_once('(')?;
    let (name, rest) = rest.rsplit_once(") ")?;
    let mut fields = rest.split(' ');
    let state = fields.next()?;
    let parent = fields.next()?.parse().ok()?;
    (!matches!(state, "Z" | "X")).then_some((name, parent))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_may_look_like_what_follows_them() {
        let stat = "7 (a) S 1 (b) R 3 4 5";
        assert_eq!(parse_stat(stat), Some(("a) S 1 (b", 3)));
        assert_eq!(parse_stat("7 (gone) Z 1 7"), None);
        assert_eq!(parse_stat(""), None);
    }

    #[test]
    fn we_are_among_them() {
        let all = HostProcess::all();
        let own = all.iter().find(|it| it.pid == std::process::id());
        let own = own.expect("we run");
        assert_eq!(own.parent, std::os::unix::process::parent_id());
        let executable = std::env::current_exe().expect("our own path");
        assert_eq!(own.executable, executable.display().to_string());
    }
}
