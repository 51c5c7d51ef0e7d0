//! The continuous agent: three threads in a row, each with a bounded queue before it, one that reads heaps, and
//! one that scrapes.
//!
//! ```text
//! candela-sampler ─ windows ─┬─► candela-symbols ─ profiles ─┬─► candela-export ─► exporter, spool
//!      candela-heaps ────────┘            candela-scrape ────┘
//! ```
//!
//! The first never waits for the second, nor the second for the third: what finds a queue full is
//! counted and given up (invariant 7).

use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering;
use std::sync::mpsc::Receiver;
use std::sync::mpsc::SyncSender;
use std::sync::mpsc::sync_channel;
use std::thread::JoinHandle;
use std::time::Duration;

use candela_ebpf::Clock;
use candela_ebpf::MOST_EXPLICIT_EVENTS;
use candela_ebpf::Precedence;
use candela_ebpf::monotonic_ns;

use crate::allocations::loaded_libraries;
use crate::collector::Collector;
use crate::cost::CostKeeper;
use crate::cpu::Naming;
use crate::cpu::SamplingPlan;
use crate::error::AgentError;
use crate::export::Delivery;
use crate::export::Exporter;
use crate::export::ProfileQueue;
use crate::export::spool::Spool;
use crate::go_heaps::GoHeapWatch;
use crate::go_heaps::GoHeaps;
use crate::kinds::Kind;
use crate::kinds::Kinds;
use crate::ledger::DropReason;
use crate::limits::allow_many_files;
use crate::no_samples::NoSamples;
use crate::options::AgentOptions;
use crate::pipeline::FinishedWindow;
use crate::pipeline::finish_windows;
use crate::pipeline::start_symbols;
use crate::pipeline::symbolize;
use crate::scrape::Scraper;
use crate::source::Missing;
use crate::source::StartedSource;
use crate::source::Wanted;
use crate::source::naming;
use crate::source::start_source;
use crate::status::AgentStatus;
use crate::status::Quality;
use crate::status::StatusBoard;
use crate::status::VERSION;
use crate::windows::Windows;

/// What a sample of waiting stands for at least: a thousand threads that sleep and wake all the time give no
/// more than a thousand samples a second.
const WAIT_MEAN_NS: u64 = 1_000_000_000;

/// Windows between sampling and symbolization: three of each kind and event, and of what is in use, of which there
/// are two.
const WINDOW_QUEUE: usize = 3 * (Kind::ALL.len() + MOST_EXPLICIT_EVENTS + 3);

const SAMPLER: &str = "candela-sampler";
const SYMBOLS: &str = "candela-symbols";
const HEAPS: &str = "candela-heaps";
const SCRAPE: &str = "candela-scrape";
const EXPORT: &str = "candela-export";

/// The threads that each sample goes through.
const HANDLERS: &[&str] = &[SAMPLER, SYMBOLS, EXPORT];

/// The continuous agent.
#[derive(Debug)]
pub struct Agent;

