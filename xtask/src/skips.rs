//! What tests skip, told to whoever runs them: the test harness hides what tests that pass print.

use std::collections::BTreeSet;
use std::io::BufRead;
use std::io::BufReader;
use std::process::Stdio;

use crate::process::command;
use crate::process::root;
use crate::process::say;

/// Harnesses print what tests say under this line with `--show-output`, and behind it the names.
const SUCCESSES: &str = "successes:";
/// What ends that part.
const ENDS: [&str; 2] = ["failures:", "test result:"];
/// How tests begin the line with their reason.
const BEGINNINGS: [&str; 2] = ["skipped", "SKIP "];

/// Sorts the lines of `cargo test … --show-output`.
#[derive(Debug, Default)]
struct Lines {
    is_of_success: bool,
    test: String,
    skipped: BTreeSet<String>,
}

impl Lines {
    /// Whether a line is for the terminal; of what passing tests print only their skips are kept.
    fn take(&mut self, line: &str) -> bool {
        if line == SUCCESSES {
            self.is_of_success = true;
        } else if ENDS.iter().any(|end| line.starts_with(end)) {
            self.is_of_success = false;
        }
        if !self.is_of_success {
            return true;
        }
        let header = line.strip_prefix("---- ");
        if let Some(test) = header.and_then(|rest| rest.strip_suffix(" stdout ----")) {
            test.clone_into(&mut self.test);
        } else if BEGINNINGS.iter().any(|start| line.starts_with(start)) {
            self.skipped.insert(format!("{}: {line}", self.test));
        }
        false
    }
}

/// Runs `cargo test` with these arguments and environment variables, and lists at the end what was skipped and why.
pub(crate) fn run_tests(arguments: &[&str], environment: &[(&str, &str)]) -> Result<(), String> {
    let line = format!("cargo {}", arguments.join(" "));
    say(&format!("+ {line}"));
    let mut cargo = command("cargo")
        .args(arguments)
        .arg("--show-output")
        .envs(environment.iter().copied())
        .current_dir(root())
        .stdout(Stdio::piped())
        .spawn()
        .map_err(|error| format!("cargo does not start: {error}"))?;
    let stdout = cargo.stdout.take().ok_or("cargo's output is not there")?;
    let mut lines = Lines::default();
    for line in BufReader::new(stdout).split(b'\n') {
        let line = line.map_err(|error| format!("cargo's output: {error}"))?;
        let line = String::from_utf8_lossy(&line);
        if lines.take(&line) && !line.is_empty() {
            say(&line);
        }
    }
    let status = cargo.wait().map_err(|error| error.to_string())?;
    for skipped in &lines.skipped {
        say(&format!("not tested here: {skipped}"));
    }
    if status.success() {
        return Ok(());
    }
    Err(format!("{line} ended with {status}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reasons_of_skips_are_kept_and_failures_shown() {
        let text = "running 2 tests\n\nsuccesses:\n\n---- of_root stdout ----\n\
            SKIP of_root: needs root for BPF\nnoise\n\nsuccesses:\n    of_root\n\n\
            failures:\n\n---- bad stdout ----\nskipped in a failure\n\n\
            test result: FAILED. 1 passed";
        let mut lines = Lines::default();
        let shown: Vec<&str> = text.lines().filter(|line| lines.take(line)).collect();
        let wanted = ["of_root: SKIP of_root: needs root for BPF".to_owned()];
        assert_eq!(lines.skipped, BTreeSet::from(wanted));
        assert!(shown.contains(&"---- bad stdout ----") && !shown.contains(&"noise"));
        assert!(shown.contains(&"test result: FAILED. 1 passed"));
    }
}
