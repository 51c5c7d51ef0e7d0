//! The steps of a run: what each prints passes through, and those who see only the end of the log find there what failed,
//! why, and where the time went.

use std::collections::VecDeque;
use std::io::BufRead;
use std::io::BufReader;
use std::io::PipeReader;
use std::os::unix::process::CommandExt;
use std::process::Command;
use std::sync::Arc;
use std::sync::Mutex;
use std::sync::mpsc;
use std::sync::mpsc::Receiver;
use std::sync::mpsc::RecvTimeoutError;
use std::sync::mpsc::Sender;
use std::thread;
use std::thread::JoinHandle;
use std::time::Duration;
use std::time::Instant;

use crate::process::command;
use crate::process::root;
use crate::process::say;

/// So much of the end of a step that failed is told again in the summary.
const LAST_LINES: usize = 12;
/// The summary's own bound, so that it fits into the last 60 lines of a log.
const SUMMARY_LINES: usize = 56;
/// How long a program may take to end by itself, once it is told to.
const TIME_TO_END: Duration = Duration::from_secs(20);

/// A run of steps, one after the other.
#[derive(Debug)]
pub(crate) struct Steps {
    started: Instant,
    /// The run ends here, whatever it is doing.
    limit: Option<Duration>,
    done: Vec<Step>,
    /// What else the end of the log should have: tests that were skipped or tried again.
    notes: Vec<String>,
}

#[derive(Debug)]
struct Step {
    name: String,
    elapsed: Duration,
    /// Why it failed, line by line; empty if it did not.
    failure: Vec<String>,
}

impl Steps {
    /// A run that begins now.
    pub(crate) fn new(limit: Option<Duration>) -> Self {
        Self {
            started: Instant::now(),
            limit,
            done: Vec::new(),
            notes: Vec::new(),
        }
    }

    /// Runs a program in a folder of the checkout. Whether it succeeded.
    pub(crate) fn run(&mut self, name: &str, folder: &str, line: &[&str]) -> bool {
        self.run_with(name, folder, line, &[])
    }

    /// The same with environment variables.
    pub(crate) fn run_with(
        &mut self,
        name: &str,
        folder: &str,
        line: &[&str],
        environment: &[(&str, &str)],
    ) -> bool {
        let left = self.left();
        self.work(name, || {
            say(&format!("+ {}", line.join(" ")));
            let (program, arguments) = line.split_first().expect("a step has a program");
            let mut command = command(program);
            command
                .args(arguments)
                .envs(environment.iter().copied())
                .current_dir(root().join(folder));
            run_to_end(command, left)
        })
    }

    /// Does something as a step. Whether it succeeded.
    pub(crate) fn work(
        &mut self,
        name: &str,
        work: impl FnOnce() -> Result<(), Vec<String>>,
    ) -> bool {
        if self.is_over() {
            return false;
        }
        let started = Instant::now();
        let failure = work().err().unwrap_or_default();
        let is_success = failure.is_empty();
        self.done.push(Step {
            name: name.to_owned(),
            elapsed: started.elapsed(),
            failure,
        });
        is_success
    }

    /// Replaces what the last step printed at its end by what is known better.
    pub(crate) fn explain(&mut self, failure: Vec<String>) {
        if let Some(step) = self.done.last_mut()
            && !failure.is_empty()
        {
            step.failure = failure;
        }
    }

    /// A line for the end.
    pub(crate) fn note(&mut self, line: String) {
        self.notes.push(line);
    }

    /// Prints the end: seconds of each step, notes, failures last.
    pub(crate) fn finish(self) -> Result<(), String> {
        for line in self.summary() {
            say(&line);
        }
        let failed = self.done.iter().filter(|step| !step.failure.is_empty());
        let names: Vec<&str> = failed.map(|step| step.name.as_str()).collect();
        if self.is_over() {
            let minutes = self.limit.unwrap_or_default().as_secs() / 60;
            return Err(format!("stopped after {minutes} minutes"));
        }
        if names.is_empty() {
            return Ok(());
        }
        Err(format!("failed: {}", names.join(", ")))
    }

    /// The lines of the end.
    pub(crate) fn summary(&self) -> Vec<String> {
        let total = self.started.elapsed().as_secs();
        let mut lines = vec![format!("== {total} s in total ==")];
        for Step {
            name,
            elapsed,
            failure,
        } in &self.done
        {
            let end = if failure.is_empty() { "" } else { "  FAILED" };
            lines.push(format!("{:>6} s  {name}{end}", elapsed.as_secs()));
        }
        lines.extend(self.notes.iter().cloned());
        let failed = self.done.iter().filter(|step| !step.failure.is_empty());
        let failures: Vec<String> = failed
            .flat_map(|step| {
                let header = format!("-- {} FAILED --", step.name);
                [header].into_iter().chain(step.failure.iter().cloned())
            })
            .collect();
        let room = SUMMARY_LINES.saturating_sub(lines.len() + 1);
        let left_out = failures.len().saturating_sub(room);
        lines.extend(failures.into_iter().take(room));
        if left_out > 0 {
            lines.push(format!("… and {left_out} lines more, above"));
        }
        lines
    }

