//! One recording: everything from start to end is one profile with times.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::process::Child;
use std::process::Command;
use std::process::ExitStatus;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use candela_ebpf::Precedence;
use candela_ebpf::Target;
use candela_ebpf::monotonic_ns;
use candela_model::Profile;

use crate::allocations::AllocationSources;
use crate::allocations::PreloadedLibrary;
use crate::cpu::Naming;
use crate::cpu::SamplingPlan;
use crate::error::AgentError;
use crate::go_heaps::GoHeaps;
use crate::kinds::Kind;
use crate::ledger::DropReason;
use crate::limits::allow_many_files;
use crate::no_samples::NoSamples;
use crate::options::AgentOptions;
use crate::options::AgentTargets;
use crate::options::RecordOptions;
use crate::options::RecordTargets;
use crate::pipeline::finish_windows;
use crate::pipeline::settle_names;
use crate::pipeline::start_symbols;
use crate::pipeline::symbolize;
use crate::short_stacks::ShortStacks;
use crate::source::Missing;
use crate::source::StartedSource;
use crate::source::Wanted;
use crate::source::naming;
use crate::source::start_source;
use crate::status::Quality;
use crate::status::SourceStatus;
use crate::status::StatusBoard;
use crate::symbolize::build_profile;
use crate::windows::Windows;

/// How long samples are gathered before they are looked at. Shorter than in the continuous agent:
/// the end of a command is noticed this late.
const POLL: Duration = Duration::from_millis(20);

/// How long the end of a recording waits for debug files that are being fetched.
const DEBUGINFOD_PATIENCE: Duration = Duration::from_secs(60);

/// What a recording has.
#[derive(Debug)]
pub struct Recording {
    /// All samples, with their times, processes and threads.
    pub profile: Profile,
    /// How complete it is.
    pub report: RecordReport,
    /// How the recorded command ended; `None` without a command, or when it was still running.
    pub exit_status: Option<ExitStatus>,
    /// Where the library that samples allocations had to stay, because programs that have it still ran. A later
    /// recording removes it.
    pub library_left: Option<PathBuf>,
}

/// How complete a recording is.
#[derive(Clone, Debug, Default, PartialEq, Eq, serde::Serialize)]
pub struct RecordReport {
    /// Samples by how the walk of their stack ended.
    pub quality: Quality,
    /// What did not make it, by reason; every reason is there.
    pub drops: BTreeMap<String, u64>,
    /// Samples whose stack is not complete, by how and where it ended.
    pub short_stacks: Vec<ShortStacks>,
    /// The source of samples at the end.
    pub source: SourceStatus,
    /// What was asked for and could not be had on this host.
    pub missing: Vec<Missing>,
    /// How long it took, nanoseconds.
    pub duration_ns: u64,
}

impl RecordReport {
    /// Samples that are not in the profile.
    #[must_use]
    pub fn lost_samples(&self) -> u64 {
        let reasons = DropReason::ALL
            .iter()
            .filter(|reason| reason.is_lost_sample());
        reasons.map(|&reason| self.count(reason)).sum()
    }

    /// The count of a reason.
    #[must_use]
    pub fn count(&self, reason: DropReason) -> u64 {
        self.drops.get(reason.name()).copied().unwrap_or_default()
    }
}

