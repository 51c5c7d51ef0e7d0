//! What to observe and how much room to take.

use std::path::PathBuf;
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use candela_ebpf::ExplicitEvent;
use candela_ebpf::Target;
use candela_ebpf::Wakers;
use candela_model::Labels;

use crate::containers::ContainerSocket;
use crate::containers::KubernetesOptions;
use crate::error::AgentError;
use crate::export::SpoolOptions;
use crate::filters::SampleFilters;
use crate::kinds::Kinds;
use crate::labels::ServiceRule;
use crate::processes::all_processes;
use crate::processes::members_of;
use crate::schedule::Schedule;
use crate::scrape::ScrapeJob;
use crate::scrape::check_jobs;
use crate::source::Missing;

/// Settings of the continuous agent; `AgentOptions::default()` samples the whole host at 19 Hz.
#[derive(Clone, Debug)]
pub struct AgentOptions {
    /// Samples per second of each busy CPU, 1 to 1000.
    pub rate_hz: u32,
    /// What of it is sampled.
    pub kinds: Kinds,
    /// What is sampled besides, at most [`MOST_EXPLICIT_EVENTS`](candela_ebpf::MOST_EXPLICIT_EVENTS).
    pub events: Vec<ExplicitEvent>,
    /// The CPU time that the agent may take, in cores; less is sampled where it would take more.
    pub cpu_budget: Option<f64>,
    /// Sample this host; without it the agent only scrapes, and needs no privileges.
    pub sampling: bool,
    /// Whose samples are wanted.
    pub targets: AgentTargets,
    /// Leave the agent's own samples out.
    pub exclude_self: bool,
    /// The time that one profile covers, 1 s to 10 min.
    pub window: Duration,
    /// The time that the first one covers, so that something is to be seen soon.
    pub first_window: Duration,
    /// How long samples are gathered before they are looked at, 10 ms to 1 s.
    pub poll_interval: Duration,
    /// What samples of waits say of the thread that ended them, unless it was an interrupt; a wake-up costs a little
    /// then.
    pub wakers: Wakers,
    /// Times off a CPU that are shorter are no samples of waiting: they are counted, with what they add up to.
    pub min_block_time: Duration,
    /// Keep the time, process and thread of every sample.
    pub timestamps: bool,
    /// Keep the CPU of every sample whose time is kept, too, as its label `cpu`.
    pub cpus: bool,
    /// The most kernel memory that unwind tables may take, bytes.
    pub table_budget_bytes: u64,
    /// The most memory that symbols may take, bytes.
    pub symbol_cache_bytes: usize,
    /// Where profiles wait while the server is away; `None` keeps a few in memory.
    pub spool: Option<SpoolOptions>,
    /// Labels for every series of this host.
    pub extra_labels: Labels,
    /// Service names by rule; the first that matches counts.
    pub service_rules: Vec<ServiceRule>,
    /// Where container runtimes are asked for the names of containers, in this order.
    pub container_sockets: Vec<ContainerSocket>,
    /// The node that this host is, and what of its pods becomes labels.
    pub kubernetes: KubernetesOptions,
    /// Which samples are kept.
    pub filters: SampleFilters,
    /// debuginfod servers; none are asked when this is empty.
    pub debuginfod_urls: Vec<String>,
    /// Where files from debuginfod are kept; `None` is the place of `debuginfod-find`.
    pub debuginfod_cache: Option<PathBuf>,
    /// The host's name; `None` is what the kernel says.
    pub host: Option<String>,
    /// Programs that are asked for their profiles over HTTP.
    pub scrape: Vec<ScrapeJob>,
}

/// Whose samples the agent takes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum AgentTargets {
    /// Every process, and the kernel's own threads.
    #[default]
    Host,
    /// Some processes and what they fork.
    Pids(Vec<u32>),
    /// The processes of a cgroup (v2) and of those below it.
    Cgroup(PathBuf),
}

/// Settings of a recording; `RecordOptions::new` gives those of `candela record`.
#[derive(Debug)]
pub struct RecordOptions {
    /// Whose samples are wanted.
    pub targets: RecordTargets,
    /// Samples per second of each busy CPU, 1 to 1000.
    pub rate_hz: u32,
    /// What is sampled.
    pub kinds: Kinds,
    /// Of `kinds`, those that are worth nothing without each other: one that this host cannot give takes the others
    /// with it.
    pub inseparable: Kinds,
    /// What is sampled besides, at most [`MOST_EXPLICIT_EVENTS`](candela_ebpf::MOST_EXPLICIT_EVENTS).
    pub events: Vec<ExplicitEvent>,
    /// Called before the recording begins, for each thing that it does without.
    pub tell: fn(&Missing),
    /// How long; `None` is until `stop` or, for a command, its end.
    pub duration: Option<Duration>,
    /// Ends the recording when it becomes true.
    pub stop: Arc<AtomicBool>,
    /// Whether nobody wants the recording any more, once it has stopped.
    pub discard: Arc<AtomicBool>,
    /// Which samples are kept.
    pub filters: SampleFilters,
    /// Labels, names and bounds, as in the continuous agent; its rate, kinds, events, targets, windows,
    /// filters and spool are not used.
    pub agent: AgentOptions,
}

/// Whose samples a recording takes.
#[derive(Debug)]
pub enum RecordTargets {
    /// Every process, and the kernel's own threads.
    All,
    /// Some processes, without what they fork.
    Pids(Vec<u32>),
    /// The processes of a cgroup (v2) and of those below it.
    Cgroup(PathBuf),
    /// A program that is started once sampling is on, and all that it starts.
    Command(Command),
}

