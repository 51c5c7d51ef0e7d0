//! Starting the source of samples: all that was asked for, or what of it this host allows.

use std::fmt;
use std::sync::Arc;

use candela_ebpf::ExplicitEvent;
use candela_ebpf::Target;
use serde::Serialize;

use crate::collector::Collector;
use crate::containers::Containers;
use crate::cpu::CpuCollector;
use crate::cpu::CpuOptions;
use crate::cpu::Naming;
use crate::cpu::SamplingPlan;
use crate::cpu::TaskCollector;
use crate::error::AgentError;
use crate::kinds::Kind;
use crate::kinds::Kinds;
use crate::labels::Labeler;
use crate::labels::Namer;
use crate::options::AgentOptions;
use crate::status::StatusBoard;

/// Something that was asked for and cannot be had on this host.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Missing {
    /// The kind or event, as `record -e` has it, or `BPF`.
    pub what: String,
    /// Why, and what mends it: one line.
    pub reason: String,
}

/// A source that samples, with what it does not.
pub(crate) struct StartedSource {
    pub(crate) source: Box<dyn Collector + Send>,
    pub(crate) missing: Vec<Missing>,
}

/// What to sample of whom.
#[derive(Clone, Debug)]
pub(crate) struct Wanted {
    pub(crate) plan: SamplingPlan,
    /// Of the kinds of `plan`, those that are worth nothing without each other.
    pub(crate) inseparable: Kinds,
    /// Whether an event that is nowhere is something to do without: one configuration is for many hosts, which have
    /// different programs.
    pub(crate) events_may_lack: bool,
    pub(crate) target: Target,
    pub(crate) exclude_self: bool,
}

// === impl Wanted ===

impl Wanted {
    /// Whether what is refused so is left out, rather than everything.
    fn goes_on_without(&self, refusal: &AgentError) -> bool {
        let is_nowhere = matches!(
            refusal,
            AgentError::Kernel(candela_ebpf::Error::NoSuchEvent { .. })
        );
        refusal.is_permission_or_kernel() || self.events_may_lack && is_nowhere
    }
}

// === impl Missing ===

impl fmt::Display for Missing {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "without {}: {}", self.what, self.reason)
    }
}

/// Everything by BPF.
///
/// # Errors
/// What the kernel refuses, whatever else it would allow.
pub(crate) fn start_cpu(
    options: &AgentOptions,
    naming: &Naming,
    plan: SamplingPlan,
    target: Target,
    exclude_self: bool,
    board: &StatusBoard,
) -> Result<CpuCollector, AgentError> {
    let cpu = CpuOptions {
        plan,
        target,
        exclude_self,
        table_budget_bytes: options.table_budget_bytes,
    };
    let (ledger, clocks) = (Arc::clone(&board.ledger), Arc::clone(&board.clocks));
    CpuCollector::start(cpu, naming.clone(), ledger, clocks)
}

/// What works of `wanted`: by BPF, or where that works not at all and processes are wanted, what they do on CPUs
/// by perf events.
///
/// # Errors
/// As [`start_cpu`], when nothing works or what is refused has nothing to do with this host.
pub(crate) fn start_source(
    options: &AgentOptions,
    naming: &Naming,
    wanted: &Wanted,
    board: &StatusBoard,
) -> Result<StartedSource, AgentError> {
    let start = |plan: SamplingPlan| {
        let target = wanted.target.clone();
        start_cpu(options, naming, plan, target, wanted.exclude_self, board)
    };
    let refusal = match start(wanted.plan.clone()) {
        Ok(source) => return Ok(started(source, Vec::new())),
        Err(refusal) if wanted.goes_on_without(&refusal) => refusal,
        Err(error) => return Err(error),
    };
    // A trial of each kind takes as long as many starts: first without what lacks a tracepoint.
    let (plan, missing) = what_works(wanted, CpuCollector::check_tracepoints);
    if !plan.is_empty()
        && !missing.is_empty()
        && let Ok(source) = start(plan)
    {
        return Ok(started(source, missing));
    }
    let (plan, missing) = what_works(wanted, CpuCollector::try_plan);
    if !plan.is_empty() {
        // Each works alone and not all together: no kind is to blame.
        if missing.is_empty() {
            return Err(refusal);
        }
        return start(plan).map(|source| started(source, missing));
    }
    if !wanted.plan.kinds.has(Kind::Cpu) || wanted.inseparable.has(Kind::Cpu) {
        return Err(refusal);
    }
    start_without_bpf(options, naming, wanted, board, refusal)
}

