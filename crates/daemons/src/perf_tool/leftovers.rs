//! What is there of a perf whose agent was killed.
//!
//! It ends by itself: the program that it records reads from a pipe of the agent, and has come to its end. But it writes
//! what it has first, into the folder that the next perf begins in. Two of them there would give each other's files their
//! names, so the next one begins once nobody is in the folder any more.

use std::fs;
use std::path::Path;
use std::time::Duration;
use std::time::Instant;

use rustix::process::Pid;
use rustix::process::Signal;
use rustix::process::kill_process;

use crate::error::DaemonError;
use crate::outbox::DropReason;
use crate::outbox::Outbox;
use crate::perf_tool::FOLDER;
use crate::perf_tool::recording::finished_files;
use crate::perf_tool::recording::remove_unfinished;
use crate::stop::Stop;

/// How long perf may take to write what it has: many megabytes on a slow disk.
const GRACE: Duration = Duration::from_secs(20);
/// How long the kernel may take to end one that is killed.
const GRACE_OF_KILLED: Duration = Duration::from_secs(10);
const POLL: Duration = Duration::from_millis(50);

/// Waits for programs of an earlier agent, and ends those that go on. Of a daemon that is stopped meanwhile they are the
/// next one's.
///
/// # Errors
/// When they cannot be ended; with two at work nobody would know whose a file is.
pub(super) fn end_strays(folder: &Path, stop: &Stop) -> Result<(), DaemonError> {
    end_after(folder, stop, GRACE)
}

fn end_after(folder: &Path, stop: &Stop, grace: Duration) -> Result<(), DaemonError> {
    // As the kernel tells of working directories: without links.
    let Ok(folder) = folder.canonicalize() else {
        return Ok(());
    };
    let mut deadline = Instant::now() + grace;
    let mut are_killed = false;
    loop {
        let strays = processes_in(&folder);
        if strays.is_empty() {
            return Ok(());
        }
        if Instant::now() > deadline {
            if are_killed {
                let reason =
                    format!("programs of an earlier perf do not end: processes {strays:?}");
                return Err(DaemonError::Perf { reason });
            }
            tracing::warn!(
                ?strays,
                "programs of an earlier perf do not end and are killed"
            );
            for stray in strays.iter().filter_map(|pid| Pid::from_raw(*pid)) {
                // Who has ended meanwhile is who we wait for.
                let _ = kill_process(stray, Signal::KILL);
            }
            are_killed = true;
            deadline = Instant::now() + GRACE_OF_KILLED;
        }
        if stop.wait_timeout(POLL) {
            return Ok(());
        }
    }
}

/// Removes what a `profiler: perf` has left in the outbox of a daemon that samples by itself now. Its files are text to
/// nobody any more, so they are counted.
///
/// # Errors
/// As [`end_strays`].
pub(crate) fn give_up(outbox: &Outbox, stop: &Stop) -> Result<(), DaemonError> {
    let folder = outbox.root().join(FOLDER);
    if !folder.is_dir() {
        return Ok(());
    }
    end_strays(&folder, stop)?;
    if stop.is_set() {
        return Ok(());
    }
    let finished = finished_files(&folder).len();
    let unfinished = usize::from(remove_unfinished(&folder));
    for _ in 0..finished + unfinished {
        outbox.lost(DropReason::Unfinished);
    }
    if let Err(error) = fs::remove_dir_all(&folder) {
        let folder = folder.display();
        tracing::warn!(%folder, %error, "files of an earlier perf stay on the node");
    }
    Ok(())
}

/// perf, and what it records, that work in a folder. Somebody's shell may be there, too, and is none of them. What has ended
/// and was not waited for works nowhere.
fn processes_in(folder: &Path) -> Vec<i32> {
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    let pids = entries.filter_map(|entry| entry.file_name().to_str()?.parse::<i32>().ok());
    let is_stray = |pid: &i32| {
        let place = fs::read_link(format!("/proc/{pid}/cwd"));
        let name = fs::read_to_string(format!("/proc/{pid}/comm")).unwrap_or_default();
        let name = name.trim_end();
        place.is_ok_and(|place| place == folder) && (name.starts_with("perf") || name == "cat")
    };
    pids.filter(is_stray).collect()
}

#[cfg(test)]
mod tests {
    use std::process::Child;
    use std::process::Command;
    use std::process::Stdio;

    use super::*;
    use crate::outbox::OutboxLimits;

    /// A program in a folder, which ends when nobody can write to it any more.
    fn reader(folder: &Path) -> Child {
        Command::new("cat")
            .current_dir(folder)
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .spawn()
            .expect("it starts")
    }

    #[test]
    fn files_that_nobody_makes_text_of_are_counted() {
        let root = tempfile::tempdir().expect("a folder");
        let outbox = Outbox::open(root.path(), OutboxLimits::default()).expect("an outbox");
        let stop = Stop::default();
        give_up(&outbox, &stop).expect("nothing is there");
        assert_eq!(outbox.counts().all_dropped(), 0);
        let folder = root.path().join(FOLDER);
        fs::create_dir(&folder).expect("made");
        for name in ["perf.data", "perf.data.2026022015301250", "complaints.txt"] {
            fs::write(folder.join(name), "x").expect("written");
        }
        give_up(&outbox, &stop).expect("nobody is there");
        assert_eq!(outbox.counts().dropped[&DropReason::Unfinished], 2);
        assert!(!folder.is_dir());
    }

    mod host_tests {
        use super::*;

        #[test]
        fn those_that_end_are_waited_for_and_others_are_killed() {
            let folder = tempfile::tempdir().expect("a folder");
            let stop = Stop::default();
            end_after(folder.path(), &stop, Duration::ZERO).expect("nobody is there");
            let mut ends = reader(folder.path());
            drop(ends.stdin.take());
            end_after(folder.path(), &stop, Duration::from_secs(60)).expect("it ends");
            assert!(ends.wait().expect("our child").success(), "by itself");

            let mut stays = reader(folder.path());
            end_after(folder.path(), &stop, Duration::ZERO).expect("it is killed");
            assert!(!stays.wait().expect("our child").success());
        }
    }
}
