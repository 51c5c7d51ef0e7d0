//! The running sampler.

use crate::allocations::{self, AllocationWatch, FunctionLink};
use crate::bpf_map::BpfMap;
use crate::clock::{Clock, monotonic_ns};
use crate::cost::{self, ProgramCost, RunTimes};
use crate::counters::{CounterMap, Counters};
use crate::event::Event;
use crate::explicit::{ExplicitEvents, MOST_EXPLICIT_EVENTS};
use crate::faults::Faults;
use crate::host;
use crate::kernel_tables::{KernelTables, MemoryUse};
use crate::life::{LifeEvent, LifeKeeper};
use crate::loader::{self, Loaded};
use crate::mapping_store::MappingStore;
use crate::off_cpu::OffCpu;
use crate::options::{AllocationProbes, Options, Target};
use crate::pace::Pace;
use crate::polling::{has_hung_up, poll_files, readable, take_until};
use crate::program_runs::ProgramRuns;
use crate::record::decode_life;
use crate::ring::Ring;
use crate::sample_reader::SampleReader;
use crate::sideband::Sideband;
use crate::table_store::TableStore;
use crate::{Error, Mapping, TableId, perf_event};
use candela_unwind::{RuleSet, Table};
use libbpf_rs::{Link, Object};
use std::collections::HashSet;
use std::fs::File;
use std::os::fd::{AsFd, AsRawFd, IntoRawFd, OwnedFd};
use std::sync::Arc;
use std::time::Duration;

/// How long records gather after the first one woke us: short against the time between samples.
const GATHERING: Duration = Duration::from_millis(2);

/// Samples CPUs until it is dropped.
///
/// One thread polls it; [`Sampler::kernel_tables`] can be used from any thread meanwhile.
pub struct Sampler {
    // Events come first: programs are detached before what they use goes.
    cpus: Vec<SampledCpu>,
    links: Vec<Link>,
    off_cpu: Option<OffCpu>,
    faults: Option<Faults>,
    explicit: Option<ExplicitEvents>,
    on_cpu: bool,
    samples: Ring,
    life: Ring,
    counters: CounterMap,
    target_pids: BpfMap,
    mapped_build_ids: bool,
    kernel_tables: Arc<KernelTables>,
    object: Object,
    run_times: RunTimes,
    /// Where programs count their runs.
    program_runs: Option<ProgramRuns>,
    period_ns: u64,
    pace: Pace,
    function_link: FunctionLink,
    /// With `Target::Processes`: whose side-band records are wanted.
    targets: Option<HashSet<u32>>,
    pending: Vec<LifeEvent>,
    reader: SampleReader,
    sideband_lost: u64,
    /// Records of process life of a layout that we do not know.
    undecodable: u64,
}

/// The events of one CPU.
struct SampledCpu {
    cpu: u32,
    #[expect(dead_code, reason = "held: the program runs until it is dropped")]
    link: Option<Link>,
    /// The sampling event once more, to ask whether it still counts.
    event: OwnedFd,
    /// How long the event had been enabled when it was last asked, nanoseconds.
    enabled_ns: u64,
    sideband: Sideband,
}

// === impl SampledCpu ===

impl SampledCpu {
    /// False when the CPU was offline since the last call, even if it is back.
    fn is_sampled(&mut self) -> bool {
        let enabled_ns = perf_event::enabled_ns(&self.event).unwrap_or(0);
        let is_running = enabled_ns > self.enabled_ns && !self.sideband.is_gone;
        self.enabled_ns = enabled_ns;
        is_running
    }
}

// === impl Sampler ===

impl std::fmt::Debug for Sampler {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter
            .debug_struct("Sampler")
            .field("period_ns", &self.period_ns)
            .field("cpus", &self.cpus.len())
            .field("kernel_tables", &self.kernel_tables)
            .finish_non_exhaustive()
    }
}