/// How processes are named, and which are wanted: one for all sources, which ask container runtimes by one thread.
pub(crate) fn naming(options: &AgentOptions, board: &StatusBoard) -> Result<Naming, AgentError> {
    Ok(Naming {
        namer: namer(options, board)?,
        filters: options.filters.clone(),
    })
}

/// What names processes, with a thread that asks container runtimes.
pub(crate) fn namer(options: &AgentOptions, board: &StatusBoard) -> Result<Arc<Namer>, AgentError> {
    let labeler = Labeler::new(
        &options.host_name(),
        options.extra_labels.clone(),
        options.service_rules.clone(),
    )
    .with_rule(options.filters.processes.clone());
    let kubernetes = &options.kubernetes;
    let labeler = labeler.on_node(kubernetes.node.as_deref().unwrap_or_default());
    let sockets = &options.container_sockets;
    let (ledger, clocks) = (Arc::clone(&board.ledger), Arc::clone(&board.clocks));
    let containers = Containers::start(sockets, kubernetes, ledger, clocks)?;
    Ok(Namer::new(labeler, containers))
}

fn started(source: impl Collector + Send + 'static, missing: Vec<Missing>) -> StartedSource {
    StartedSource {
        source: Box::new(source),
        missing,
    }
}

/// The part of a plan that passes, each kind and event on its own, and the rest with its reasons.
fn what_works(
    wanted: &Wanted,
    passes: impl Fn(&SamplingPlan) -> Result<(), AgentError>,
) -> (SamplingPlan, Vec<Missing>) {
    let plan = &wanted.plan;
    let parts = plan.kinds.iter().count() + plan.events.len();
    let mut missing = Vec::new();
    let mut works = |part: &SamplingPlan, name: String| {
        // The only one was tried already.
        if parts == 1 {
            return false;
        }
        let Err(error) = passes(part) else {
            return true;
        };
        missing.push(Missing {
            what: name,
            reason: error.to_string(),
        });
        false
    };
    let kinds = plan.kinds.iter().filter(|&kind| {
        let part = SamplingPlan {
            kinds: [kind].into(),
            events: Vec::new(),
            ..plan.clone()
        };
        works(&part, kind.name().to_owned())
    });
    let mut kinds: Kinds = kinds.collect();
    let mut dropped = Kinds::from([]);
    if kinds.and(wanted.inseparable) != wanted.inseparable {
        dropped = kinds.and(wanted.inseparable);
        kinds = kinds
            .iter()
            .filter(|&it| !wanted.inseparable.has(it))
            .collect();
    }
    let mut events: Vec<ExplicitEvent> = Vec::new();
    for event in &plan.events {
        let part = SamplingPlan {
            kinds: Kinds::from([]),
            events: vec![event.clone()],
            ..plan.clone()
        };
        if works(&part, event.to_string()) {
            events.push(event.clone());
        }
    }
    missing.extend(dropped.iter().map(|kind| Missing {
        what: kind.name().to_owned(),
        reason: "it was asked for together with a kind that this host does not give".to_owned(),
    }));
    let plan = SamplingPlan {
        kinds,
        events,
        ..plan.clone()
    };
    (plan, missing)
}

/// Processes of one's own by perf events.
fn start_without_bpf(
    options: &AgentOptions,
    naming: &Naming,
    wanted: &Wanted,
    board: &StatusBoard,
    refusal: AgentError,
) -> Result<StartedSource, AgentError> {
    let source = TaskCollector::start(
        wanted.plan.rate_hz,
        wanted.target.clone(),
        naming.clone(),
        options.table_budget_bytes,
        board,
    );
    let source = match source {
        Ok(source) => source,
        Err(AgentError::Kernel(candela_ebpf::Error::ProcessesOnly)) => return Err(refusal),
        Err(error) if error.is_permission_or_kernel() => {
            return Err(AgentError::NeitherWay {
                bpf: Box::new(refusal),
                perf: Box::new(error),
            });
        }
        Err(error) => return Err(error),
    };
    let seen = match source.sees_kernel() {
        true => "with the kernel's part",
        false => "without their time in the kernel",
    };
    let mut missing = vec![Missing {
        what: "BPF".to_owned(),
        reason: format!("these processes are sampled by perf events, {seen}; {refusal}"),
    }];
    let others = wanted.plan.kinds.iter().filter(|&kind| kind != Kind::Cpu);
    let others = others.map(|kind| kind.name().to_owned());
    let events = wanted.plan.events.iter().map(ToString::to_string);
    missing.extend(others.chain(events).map(|what| {
        Missing {
            what,
            reason:
                "perf events of own processes tell the cpu kind alone; what gives BPF gives this"
                    .to_owned(),
        }
    }));
    Ok(started(source, missing))
}
