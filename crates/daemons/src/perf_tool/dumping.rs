//! A recording, and the files of it that become dumps.

use std::collections::VecDeque;
use std::fs;
use std::path::Path;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use candela_fleet::Resources;

use crate::clock::Clock;
use crate::daemon::DaemonContext;
use crate::error::DaemonError;
use crate::error::OutboxError;
use crate::notes::Notes;
use crate::outbox::DropReason;
use crate::outbox::Outbox;
use crate::perf_tool::POLL;
use crate::perf_tool::Plan;
use crate::perf_tool::cgroup::Amounts;
use crate::perf_tool::cgroup::Group;
use crate::perf_tool::cgroup::group_name;
use crate::perf_tool::processes::Processes;
use crate::perf_tool::program::Program;
use crate::perf_tool::recording::Recording;
use crate::perf_tool::recording::ended_at;
use crate::perf_tool::recording::finished_files;
use crate::perf_tool::recording::remove_unfinished;
use crate::perf_tool::scripting::Scripting;

/// Finished files that may wait for `perf script`; it is slower than the recording when there are more.
const MOST_FILES: usize = 8;
/// How long the last files have at a stop; what is not text by then is so at the next start.
const PATIENCE_AT_STOP: Duration = Duration::from_secs(30);

/// One run of the daemon.
pub(super) struct Dumping {
    plan: Plan,
    program: Program,
    outbox: Arc<Outbox>,
    clock: Arc<dyn Clock>,
    folder: PathBuf,
    recording: Recording,
    processes: Processes,
    scripting: Option<Scripting>,
    /// When the file that is being written began, nanoseconds since the epoch.
    began_ns: i64,
    /// The last field: it goes after the processes that are in it.
    group: Option<Group>,
}

impl Dumping {
    /// # Errors
    /// When its folder cannot be used, or perf cannot be started.
    pub(super) fn start(
        plan: Plan,
        program: Program,
        folder: &Path,
        context: &DaemonContext,
    ) -> Result<Self, DaemonError> {
        fs::create_dir_all(folder).map_err(|source| OutboxError::Folder {
            path: folder.to_owned(),
            source,
        })?;
        Group::remove_leftovers();
        if remove_unfinished(folder) {
            context.outbox.lost(DropReason::Unfinished);
        }
        let mut processes = Processes::new(plan.filter.clone());
        processes.look(context.clock.monotonic());
        let recording = Recording::start(&program, &plan, folder)?;
        let group = limited(&plan, &recording, &context.notes);
        let mut dumping = Self {
            plan,
            program,
            outbox: Arc::clone(&context.outbox),
            clock: Arc::clone(&context.clock),
            folder: folder.to_owned(),
            recording,
            group,
            processes,
            scripting: None,
            began_ns: 0,
        };
        // Files of an earlier run come first, and theirs is another recording.
        let earlier = finished_files(folder);
        let now_ns = i64::try_from(context.clock.unix().as_nanos()).unwrap_or(i64::MAX);
        let first = earlier.first().and_then(|file| ended_at(file));
        dumping.began_ns = first.map_or(now_ns, |ended_ns| {
            ended_ns.saturating_sub(dumping.length_ns())
        });
        Ok(dumping)
    }

    pub(super) fn has_begun(&self) -> bool {
        self.recording.has_begun()
    }

    /// Goes on for a moment.
    ///
    /// # Errors
    /// Why perf has ended, or what is in the way of the next dump.
    pub(super) fn turn(&mut self) -> Result<(), DaemonError> {
        self.processes.look(self.clock.monotonic());
        let failure = self.recording.failure();
        let scripted = self.script();
        failure.map_or(scripted.map(drop), Err)
    }

    /// Ends the recording and makes text of what is there.
    ///
    /// # Errors
    /// What is in the way of a dump; its file stays for the next start.
    pub(super) fn finish(mut self) -> Result<(), DaemonError> {
        self.recording.end();
        let deadline = self.clock.monotonic() + PATIENCE_AT_STOP;
        while self.script()? && self.clock.monotonic() < deadline {
            std::thread::park_timeout(POLL);
        }
        Ok(())
    }

    /// Whether there is more to do for `perf script`.
    fn script(&mut self) -> Result<bool, DaemonError> {
        let now = self.clock.monotonic();
        if let Some(scripting) = &mut self.scripting {
            match scripting.outcome(now) {
                None => return Ok(true),
                Some(Ok(name)) => tracing::debug!(name, "a dump waits for its upload"),
                Some(Err(error)) => tracing::error!(%error, "a dump is lost"),
            }
            self.scripting = None;
        }
        let mut files: VecDeque<PathBuf> = finished_files(&self.folder).into();
        while files.len() > MOST_FILES {
            // The oldest, as in every queue here.
            if let Some(file) = files.pop_front() {
                let _ = fs::remove_file(&file);
                self.began_ns = ended_at(&file).unwrap_or(self.began_ns);
                self.outbox.lost(DropReason::TooManyWaiting);
            }
        }
        let Some(data) = files.pop_front() else {
            return Ok(false);
        };
        let ended_ns = ended_at(&data).unwrap_or(self.began_ns);
        // It began where the one before ended, unless the clock was set or perf was started anew in between.
        let is_next =
            (0..=self.length_ns() * 2).contains(&(ended_ns.saturating_sub(self.began_ns)));
        let began_ns = if is_next {
            self.began_ns
        } else {
            ended_ns - self.length_ns()
        };
        self.began_ns = ended_ns;
        let verdicts = self.processes.verdicts();
        let data = (data, began_ns);
        let scripting = Scripting::start(&self.program, &self.outbox, data, verdicts, now)?;
        let group = self.group.as_ref();
        if let Some(Err(error)) = group.map(|group| group.take(scripting.pid())) {
            tracing::warn!(error, "perf script is not held to its limit");
        }
        self.scripting = Some(scripting);
        Ok(true)
    }

    fn length_ns(&self) -> i64 {
        i64::try_from(self.plan.dump.as_nanos()).unwrap_or(i64::MAX)
    }
}

/// Holds perf to its limit where the agent may make a cgroup, keeps for it what it requests, and says whether that is so.
fn limited(plan: &Plan, recording: &Recording, notes: &Notes) -> Option<Group> {
    let bytes = |amounts: &Resources| amounts.memory_quantity().map(|memory| memory.bytes());
    let cpu = plan.limit.cpu_quantity();
    let amounts = Amounts {
        cpu_thousandths: cpu.map(|cpu| cpu.thousandths()),
        memory_bytes: bytes(&plan.limit),
    };
    let has_limit = amounts != Amounts::default();
    let requested_bytes = bytes(&plan.request);
    if !has_limit && requested_bytes.is_none() {
        return None;
    }
    let group = Group::create(&group_name(recording.pid()), amounts)
        .and_then(|group| group.take(recording.pid()).map(|()| group))
        .map_err(|error| format!("perf is a program of its own, and it gets no cgroup ({error})"));
    if has_limit {
        let note = match &group {
            Ok(_) => "limit is kept by a cgroup of perf's own".to_owned(),
            Err(why) => format!("limit is not kept: {why}"),
        };
        notes.set("limit.perf", note);
    }
    if let Some(bytes) = requested_bytes {
        let group = group.as_ref().map_err(String::clone);
        let note = match group.and_then(|group| group.keep_memory(bytes)) {
            Ok(()) => {
                "request.memory is not taken from perf while its cgroup has no more".to_owned()
            }
            Err(why) => format!("request.memory is not set aside: {why}"),
        };
        notes.set("request.perf", note);
    }
    group.ok()
}