impl Sampler {
    /// Loads the programs and starts sampling.
    ///
    /// # Errors
    /// Every kind of [`Error`] except those of tables and mappings.
    pub fn start(options: &Options) -> Result<Sampler, Error> {
        if host::in_initial_pid_namespace() == Some(false) {
            return Err(Error::PidNamespace);
        }
        let period_ns = options.period_ns()?;
        let targets = check_targets(&options.target)?;
        let cgroup = open_cgroup(&options.target)?;
        let loaded = loader::load(options)?;
        let Loaded {
            object,
            defers,
            function_link,
            counts_runs,
            sample_ring_bytes,
            life_ring_bytes,
        } = loaded;

        let map = |name| loader::map(&object, name);
        for &pid in targets.iter().flatten() {
            map("target_pids")?.update(pid, 1_u8)?;
        }
        if let (Some(cgroup), Target::Cgroup(path)) = (&cgroup, &options.target) {
            map("target_cgroup")?
                .update(0_u32, cgroup.as_raw_fd())
                .map_err(|error| match error {
                    Error::Map { source, .. } => Error::Cgroup {
                        path: path.clone(),
                        source,
                    },
                    other => other,
                })?;
        }
        let mappings = MappingStore::new(map("processes")?, &map("regions")?, options)?;
        let tables = TableStore::new(
            map("tables")?,
            &map("table_last_used")?,
            &map("rules")?,
            options,
        )?;
        let kernel_tables = Arc::new(KernelTables::new(mappings, tables, fixed_maps(&object)?));
        let mut run_times = RunTimes::default();
        run_times.measure(options.measure_cost)?;
        let counters = CounterMap::new(map("counters")?)?;
        let program_runs = match counts_runs {
            true => Some(ProgramRuns::new(
                map("program_runs")?,
                counters.possible_cpus(),
            )),
            false => None,
        };
        let mut sampler = Sampler {
            cpus: Vec::new(),
            links: Vec::new(),
            off_cpu: None,
            faults: None,
            explicit: None,
            on_cpu: options.on_cpu,
            samples: Ring::new(map("samples")?, sample_ring_bytes)?,
            life: Ring::new(map("life")?, life_ring_bytes)?,
            counters,
            target_pids: map("target_pids")?,
            mapped_build_ids: options.mapped_build_ids,
            kernel_tables,
            run_times,
            program_runs,
            period_ns,
            pace: Pace::of(options).within_bounds(),
            function_link,
            targets,
            pending: Vec::new(),
            reader: SampleReader::default(),
            sideband_lost: 0,
            undecodable: 0,
            object,
        };
        sampler.attach()?;
        if options.off_cpu_mean_ns.is_some() {
            sampler.off_cpu = Some(OffCpu::attach(&sampler.object, defers)?);
        }
        if !options.events.is_empty() {
            let cpus: Vec<u32> = sampler.cpus.iter().map(|cpu| cpu.cpu).collect();
            let named = &options.events[..options.events.len().min(MOST_EXPLICIT_EVENTS)];
            let attached = ExplicitEvents::attach(&sampler.object, named, options.rate_hz, &cpus)?;
            sampler.explicit = Some(attached);
        }
        let links = loader::attach_plain(&sampler.object, options)?;
        sampler.links.extend(links);
        if options.fault_interval.is_some() {
            sampler.faults = Some(Faults::attach(&sampler.object)?);
        }
        Ok(sampler)
    }

    /// The time between two samples of a busy CPU in nanoseconds: the value of each sample that is taken now.
    pub fn period_ns(&self) -> u64 {
        self.period_ns * u64::from(self.pace.ticks_per_sample)
    }

    /// The distance between event times and unix time, as of now.
    pub fn clock(&self) -> Clock {
        Clock::now()
    }

    /// Mappings, tables and rules, for use from any thread and from inside the event handler.
    pub fn kernel_tables(&self) -> Arc<KernelTables> {
        Arc::clone(&self.kernel_tables)
    }