    /// How long the run may still take, if it has a limit.
    pub(crate) fn left(&self) -> Option<Duration> {
        let limit = self.limit?;
        Some(limit.saturating_sub(self.started.elapsed()))
    }

    fn is_over(&self) -> bool {
        self.left().is_some_and(|left| left.is_zero())
    }
}

/// Runs a program and passes on what it prints. Its last lines are the reason if it fails.
fn run_to_end(mut command: Command, limit: Option<Duration>) -> Result<(), Vec<String>> {
    let program = command.get_program().to_string_lossy().into_owned();
    let (output, writer) = std::io::pipe().map_err(|error| vec![format!("a pipe: {error}")])?;
    let errors = writer
        .try_clone()
        .map_err(|error| vec![error.to_string()])?;
    command.stdout(writer).stderr(errors);
    // So that it is ended with all that it has started. Without a limit it stays with the terminal, whose Ctrl-C ends it.
    if limit.is_some() {
        command.process_group(0);
    }
    let child = command.spawn();
    // The pipe ends when the program ends, not with our own ends of it.
    drop(command);
    let mut child = child.map_err(|error| {
        vec![format!(
            "{program} does not start: {error}; is it installed?"
        )]
    })?;
    let tail = Arc::new(Mutex::new(VecDeque::new()));
    let end_of_output = forward(output, Arc::clone(&tail));
    let watch = limit.map(|limit| Watch::start(child.id(), limit));
    let status = child.wait().map_err(|error| vec![error.to_string()])?;
    let is_late = watch.is_some_and(Watch::stop);
    // What it has left running may hold the pipe for ever.
    let _ = end_of_output.recv_timeout(TIME_TO_END);
    let mut failure: Vec<String> = tail.lock().expect("no panic").iter().cloned().collect();
    if is_late {
        failure.push(format!("{program} was ended: the time of the run is over"));
        return Err(failure);
    }
    if status.success() {
        return Ok(());
    }
    failure.push(format!("{program} ended with {status}"));
    Err(failure)
}

/// Prints each line and keeps the last ones. The receiver is told of the end.
fn forward(output: PipeReader, tail: Arc<Mutex<VecDeque<String>>>) -> Receiver<()> {
    let (sender, end) = mpsc::channel();
    thread::spawn(move || {
        for line in BufReader::new(output).split(b'\n').map_while(Result::ok) {
            let line = String::from_utf8_lossy(&line).into_owned();
            say(&line);
            let mut tail = tail.lock().expect("no panic");
            if tail.len() == LAST_LINES {
                tail.pop_front();
            }
            tail.push_back(line);
        }
        // Nobody may be waiting any more.
        let _ = sender.send(());
    });
    end
}

/// Ends a group of processes when its time is over.
#[derive(Debug)]
struct Watch {
    /// Dropped when the program has ended by itself.
    is_running: Sender<()>,
    thread: JoinHandle<bool>,
}

impl Watch {
    fn start(group: u32, limit: Duration) -> Self {
        let (is_running, has_ended) = mpsc::channel::<()>();
        let thread = thread::spawn(move || {
            let is_over = |time| has_ended.recv_timeout(time) == Err(RecvTimeoutError::Timeout);
            if !is_over(limit) {
                return false;
            }
            // cargo-nextest ends its tests, which are groups of their own, when it is asked to end.
            signal(group, "TERM");
            if is_over(TIME_TO_END) {
                signal(group, "KILL");
            }
            true
        });
        Self { is_running, thread }
    }

    /// Whether it had to end the program.
    fn stop(self) -> bool {
        drop(self.is_running);
        self.thread.join().unwrap_or_default()
    }
}

fn signal(group: u32, signal: &str) {
    let group = format!("-{group}");
    // The group may have ended meanwhile.
    let _ = command("kill").args(["-s", signal, "--", &group]).status();
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_end_names_what_failed_with_its_reason() {
        let mut steps = Steps::new(None);
        assert!(steps.run("sound", ".", &["true"]));
        assert!(!steps.run("broken", ".", &["sh", "-c", "echo why >&2; exit 3"]));
        let end = steps.summary().join("\n");
        assert!(end.contains("s  sound\n"), "{end}");
        assert!(end.contains("s  broken  FAILED"), "{end}");
        let reason = "-- broken FAILED --\nwhy\nsh ended with exit status: 3";
        assert!(end.ends_with(reason), "{end}");
        assert_eq!(steps.finish(), Err("failed: broken".to_owned()));
    }

    #[test]
    fn a_long_reason_leaves_the_end_of_the_log_short() {
        let mut steps = Steps::new(None);
        steps.work("broken", || Err(vec!["a line".to_owned(); 500]));
        let end = steps.summary();
        assert_eq!(end.len(), SUMMARY_LINES);
        assert!(end.contains(&"-- broken FAILED --".to_owned()));
    }

    #[test]
    fn what_would_pass_the_limit_is_ended_and_nothing_follows() {
        let mut steps = Steps::new(Some(Duration::from_millis(10)));
        assert!(!steps.run("endless", ".", &["tail", "-f", "/dev/null"]));
        assert!(!steps.run("next", ".", &["true"]));
        let end = steps.summary().join("\n");
        assert!(
            end.contains("tail was ended: the time of the run is over"),
            "{end}"
        );
        assert!(!end.contains("next"), "{end}");
    }
}
