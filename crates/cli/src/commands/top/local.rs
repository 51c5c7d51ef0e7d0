//! This host, sampled by an agent of this process.

use std::sync::mpsc::Receiver;
use std::sync::mpsc::sync_channel;
use std::time::Duration;
use std::time::Instant;
use std::time::SystemTime;
use std::time::UNIX_EPOCH;

use candela_agent::Agent;
use candela_agent::AgentError;
use candela_agent::AgentHandle;
use candela_agent::AgentOptions;
use candela_agent::AgentTargets;
use candela_agent::ExportError;
use candela_agent::InProcess;
use candela_agent::Kinds;
use candela_agent::Missing;
use candela_agent::SampleFilters;
use candela_model::Profile;

use super::history::History;
use super::kind::Kind;
use super::snapshot::Snapshot;
use super::source::Question;
use super::source::Source;
use crate::args::GlobalArgs;
use crate::args::top::TopArgs;
use crate::commands::sampling;
use crate::errors::CliError;

/// How often there is a new picture, and how long a window of the agent is.
const REFRESH: Duration = Duration::from_secs(1);

/// How late the end of a window is noticed.
const POLL: Duration = Duration::from_millis(50);

/// Profiles that wait for the view to take them: it does so many times in each window.
const QUEUE: usize = 64;

/// An agent and the profiles of its last seconds.
#[derive(Debug)]
pub(crate) struct LocalSource {
    agent: AgentHandle,
    profiles: Receiver<Profile>,
    history: History,
    /// How much of it is shown, nanoseconds.
    length_ns: i64,
    is_paused: bool,
    pids: Vec<u32>,
    /// Why there is no off-CPU time, where there is none.
    note: Option<String>,
    asked: Question,
    shown: Instant,
    /// The time that the picture is of, nanoseconds since the epoch.
    shown_ns: i64,
}

// === impl LocalSource ===

impl LocalSource {
    /// Starts to sample.
    pub(crate) fn start(
        global: &GlobalArgs,
        arguments: &TopArgs,
        window: Duration,
    ) -> Result<Self, CliError> {
        let options = agent_options(global, arguments)?;
        let ((agent, profiles), note) = with_what_works(|kinds| {
            let (sender, profiles) = sync_channel(QUEUE);
            let exporter = InProcess::new(move |profile| {
                let full = "the view does not take profiles";
                sender
                    .try_send(profile.clone())
                    .map_err(|_| ExportError::Rejected {
                        reason: full.to_owned(),
                    })
            });
            let options = AgentOptions {
                kinds,
                ..options.clone()
            };
            Ok((Agent::start(options, Box::new(exporter))?, profiles))
        })?;
        let note = note.or_else(|| why_no_waits(&agent.status().missing));
        let now_ns = now_ns();
        let length_ns = i64::try_from(window.as_nanos()).unwrap_or(i64::MAX);
        Ok(Self {
            agent,
            profiles,
            history: History::new(length_ns, now_ns),
            length_ns,
            is_paused: false,
            pids: arguments.pids.clone(),
            note,
            asked: Question::default(),
            shown: Instant::now(),
            shown_ns: now_ns,
        })
    }

    fn note(&self) -> Option<String> {
        let has_ended = |pid: &&u32| std::fs::metadata(format!("/proc/{pid}")).is_err();
        let ended = self.pids.iter().find(has_ended);
        let ended = ended.map(|pid| format!("process {pid} has ended"));
        ended.or_else(|| self.note.clone())
    }
}

impl Source for LocalSource {
    fn refresh(&mut self, question: &Question) -> Result<Option<Snapshot>, CliError> {
        if self.is_paused && !question.is_paused {
            // What was missed meanwhile would look like a time in which nothing ran.
            self.history = History::new(self.length_ns, now_ns());
        }
        self.is_paused = question.is_paused;
        while let Ok(profile) = self.profiles.try_recv() {
            if !question.is_paused {
                self.history.add(profile);
            }
        }
        let failure = self.agent.status().failure;
        if !failure.is_empty() {
            return Err(CliError::failed(failure));
        }
        let is_due = !question.is_paused && self.shown.elapsed() >= REFRESH;
        if !is_due && self.asked.group == question.group {
            return Ok(None);
        }
        self.asked = question.clone();
        if is_due {
            self.shown = Instant::now();
            self.shown_ns = now_ns();
        }
        let mut snapshot = self
            .history
            .snapshot(self.shown_ns, question.group.as_deref());
        snapshot.note = self.note();
        snapshot.has_waits = self.note.is_none();
        Ok(Some(snapshot))
    }

    fn url(&self, _: &Question, _: Kind) -> Option<String> {
        None
    }
}

/// Does something with all kinds, and where the kernel does not have off-CPU time with what it has; why.
pub(super) fn with_what_works<T>(
    mut attempt: impl FnMut(Kinds) -> Result<T, AgentError>,
) -> Result<(T, Option<String>), CliError> {
    let all = Kinds::from([candela_agent::Kind::Cpu, candela_agent::Kind::OffCpu]);
    let error = match attempt(all) {
        Ok(done) => return Ok((done, None)),
        Err(error) => error,
    };
    if error.is_permission_or_kernel()
        && let Ok(done) = attempt(Kinds::default())
    {
        return Ok((done, Some(format!("no off-CPU time: {error}"))));
    }
    Err(sampling::failure(&error))
}

/// Why there is no off-CPU time, where what samples does without it.
pub(super) fn why_no_waits(missing: &[Missing]) -> Option<String> {
    let of = |what: &str| missing.iter().find(|it| it.what == what);
    let off_cpu = of(candela_agent::Kind::OffCpu.name())?;
    // Where BPF is missing altogether, that is the reason.
    let cause = of("BPF").unwrap_or(off_cpu);
    Some(format!("no off-CPU time: {}", cause.reason))
}

/// The options of the configuration, as far as they are about names and room.
pub(super) fn agent_options(
    global: &GlobalArgs,
    arguments: &TopArgs,
) -> Result<AgentOptions, CliError> {
    let settings = crate::commands::settings(global, Vec::new())?;
    let targets = match arguments.pids.is_empty() {
        true => AgentTargets::Host,
        false => AgentTargets::Pids(arguments.pids.clone()),
    };
    Ok(AgentOptions {
        rate_hz: arguments.rate,
        targets,
        window: REFRESH,
        first_window: REFRESH,
        poll_interval: POLL,
        // The process of a sample is told with its time only.
        timestamps: true,
        sampling: true,
        scrape: Vec::new(),
        events: Vec::new(),
        filters: SampleFilters::default(),
        spool: None,
        // Who watches wants the rate that he asked for.
        cpu_budget: None,
        ..sampling::options(&settings)?
    })
}

fn now_ns() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    since.map_or(0, |since| {
        i64::try_from(since.as_nanos()).unwrap_or(i64::MAX)
    })
}