/// A running agent. It stops when this is dropped; [`AgentHandle::stop`] also waits and tells how
/// it went.
#[derive(Debug)]
pub struct AgentHandle {
    observer: AgentObserver,
    stop: Arc<AtomicBool>,
    threads: Vec<(&'static str, JoinHandle<()>)>,
}

/// Tells how an agent is doing; may be kept by others than its owner, also after it has stopped.
#[derive(Clone, Debug)]
pub struct AgentObserver {
    board: Arc<StatusBoard>,
    host: String,
    rate_hz: u32,
}

// === impl Agent ===

impl Agent {
    /// Starts to sample and to hand profiles to `exporter`.
    ///
    /// # Errors
    /// Everything that stands in the way, with what to do about it: see [`AgentError`].
    pub fn start(
        options: AgentOptions,
        exporter: Box<dyn Exporter>,
    ) -> Result<AgentHandle, AgentError> {
        options.check()?;
        if !options.sampling && options.scrape.is_empty() {
            return Err(AgentError::NothingToDo);
        }
        allow_many_files();
        let host = options.host_name();
        let host = options.extra_labels.get("host").unwrap_or(&host);
        let board = Arc::new(StatusBoard::of_host(host));
        let spool = options
            .spool
            .clone()
            .map(|spool| Spool::open(spool, Arc::clone(&board.ledger)))
            .transpose()?;
        let kinds = options.kinds.iter().count() + options.events.len();
        let (delivery, profiles) = Delivery::new(exporter, spool, kinds, Arc::clone(&board));
        let (windows, window_receiver) = sync_channel(WINDOW_QUEUE);
        let stop = Arc::new(AtomicBool::new(false));
        let mut handle = AgentHandle {
            observer: AgentObserver {
                board: Arc::clone(&board),
                host: options.host_name(),
                rate_hz: options.rate_hz,
            },
            stop: Arc::clone(&stop),
            threads: Vec::new(),
        };
        let scraper = match options.scrape.is_empty() {
            true => None,
            false => Some(Scraper::new(
                &options.scrape,
                &options.extra_labels,
                profiles.clone(),
                Arc::clone(&board),
            )?),
        };
        let mut source = None;
        let mut heaps = None;
        if options.sampling {
            let naming = naming(&options, &board)?;
            source = Some(start_sampling(&options, &naming, &board)?);
            heaps = options.kinds.has(Kind::Alloc).then(|| GoHeapWatch {
                heaps: GoHeaps::new(
                    options.targets.clone(),
                    naming,
                    Arc::clone(&board.ledger),
                    options.timestamps,
                ),
                windows: windows.clone(),
                board: Arc::clone(&board),
            });
        }
        handle.spawn(EXPORT, move || delivery.run())?;
        if let Some(scraper) = scraper {
            let stop = Arc::clone(&stop);
            handle.spawn(SCRAPE, move || scraper.run(&stop))?;
        }
        let Some(StartedSource { source, missing }) = source else {
            return Ok(handle);
        };
        let symbol_options = options.clone();
        let symbol_board = Arc::clone(&board);
        handle.spawn(SYMBOLS, move || {
            run_symbols(&symbol_options, &window_receiver, &profiles, &symbol_board);
        })?;
        if let Some(heaps) = heaps {
            let schedule = options.schedule(monotonic_ns());
            let stop = Arc::clone(&stop);
            handle.spawn(HEAPS, move || heaps.run(schedule, &stop))?;
        }
        board.parts().missing = missing;
        let sampling = Sampling {
            options,
            windows,
            board,
            stop,
        };
        handle.spawn(SAMPLER, move || sampling.run(source))?;
        Ok(handle)
    }
}

/// Starts what is sampled; of allocations those of programs that have the library, now or later.
fn start_sampling(
    options: &AgentOptions,
    naming: &Naming,
    board: &StatusBoard,
) -> Result<StartedSource, AgentError> {
    let (allocation_libraries, refused) = match options.kinds.has(Kind::Alloc) {
        true => loaded_libraries(&options.targets.processes()),
        false => (Vec::new(), 0),
    };
    board
        .ledger
        .add(DropReason::AllocationLibraryRefused, refused);
    let wanted = Wanted {
        plan: SamplingPlan {
            rate_hz: options.rate_hz,
            kinds: options.kinds,
            events: options.events.clone(),
            allocation_libraries,
            wait_mean_ns: Some(WAIT_MEAN_NS),
            wakers: options.wakers,
            least_wait_ns: options.least_wait_ns(),
        },
        inseparable: Kinds::from([]),
        events_may_lack: true,
        target: options.targets.to_kernel(),
        exclude_self: options.exclude_self,
    };
    let refusal = match start_source(options, naming, &wanted, board) {
        Err(error) if error.is_permission_or_kernel() => error,
        started => return started,
    };
    // Heaps of Go programs are read, whatever the kernel refuses.
    if options.kinds != Kinds::from([Kind::Alloc]) || !options.events.is_empty() {
        return Err(refusal);
    }
    let missing = Missing {
        what: "alloc of all but Go programs".to_owned(),
        reason: refusal.to_string(),
    };
    Ok(StartedSource {
        source: Box::new(NoSamples),
        missing: vec![missing],
    })
}

// === impl AgentHandle ===

impl AgentHandle {
    /// How the agent is doing.
    #[must_use]
    pub fn status(&self) -> AgentStatus {
        self.observer.status()
    }

    /// The same for others to ask.
    #[must_use]
    pub fn observer(&self) -> AgentObserver {
        self.observer.clone()
    }

    /// Whether all threads are at work. One that is not has said why in the log.
    #[must_use]
    pub fn is_running(&self) -> bool {
        self.threads.iter().all(|(_, thread)| !thread.is_finished())
    }

    /// Stops sampling, flushes what was sampled and waits until the exporter has seen it.
    ///
    /// # Errors
    /// [`AgentError::ThreadLost`] when a thread had died.
    pub fn stop(mut self) -> Result<AgentStatus, AgentError> {
        self.join()?;
        Ok(self.status())
    }

    fn spawn(
        &mut self,
        name: &'static str,
        work: impl FnOnce() + Send + 'static,
    ) -> Result<(), AgentError> {
        let clocks = Arc::clone(&self.observer.board.clocks);
        let counted_work = move || {
            let _counted = clocks.count_this(name);
            work();
        };
        let thread = std::thread::Builder::new()
            .name(name.to_owned())
            .spawn(counted_work)
            .map_err(|source| AgentError::Thread { name, source })?;
        self.threads.push((name, thread));
        Ok(())
    }