/// Samples until the duration is over, the command has ended or the stop flag is set.
///
/// A command is started once sampling is on, so that its first instruction can be sampled; when the
/// recording ends before it, it goes on running. For what runs already, unwind tables are built first,
/// which takes a fifth of a second to three; `begins` is called when the duration begins.
/// What this host cannot give of several kinds is left out and told ([`RecordOptions::tell`]); own processes are
/// sampled without BPF where that is not allowed.
///
/// # Errors
/// As [`Agent::start`](crate::Agent::start); [`AgentError::Command`] when the command cannot be
/// started; with allocations [`AgentError::Preload`], [`AgentError::NotPreloaded`],
/// [`AgentError::UnseenAllocations`] and [`AgentError::GoHeap`].
pub fn record(options: RecordOptions, begins: impl FnOnce()) -> Result<Recording, AgentError> {
    options.agent.check()?;
    if options.events.is_empty() {
        options.kinds.check()?;
    }
    let RecordOptions {
        targets,
        rate_hz,
        kinds,
        inseparable,
        events,
        tell,
        duration,
        stop,
        discard,
        filters,
        agent,
    } = options;
    let agent = AgentOptions { filters, ..agent };
    let board = StatusBoard::default();
    let running = targets.running();
    let watched = match &running {
        Some(AgentTargets::Pids(pids)) => pids.clone(),
        _ => Vec::new(),
    };
    let (target, mut command) = kernel_target(targets);
    let naming = naming(&agent, &board)?;
    let mut allocations = match kinds.has(Kind::Alloc) {
        true => watch_allocations(command.as_mut(), running, &naming, &board)?,
        false => AllocationSources::default(),
    };
    // What only Go's runtime tells is read, and needs nothing of the kernel.
    let kinds = match allocations.loaded.is_empty() {
        true => kinds.without(Kind::Alloc),
        false => kinds,
    };
    let plan = SamplingPlan {
        rate_hz,
        kinds,
        events,
        allocation_libraries: std::mem::take(&mut allocations.loaded),
        wait_mean_ns: None,
        wakers: agent.wakers,
        least_wait_ns: agent.least_wait_ns(),
    };
    let wanted = Wanted {
        plan,
        inseparable,
        // Somebody has just typed their names, and waits for what they give.
        events_may_lack: false,
        target,
        exclude_self: command.is_some(),
    };
    if command.is_none() {
        allow_many_files();
    }
    // So that unwind tables are there early, however busy the host is: the thread that builds them inherits it.
    let precedence = Precedence::take();
    let StartedSource {
        mut source,
        missing,
    } = match wanted.plan.is_empty() {
        true => StartedSource {
            source: Box::new(NoSamples),
            missing: Vec::new(),
        },
        false => start_source(&agent, &naming, &wanted, &board)?,
    };
    // The command must not inherit it.
    drop(precedence);
    missing.iter().for_each(tell);
    if command.is_none() {
        source.warm_up(&stop)?;
        if stop.load(Ordering::Relaxed) {
            return Err(AgentError::StoppedEarly);
        }
        let has_ended = |pid: &u32| std::fs::metadata(format!("/proc/{pid}")).is_err();
        if !watched.is_empty() && watched.iter().all(has_ended) {
            return Err(AgentError::EndedEarly);
        }
    }
    let mut windows = Windows::new(true).keep_cpus(agent.cpus);
    if let Some(heaps) = &mut allocations.go_heaps {
        heaps.begin();
    }
    let start_ns = monotonic_ns();
    source.starts_at(start_ns)?;
    begins();
    let mut child = command.as_mut().map(start_command).transpose()?;
    // After the command was started, which has the limits that the user gave it.
    allow_many_files();
    let precedence = Precedence::take();
    if let Some(child) = &child {
        source.only_family_of(child.id());
    }
    let deadline_ns = duration.map(|duration| {
        let duration_ns = u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX);
        start_ns.saturating_add(duration_ns)
    });
    let mut exit_status = None;
    while !stop.load(Ordering::Relaxed) && exit_status.is_none() {
        let left = deadline_ns.map(|deadline| deadline.saturating_sub(monotonic_ns()));
        if left == Some(0) {
            break;
        }
        let timeout = left.map_or(POLL, |left| POLL.min(Duration::from_nanos(left)));
        source.collect(timeout, &mut windows)?;
        match child.as_mut().map(Child::try_wait) {
            Some(Ok(status)) => exit_status = status,
            // Whoever started us ignores the ends of children, and the kernel has none to tell.
            Some(Err(_)) => break,
            None => {}
        }
    }
    let end_ns = monotonic_ns();
    source.settle(end_ns, &mut windows)?;
    drop(precedence);
    if let Some(heaps) = &mut allocations.go_heaps {
        for (window, scale) in heaps.read(end_ns) {
            windows.push(window, scale);
        }
    }
    let mut finished = finish_windows(&*source, &mut windows, start_ns, end_ns, &board);
    let source_status = source.status();
    let has_family_left = source.has_family_left();
    let library = allocations.library.filter(|_| has_family_left);
    let library_left = library.map(PreloadedLibrary::keep);
    drop(source);
    // Names take longer than anything else.
    if discard.load(Ordering::Relaxed) {
        return Err(AgentError::Discarded);
    }

    let mut symbols = start_symbols(&agent);
    if !agent.debuginfod_urls.is_empty() {
        // The first attempt asks for the files that the second one has. Only that one counts.
        for finished in &mut finished {
            // What is wanted may depend on them.
            settle_names(&mut finished.window);
            build_profile(
                &finished.window,
                &finished.header,
                &agent.filters,
                &mut symbols,
            );
        }
        symbols.wait_for_debug_files(DEBUGINFOD_PATIENCE);
    }
    let mut profile = Profile::default();
    for finished in &mut finished {
        let built = symbolize(finished, &agent.filters, &mut symbols, &board);
        profile.absorb(&built);
    }
    let results = board.parts().results;
    Ok(Recording {
        profile,
        report: RecordReport {
            quality: Quality::from_results(&results),
            drops: board.drops(),
            short_stacks: ShortStacks::of(finished.iter().map(|finished| &finished.window)),
            source: source_status,
            missing,
            duration_ns: end_ns - start_ns,
        },
        exit_status,
        library_left,
    })
}

/// A command's processes are those that we fork: sampling follows forks from ourselves on, and
/// leaves our own samples out.
fn kernel_target(targets: RecordTargets) -> (Target, Option<Command>) {
    match targets {
        RecordTargets::All => (Target::Host, None),
        RecordTargets::Pids(pids) => {
            let target = Target::Processes {
                pids,
                follow_forks: false,
            };
            (target, None)
        }
        RecordTargets::Cgroup(path) => (Target::Cgroup(path), None),
        RecordTargets::Command(command) => {
            let target = Target::Processes {
                pids: vec![std::process::id()],
                follow_forks: true,
            };
            (target, Some(command))
        }
    }
}

/// What tells of the allocations of a command, or of what runs already.
fn watch_allocations(
    command: Option<&mut Command>,
    running: Option<AgentTargets>,
    naming: &Naming,
    board: &StatusBoard,
) -> Result<AllocationSources, AgentError> {
    match (command, running) {
        (Some(command), _) => AllocationSources::of_command(command),
        (None, Some(targets)) => {
            let ledger = Arc::clone(&board.ledger);
            let heaps = GoHeaps::new(targets.clone(), naming.clone(), ledger, true);
            AllocationSources::of_running(&targets, heaps)
        }
        (None, None) => Ok(AllocationSources::default()),
    }
}

fn start_command(command: &mut Command) -> Result<Child, AgentError> {
    command.spawn().map_err(|source| AgentError::Command {
        program: command.get_program().to_string_lossy().into_owned(),
        source,
    })
}