// === impl AgentOptions ===

impl Default for AgentOptions {
    fn default() -> Self {
        Self {
            rate_hz: 19,
            kinds: Kinds::default(),
            events: Vec::new(),
            cpu_budget: None,
            sampling: true,
            targets: AgentTargets::Host,
            exclude_self: false,
            window: Duration::from_secs(10),
            first_window: Duration::from_secs(3),
            poll_interval: Duration::from_millis(250),
            wakers: Wakers::Untold,
            min_block_time: Duration::ZERO,
            timestamps: false,
            cpus: false,
            table_budget_bytes: 48 << 20,
            symbol_cache_bytes: 48 << 20,
            spool: None,
            extra_labels: Labels::default(),
            service_rules: Vec::new(),
            container_sockets: usual_sockets(),
            kubernetes: KubernetesOptions::default(),
            filters: SampleFilters::default(),
            debuginfod_urls: Vec::new(),
            debuginfod_cache: None,
            host: None,
            scrape: Vec::new(),
        }
    }
}

impl AgentOptions {
    /// Whether an agent can start with these options, the kernel and the disk aside.
    ///
    /// # Errors
    /// [`AgentError::Option`] with the range, [`AgentError::NodeName`], [`AgentError::Scrape`].
    pub fn check(&self) -> Result<(), AgentError> {
        let within = |name, value: Duration, from: Duration, to: Duration, range| {
            if (from..=to).contains(&value) {
                return Ok(());
            }
            let value = format!("{value:?}");
            Err(AgentError::Option { name, value, range })
        };
        let (millisecond, second) = (Duration::from_millis(1), Duration::from_secs(1));
        within("window", self.window, second, 600 * second, "1s to 10m")?;
        within(
            "first window",
            self.first_window,
            100 * millisecond,
            600 * second,
            "100ms to 10m",
        )?;
        within(
            "poll interval",
            self.poll_interval,
            10 * millisecond,
            second,
            "10ms to 1s",
        )?;
        if let Some(budget) = self
            .cpu_budget
            .filter(|budget| !budget.is_normal() || *budget < 0.0)
        {
            return Err(AgentError::Option {
                name: "CPU budget",
                value: budget.to_string(),
                range: "more than 0 cores",
            });
        }
        if self.events.is_empty() {
            self.kinds.check()?;
        }
        self.kubernetes.check()?;
        Ok(check_jobs(&self.scrape)?)
    }

    /// The shortest wait that is a sample, nanoseconds.
    pub(crate) fn least_wait_ns(&self) -> u64 {
        u64::try_from(self.min_block_time.as_nanos()).unwrap_or(u64::MAX)
    }

    /// When its windows end, of which the first begins then (CLOCK_MONOTONIC, nanoseconds).
    pub(crate) fn schedule(&self, start_ns: u64) -> Schedule {
        Schedule::new(&self.host_name(), self.window, self.first_window, start_ns)
    }

    pub(crate) fn host_name(&self) -> String {
        self.host.clone().unwrap_or_else(|| {
            let name = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
            name.trim().to_owned()
        })
    }
}

fn usual_sockets() -> Vec<ContainerSocket> {
    let sockets = ContainerSocket::USUAL.iter();
    let sockets: Result<Vec<ContainerSocket>, AgentError> =
        sockets.map(|text| text.parse()).collect();
    sockets.expect("a test reads all of them")
}

impl AgentTargets {
    /// The processes as they are now.
    pub(crate) fn processes(&self) -> Vec<u32> {
        match self {
            Self::Host => all_processes(),
            Self::Pids(pids) => pids.clone(),
            Self::Cgroup(path) => members_of(path),
        }
    }

    pub(crate) fn to_kernel(&self) -> Target {
        match self {
            Self::Host => Target::Host,
            Self::Pids(pids) => Target::Processes {
                pids: pids.clone(),
                follow_forks: true,
            },
            Self::Cgroup(path) => Target::Cgroup(path.clone()),
        }
    }
}

// === impl RecordOptions ===

impl RecordOptions {
    /// A recording at 99 Hz until it is stopped.
    #[must_use]
    pub fn new(targets: RecordTargets) -> Self {
        Self {
            targets,
            rate_hz: 99,
            kinds: Kinds::default(),
            inseparable: Kinds::from([]),
            events: Vec::new(),
            tell: |_| {},
            duration: None,
            stop: Arc::default(),
            discard: Arc::default(),
            filters: SampleFilters::default(),
            agent: AgentOptions::default(),
        }
    }
}

// === impl RecordTargets ===

impl RecordTargets {
    /// What runs already; `None` for a command.
    pub(crate) fn running(&self) -> Option<AgentTargets> {
        match self {
            Self::All => Some(AgentTargets::Host),
            Self::Pids(pids) => Some(AgentTargets::Pids(pids.clone())),
            Self::Cgroup(path) => Some(AgentTargets::Cgroup(path.clone())),
            Self::Command(_) => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn windows_out_of_range_are_named() {
        let options = AgentOptions {
            window: Duration::from_millis(1),
            ..AgentOptions::default()
        };
        let error = options.check().expect_err("too short");
        assert_eq!(
            error.to_string(),
            "window 1ms is out of range; choose 1s to 10m"
        );
        assert!(AgentOptions::default().check().is_ok());
    }
}