    /// In the order of the way of a sample: each thread ends when its queue is closed.
    fn join(&mut self) -> Result<(), AgentError> {
        self.stop.store(true, Ordering::Relaxed);
        let mut lost = Ok(());
        for (name, thread) in self.threads.drain(..).rev() {
            if thread.join().is_err() {
                lost = Err(AgentError::ThreadLost { name });
            }
        }
        lost
    }
}

impl Drop for AgentHandle {
    fn drop(&mut self) {
        if let Err(error) = self.join() {
            tracing::error!(%error, "the agent did not stop cleanly");
        }
    }
}

// === impl AgentObserver ===

impl AgentObserver {
    /// How the agent is doing.
    #[must_use]
    pub fn status(&self) -> AgentStatus {
        let parts = self.board.parts().clone();
        AgentStatus {
            version: VERSION.to_owned(),
            host: self.host.clone(),
            rate_hz: self.rate_hz,
            started_ms: self.board.started_ms,
            quality: Quality::from_results(&parts.results),
            drops: self.board.drops(),
            events: parts.events,
            cost: self.board.cost(),
            source: parts.source,
            symbols: parts.symbols,
            scrape: parts.scrape,
            delivery: parts.delivery,
            missing: parts.missing,
            failure: parts.failure,
        }
    }
}

/// The sampling thread.
struct Sampling {
    options: AgentOptions,
    windows: SyncSender<FinishedWindow>,
    board: Arc<StatusBoard>,
    stop: Arc<AtomicBool>,
}

impl Sampling {
    fn run(self, mut source: Box<dyn Collector + Send>) {
        // How much CPU time it takes, its budget bounds; when it gets it, nobody else should.
        let _precedence = Precedence::take();
        let mut windows = Windows::continuous(self.options.timestamps).keep_cpus(self.options.cpus);
        let mut start_ns = monotonic_ns();
        if let Err(error) = source.starts_at(start_ns) {
            self.board.fail(format!("sampling has not begun: {error}"));
            return;
        }
        let mut schedule = self.options.schedule(start_ns);
        let AgentOptions {
            rate_hz,
            cpu_budget,
            ..
        } = self.options;
        let mut cost = CostKeeper::new(&*source, rate_hz, cpu_budget, HANDLERS, &self.board);
        cost.begins(start_ns, schedule.next_ns);
        while !self.stop.load(Ordering::Relaxed) {
            let next_ns = schedule.next_ns.min(cost.next_ns());
            let left = Duration::from_nanos(next_ns.saturating_sub(monotonic_ns()));
            let timeout = self.options.poll_interval.min(left);
            if let Err(error) = source.collect(timeout, &mut windows) {
                self.board.fail(format!("sampling has ended: {error}"));
                break;
            }
            let now_ns = monotonic_ns();
            cost.attend(&mut *source, now_ns);
            if now_ns >= schedule.next_ns {
                if let Err(error) = source.close(now_ns, &mut windows) {
                    self.board.fail(format!("sampling has ended: {error}"));
                    break;
                }
                self.flush(&mut *source, &mut windows, start_ns, now_ns);
                cost.ends(&mut *source, now_ns);
                start_ns = now_ns;
                schedule.advance(now_ns, Clock::now());
                cost.begins(start_ns, schedule.next_ns);
            }
        }
        let end_ns = monotonic_ns();
        if let Err(error) = source.settle(end_ns, &mut windows) {
            tracing::error!(%error, "the last samples could not be read");
        }
        self.flush(&mut *source, &mut windows, start_ns, end_ns);
        cost.close(&mut *source, end_ns);
    }

    fn flush(&self, source: &mut dyn Collector, windows: &mut Windows, start_ns: u64, end_ns: u64) {
        let finished = finish_windows(source, windows, start_ns, end_ns, &self.board);
        self.board.parts().source = source.status();
        for finished in finished {
            let samples = finished.window.samples();
            if samples > 0 && self.windows.try_send(finished).is_err() {
                self.board.ledger.add(DropReason::SymbolizerBehind, samples);
            }
        }
        source.sweep();
    }
}

fn run_symbols(
    options: &AgentOptions,
    windows: &Receiver<FinishedWindow>,
    profiles: &ProfileQueue,
    board: &StatusBoard,
) {
    let mut symbols = start_symbols(options);
    for mut finished in windows {
        let samples = finished.window.samples();
        let work = || symbolize(&mut finished, &options.filters, &mut symbols, board);
        match std::panic::catch_unwind(AssertUnwindSafe(work)) {
            // All of it was left out.
            Ok(profile) if profile.series.is_empty() => {}
            Ok(profile) => profiles.push(profile),
            // A defect that some file brings out must not end the profiles of all others.
            Err(_) => {
                board.ledger.add(DropReason::SymbolizerFailed, samples);
                symbols = start_symbols(options);
            }
        }
    }
}
