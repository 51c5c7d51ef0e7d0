//! Which processes run a Go program, and whether they still do.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use candela_symbols::ObjectFile;
use candela_symbols::foreign::open_regular;

/// Tells a process from a later one with its id, and from itself before an exec.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct ProgramIdentity {
    /// Ticks since boot.
    started: u64,
    device: u64,
    inode: u64,
}

impl ProgramIdentity {
    /// That of no process.
    pub(super) const NONE: Self = Self {
        started: 0,
        device: 0,
        inode: 0,
    };

    /// `None` for what has ended, for threads of the kernel, and where we may not look.
    pub(super) fn of(pid: u32) -> Option<Self> {
        let program = fs::metadata(format!("/proc/{pid}/exe")).ok()?;
        let stat = fs::read(format!("/proc/{pid}/stat")).ok()?;
        Some(Self {
            started: start_ticks(&String::from_utf8_lossy(&stat))?,
            device: program.dev(),
            inode: program.ino(),
        })
    }
}

/// Whether Go's toolchain has built the program of a process.
pub(super) fn runs_go(pid: u32) -> bool {
    let path = format!("/proc/{pid}/exe");
    let Ok(file) = open_regular(Path::new(&path)) else {
        return false;
    };
    ObjectFile::from_file(&file, Path::new(&path)).is_ok_and(|object| object.is_go())
}

/// Field 22 of `/proc/PID/stat` (proc_pid_stat(5)), behind a name that may hold anything; `None` for what has ended.
fn start_ticks(stat: &str) -> Option<u64> {
    let (_, rest) = stat.rsplit_once(") ")?;
    let mut fields = rest.split(' ');
    let state = fields.next()?;
    if matches!(state, "Z" | "X") {
        return None;
    }
    fields.nth(18)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn we_are_a_process_that_runs_no_go_program() {
        let own = std::process::id();
        assert!(!runs_go(own) && !runs_go(u32::MAX));
        let identity = ProgramIdentity::of(own);
        assert!(identity.is_some() && identity == ProgramIdentity::of(own));
        assert_eq!(ProgramIdentity::of(u32::MAX), None);
    }

    #[test]
    fn the_start_is_behind_any_name() {
        let stat = "7 (a) S 1 (b) R 1 7 7 0 -1 4194304 1 0 0 0 2 3 0 0 20 0 5 0 8812 1 2";
        assert_eq!(start_ticks(stat), Some(8812));
        assert_eq!(start_ticks("7 (gone) Z 1"), None);
    }
}