    /// Waits until something needs attention or `timeout` passes, then hands all events to
    /// `handler`, in the order of time as far as they arrived in it.
    ///
    /// Samples alone do not end the wait before a quarter of their ring buffer is full, so the
    /// timeout is the batching interval: 100 ms is fine. Process life, new mappings and samples of
    /// unknown processes end it within 2 ms.
    ///
    /// # Errors
    /// [`Error::System`] when the wait fails.
    pub fn poll(
        &mut self,
        timeout: Duration,
        handler: &mut dyn FnMut(Event<'_>),
    ) -> Result<(), Error> {
        self.wait(timeout)?;
        self.kernel_tables.begin_round();
        // What happens to processes later than this has samples before it that are not taken yet.
        let until_ns = monotonic_ns();
        // Samples up to here are handled after what happened to their processes before them.
        let samples_end = self.samples.produced();
        self.collect_life();

        let life = take_until(&mut self.pending, until_ns, LifeEvent::time_ns);
        let mut life = life.into_iter().peekable();
        let Sampler {
            samples,
            reader,
            sideband_lost,
            kernel_tables,
            targets,
            target_pids,
            ..
        } = self;
        let mut keeper = LifeKeeper {
            kernel_tables,
            targets,
            target_pids,
            sideband_lost,
        };
        samples.drain(samples_end, |record| {
            let Some((time_ns, event)) = reader.read(record) else {
                return;
            };
            while let Some(earlier) = life.next_if(|earlier| earlier.time_ns() <= time_ns) {
                keeper.deliver(&earlier, handler);
            }
            handler(event);
        });
        for event in life {
            keeper.deliver(&event, handler);
        }
        Ok(())
    }

    /// Samples what programs that have a library allocate, from now on, also those that run already. Of a file that
    /// is watched under two of its paths calls are told once. It needs
    /// [`Options::allocations`](crate::Options::allocations).
    ///
    /// # Errors
    /// [`Error::ProbesForbidden`], [`Error::Probe`].
    pub fn watch_allocations(
        &self,
        probes: &AllocationProbes<'_>,
    ) -> Result<AllocationWatch, Error> {
        allocations::watch(&self.object, self.function_link, probes)
    }

    /// Counts time off CPU from `start_ns` (CLOCK_MONOTONIC) on, also that of threads which have been off
    /// since before and of which nothing is known yet. Without
    /// [`Options::off_cpu_mean_ns`](crate::Options::off_cpu_mean_ns) this does nothing.
    ///
    /// # Errors
    /// [`Error::Map`], [`Error::System`].
    pub fn start_off_cpu(&self, start_ns: u64) -> Result<(), Error> {
        match &self.off_cpu {
            Some(off_cpu) => off_cpu.start(start_ns),
            None => Ok(()),
        }
    }

    /// Asks for samples of the threads that are off CPU, of the time up to `end_ns` (CLOCK_MONOTONIC): they
    /// come with the next [`Sampler::poll`]. Returns how many found no room: poll and call it again. Without
    /// [`Options::off_cpu_mean_ns`](crate::Options::off_cpu_mean_ns) there are none.
    ///
    /// # Errors
    /// [`Error::Map`], [`Error::System`].
    pub fn sample_off_cpu(&self, end_ns: u64) -> Result<usize, Error> {
        match &self.off_cpu {
            Some(off_cpu) => off_cpu.sample(end_ns),
            None => Ok(0),
        }
    }

    /// As [`Sampler::sample_off_cpu`], when nobody will poll after it: threads that are on their way back to
    /// user space give their samples now, without a user stack.
    ///
    /// # Errors
    /// [`Error::Map`], [`Error::System`].
    pub fn end_off_cpu(&self, end_ns: u64) -> Result<usize, Error> {
        match &self.off_cpu {
            Some(off_cpu) => off_cpu.end(end_ns),
            None => Ok(0),
        }
    }

    /// Asks for samples of the page faults that no sample stands for yet: they come without a stack and with
    /// the time `end_ns` (CLOCK_MONOTONIC), with the next [`Sampler::poll`]. Returns how many threads found no
    /// room: poll and call it again. Without [`Options::fault_interval`](crate::Options::fault_interval) there
    /// are none.
    ///
    /// # Errors
    /// [`Error::Map`], [`Error::System`].
    pub fn sample_rest_of_faults(&self, end_ns: u64) -> Result<usize, Error> {
        match &self.faults {
            Some(faults) => faults.sample_rest(end_ns),
            None => Ok(0),
        }
    }

    /// What the kernel side counted so far.
    ///
    /// # Errors
    /// [`Error::Map`], [`Error::System`].
    pub fn counters(&self) -> Result<Counters, Error> {
        let counted = self.counters.read()?;
        // A read of user memory by a program of ours that finds no page raises page_fault_kernel inside of that
        // program. It fails there and then: no fault of the process, and nothing that is lost.
        let costs = self.cost()?.into_iter();
        let misses = costs
            .filter(|cost| cost.name != "fault_in_kernel")
            .map(|cost| cost.recursion_misses);
        Ok(Counters {
            sideband_lost: self.sideband_lost,
            undecodable: self.undecodable + self.reader.undecodable(),
            lost: counted.lost + self.reader.given_up(),
            waker_stacks_lost: counted.waker_stacks_lost + self.reader.wakers_given_up(),
            recursion_misses: misses.sum(),
            ..counted
        })
    }

    /// Lets the kernel measure the run time of our programs from now on, as with
    /// [`Options::measure_cost`](crate::Options::measure_cost), or not any more.
    ///
    /// # Errors
    /// [`Error::System`].
    pub fn measure_cost(&mut self, is_on: bool) -> Result<(), Error> {
        self.run_times.measure(is_on)
    }

    /// How much is sampled.
    pub fn pace(&self) -> Pace {
        self.pace
    }

    /// Changes how much is sampled from now on. Samples that are on their way are worth what they stood for.
    ///
    /// # Errors
    /// [`Error::Map`].
    pub fn set_pace(&mut self, pace: Pace) -> Result<(), Error> {
        let pace = pace.within_bounds();
        loader::map(&self.object, loader::PACE)?.update(0_u32, pace.to_kernel())?;
        self.pace = pace;
        Ok(())
    }

    /// What the programs cost so far, by the kernel's clock.
    ///
    /// # Errors
    /// [`Error::System`]; runs and times are those of when they were measured, see [`Sampler::measure_cost`].
    pub fn cost(&self) -> Result<Vec<ProgramCost>, Error> {
        cost::of_programs(&self.object, self.program_runs.as_ref())
    }

    /// [`KernelTables::add_process_mappings`].
    ///
    /// # Errors
    /// As there.
    pub fn add_process_mappings(&self, pid: u32, mappings: &[Mapping]) -> Result<(), Error> {
        self.kernel_tables.add_process_mappings(pid, mappings)
    }

    /// [`KernelTables::remove_process`].
    ///
    /// # Errors
    /// As there.
    pub fn remove_process(&self, pid: u32) -> Result<(), Error> {
        self.kernel_tables.remove_process(pid)
    }

    /// [`KernelTables::sync_rules`].
    pub fn sync_rules(&self, rules: &RuleSet) {
        self.kernel_tables.sync_rules(rules);
    }

    /// [`KernelTables::upload_table`].
    ///
    /// # Errors
    /// As there.
    pub fn upload_table(&self, id: TableId, table: &Table) -> Result<u64, Error> {
        self.kernel_tables.upload_table(id, table)
    }

    /// [`KernelTables::evict_table`].
    ///
    /// # Errors
    /// As there.
    pub fn evict_table(&self, id: TableId) -> Result<u64, Error> {
        self.kernel_tables.evict_table(id)
    }

    /// [`KernelTables::memory`].
    ///
    /// # Errors
    /// As there.
    pub fn memory(&self) -> Result<MemoryUse, Error> {
        self.kernel_tables.memory()
    }

    /// Looks after CPUs that came online, and those that were away: the kernel does not give a CPU
    /// its events back, and a suspended laptop takes all but one away. Returns how many CPUs are
    /// sampled from now on that were not before. Call it every few seconds.
    ///
    /// # Errors
    /// [`Error::System`], [`Error::PerfEvent`], [`Error::Attach`].
    pub fn refresh_cpus(&mut self) -> Result<usize, Error> {
        self.cpus.retain_mut(SampledCpu::is_sampled);
        let online = online_cpus()?;
        let is_new = |cpu: &u32| self.cpus.iter().all(|sampled| sampled.cpu != *cpu);
        let new: Vec<u32> = online.into_iter().filter(is_new).collect();
        for &cpu in &new {
            let sideband = Sideband::open(cpu, self.mapped_build_ids)?;
            self.sample_cpu(cpu, sideband)?;
        }
        Ok(new.len())
    }

    /// How many CPUs are sampled.
    pub fn cpu_count(&self) -> usize {
        self.cpus.len()
    }

    /// Life events before samples: a process that starts between the two is seen starting.
    fn attach(&mut self) -> Result<(), Error> {
        let mut sidebands = Vec::new();
        for cpu in online_cpus()? {
            sidebands.push((cpu, Sideband::open(cpu, self.mapped_build_ids)?));
        }
        for program in ["process_fork", "process_exec", "process_exit"] {
            let link = loader::program(&self.object, program).attach_trace();
            self.links
                .push(link.map_err(|source| Error::Attach { program, source })?);
        }
        for (cpu, sideband) in sidebands {
            self.sample_cpu(cpu, sideband)?;
        }
        Ok(())
    }

    fn sample_cpu(&mut self, cpu: u32, sideband: Sideband) -> Result<(), Error> {
        let event = perf_event::open_cpu_clock(cpu, self.period_ns)?;
        let observed = event
            .try_clone()
            .map_err(Error::system("keep a perf event"))?;
        let link = if self.on_cpu {
            let link = loader::program(&self.object, "sample_cpu")
                .attach_perf_event(event.as_raw_fd())
                .map_err(|source| Error::Attach {
                    program: "sample_cpu",
                    source,
                })?;
            // The link closes the event when it is dropped.
            let _ = event.into_raw_fd();
            Some(link)
        } else {
            // It still tells when its CPU goes offline.
            perf_event::enable(&event).map_err(Error::system("enable a perf event"))?;
            None
        };
        self.cpus.push(SampledCpu {
            cpu,
            link,
            event: observed,
            enabled_ns: 0,
            sideband,
        });
        Ok(())
    }

    fn wait(&mut self, timeout: Duration) -> Result<(), Error> {
        let mut files = vec![readable(self.samples.as_fd()), readable(self.life.as_fd())];
        let rings = files.len();
        let there = self.cpus.iter().filter(|cpu| !cpu.sideband.is_gone);
        files.extend(there.map(|cpu| readable(cpu.sideband.as_fd())));
        if !poll_files(&mut files, timeout)? {
            return Ok(());
        }
        let there = self.cpus.iter_mut().filter(|cpu| !cpu.sideband.is_gone);
        for (cpu, file) in there.zip(&files[rings..]) {
            cpu.sideband.is_gone = has_hung_up(file);
        }
        // An exec brings half a dozen records within a millisecond: one wake-up is enough.
        poll_files(&mut [], timeout.min(GATHERING)).map(|_| ())
    }

    /// Adds what happened to processes to `pending`.
    fn collect_life(&mut self) {
        let Sampler {
            life,
            cpus,
            pending,
            undecodable,
            ..
        } = self;
        // The side band first: the fork before an exec that is in it is then in the ring by now. The
        // other way round a fork could arrive a poll after the exec of the same process, and make
        // it a copy of its parent again.
        let mut records = Vec::new();
        for cpu in cpus {
            cpu.sideband.drain(&mut records);
        }
        pending.extend(records.into_iter().map(LifeEvent::Sideband));
        life.drain(life.produced(), |record| match decode_life(record) {
            Some(record) => pending.push(LifeEvent::Life(record)),
            None => *undecodable += 1,
        });
    }
}

pub(crate) fn online_cpus() -> Result<Vec<u32>, Error> {
    host::online_cpus().map_err(Error::system("list the online CPUs"))
}

/// Target processes must exist, or nothing would ever come and nobody would know why.
pub(crate) fn check_targets(target: &Target) -> Result<Option<HashSet<u32>>, Error> {
    let Target::Processes { pids, .. } = target else {
        return Ok(None);
    };
    let missing = pids
        .iter()
        .find(|pid| !host::is_there(format!("/proc/{pid}")));
    match missing {
        Some(&pid) => Err(Error::NoSuchProcess { pid }),
        None => Ok(Some(pids.iter().copied().collect())),
    }
}

fn open_cgroup(target: &Target) -> Result<Option<File>, Error> {
    let Target::Cgroup(path) = target else {
        return Ok(None);
    };
    File::open(path).map(Some).map_err(|source| Error::Cgroup {
        path: path.clone(),
        source,
    })
}

/// Every map of the object, to measure its memory. Tables are measured one by one.
fn fixed_maps(object: &Object) -> Result<Vec<BpfMap>, Error> {
    object
        .maps()
        // The others have a descriptor, but of nothing.
        .filter(|map| map.autocreate())
        .map(|map| BpfMap::duplicate("fixed", map.as_fd()))
        .collect()
}
