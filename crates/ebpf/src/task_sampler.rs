//! Sampling without BPF: processes of one's own, by perf events alone.

use crate::clock::monotonic_ns;
use crate::event::{Event, Sample};
use crate::options::{Options, Target};
use crate::perf_event::{self, TaskClock};
use crate::perf_ring::PerfRing;
use crate::polling::{has_hung_up, poll_files, readable, take_until};
use crate::sampler::{check_targets, online_cpus};
use crate::sideband::SidebandBody;
use crate::task_record::{TaskBody, TaskRecord, TaskSample, UserState, decode};
use crate::task_threads::TaskThreads;
use crate::thread_labels::ThreadLabels;
use crate::{Error, host};
use libbpf_rs::libbpf_sys::PERF_RECORD_UNTHROTTLE;
use std::collections::HashSet;
use std::ffi::OsStr;
use std::fs;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::time::Duration;

/// Of each sample. A record has 64 KiB at most, and the kernel copies all of this each time.
const STACK_COPY_BYTES: u32 = 32 * 1024;

/// Records of one CPU. With its first page this is what every user may lock for each CPU
/// (`kernel.perf_event_mlock_kb`, 516 unless it was changed).
const RING_BYTES: usize = 512 * 1024;

/// Less would hold no two samples.
const LEAST_RING_BYTES: usize = 128 * 1024;

/// The reader wakes when a ring is a quarter full; until then its timeout is the batching interval.
const WAKEUP_BYTES: u32 = 128 * 1024;

/// How often threads are looked for that were started while events were opened.
const ROUNDS: usize = 3;

/// The number that stands for the calling thread in perf_event_open(2).
const CALLING_THREAD: u32 = 0;

/// Samples processes that the caller may trace, until it is dropped: no BPF, no privileges. Each sample is
/// [`Event::Sample`] with registers and a copy of the stack, never walked.
pub struct TaskSampler {
    rings: Vec<TaskRing>,
    /// Those without a ring of their own, held: each samples until it is dropped.
    events: Vec<OwnedFd>,
    period_ns: u64,
    with_kernel: bool,
    /// Whose samples are wanted, where those of forks are not.
    wanted: Option<HashSet<u32>>,
    threads: TaskThreads,
    pending: Vec<(u32, TaskRecord)>,
    counters: TaskCounters,
}

/// What a [`TaskSampler`] has counted so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TaskCounters {
    /// Samples taken.
    pub samples: u64,
    /// Records, of samples or of lives of processes, that found no room.
    pub lost: u64,
    /// How often the kernel held samples back to save its own time.
    pub throttled: u64,
    /// Samples of 32-bit programs, which are not walked.
    pub compat_tasks: u64,
    /// Records of a layout we do not know: a defect of ours.
    pub undecodable: u64,
}

/// The records of one CPU.
struct TaskRing {
    cpu: u32,
    ring: PerfRing,
    /// The thread that it was opened for has ended: it is always "ready". Others may still write to it.
    is_hung_up: bool,
}

// === impl TaskSampler ===

impl std::fmt::Debug for TaskSampler {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter
            .debug_struct("TaskSampler")
            .field("period_ns", &self.period_ns)
            .field("with_kernel", &self.with_kernel)
            .field("counters", &self.counters)
            .finish_non_exhaustive()
    }
}

impl TaskSampler {
    /// Starts sampling what runs of [`Options::target`], at [`Options::rate_hz`]; the other options are those of
    /// BPF. The target that is the calling process with its forks is what the calling thread starts from now on:
    /// each program from its exec.
    ///
    /// # Errors
    /// [`Error::ProcessesOnly`], [`Error::NotOurs`], [`Error::PerfParanoid`], [`Error::NoSuchProcess`],
    /// [`Error::PerfMemory`], [`Error::PerfEvent`], [`Error::RateOutOfRange`], [`Error::System`].
    pub fn start(options: &Options) -> Result<TaskSampler, Error> {
        let period_ns = options.period_ns()?;
        let Target::Processes { pids, follow_forks } = &options.target else {
            return Err(Error::ProcessesOnly);
        };
        let wanted = check_targets(&options.target)?.filter(|_| !follow_forks);
        let mut sampler = TaskSampler {
            rings: Vec::new(),
            events: Vec::new(),
            period_ns,
            with_kernel: true,
            wanted,
            threads: TaskThreads::default(),
            pending: Vec::new(),
            counters: TaskCounters::default(),
        };
        let cpus = online_cpus()?;
        for &pid in pids {
            if pid == std::process::id() && *follow_forks {
                sampler.open(pid, CALLING_THREAD, &cpus)?;
                // No end of its other threads is its own.
                sampler.threads.begun(pid, pid, b"");
            } else {
                sampler.open_process(pid, &cpus)?;
            }
        }
        Ok(sampler)
    }

    /// The time between two samples of a busy thread in nanoseconds: the value of each sample.
    pub fn period_ns(&self) -> u64 {
        self.period_ns
    }

    /// Whether time in the kernel is sampled, too.
    pub fn sees_kernel(&self) -> bool {
        self.with_kernel
    }

    /// How many CPUs are sampled.
    pub fn cpu_count(&self) -> usize {
        self.rings.len()
    }

    /// What was counted so far.
    pub fn counters(&self) -> TaskCounters {
        self.counters
    }

    /// Waits until a ring is a quarter full or `timeout` passes, then hands all events to `handler`, in the order
    /// of time.
    ///
    /// # Errors
    /// [`Error::System`] when the wait fails.
    pub fn poll(
        &mut self,
        timeout: Duration,
        handler: &mut dyn FnMut(Event<'_>),
    ) -> Result<(), Error> {
        self.wait(timeout)?;
        // A later record of one CPU may come after one of another CPU that is not there yet.
        let until_ns = monotonic_ns();
        self.collect();
        let records = take_until(&mut self.pending, until_ns, |(_, record)| record.time_ns);
        for (cpu, record) in records {
            self.deliver(cpu, &record, handler);
        }
        Ok(())
    }

    /// Opens the events of all threads of a process, and of those that they start meanwhile.
    fn open_process(&mut self, pid: u32, cpus: &[u32]) -> Result<(), Error> {
        let mut known = HashSet::new();
        for _ in 0..ROUNDS {
            // What a thread with events starts has them, too, and the records say so.
            self.collect();
            known.extend(
                self.pending
                    .iter()
                    .filter_map(|(_, record)| match record.body {
                        TaskBody::Forked { tid, .. } => Some(tid),
                        _ => None,
                    }),
            );
            let threads = threads_of(pid);
            let new: Vec<u32> = threads
                .into_iter()
                .filter(|tid| known.insert(*tid))
                .collect();
            if new.is_empty() {
                break;
            }
            for tid in new {
                let name = fs::read_to_string(format!("/proc/{pid}/task/{tid}/comm"));
                let name = name.unwrap_or_default();
                self.threads.begun(pid, tid, name.trim_end().as_bytes());
                self.open(pid, tid, cpus)?;
            }
        }
        match known.is_empty() {
            true => Err(Error::NoSuchProcess { pid }),
            false => Ok(()),
        }
    }

    /// Opens the events of a thread, one for each CPU; nothing where it has ended.
    fn open(&mut self, pid: u32, tid: u32, cpus: &[u32]) -> Result<(), Error> {
        for &cpu in cpus {
            let event = match self.open_on(tid, cpu) {
                Ok(event) => event,
                Err(error) if error.raw_os_error() == Some(libc::ESRCH) => return Ok(()),
                Err(error) => return Err(refusal(error, pid, cpu)),
            };
            let shared = self.rings.iter().find(|ring| ring.cpu == cpu);
            let Some(shared) = shared else {
                let ring = PerfRing::at_most(event, RING_BYTES, LEAST_RING_BYTES);
                self.rings.push(TaskRing {
                    cpu,
                    ring: ring.map_err(|source| Error::PerfMemory { source })?,
                    is_hung_up: false,
                });
                continue;
            };
            perf_event::share_ring(&event, shared.ring.as_fd())
                .map_err(Error::system("let perf events share a ring"))?;
            self.events.push(event);
        }
        Ok(())
    }

    /// With the kernel's part where that is allowed (`kernel.perf_event_paranoid` below 2).
    fn open_on(&mut self, tid: u32, cpu: u32) -> io::Result<OwnedFd> {
        let clock = |with_kernel| TaskClock {
            period_ns: self.period_ns,
            stack_bytes: STACK_COPY_BYTES,
            with_kernel,
            from_exec: tid == CALLING_THREAD,
            wakeup_bytes: WAKEUP_BYTES,
        };
        let opened = perf_event::open_task_clock(tid, cpu, clock(self.with_kernel));
        let is_first = self.rings.is_empty();
        match opened {
            Err(error) if is_first && self.with_kernel && is_forbidden(&error) => {
                let opened = perf_event::open_task_clock(tid, cpu, clock(false));
                self.with_kernel = false;
                opened
            }
            opened => opened,
        }
    }

    fn wait(&mut self, timeout: Duration) -> Result<(), Error> {
        let listening = |ring: &&mut TaskRing| !ring.is_hung_up;
        let mut rings: Vec<&mut TaskRing> = self.rings.iter_mut().filter(listening).collect();
        let mut files: Vec<libc::pollfd> = rings
            .iter()
            .map(|ring| readable(ring.ring.as_fd()))
            .collect();
        poll_files(&mut files, timeout)?;
        for (ring, file) in rings.iter_mut().zip(&files) {
            ring.is_hung_up = has_hung_up(file);
        }
        Ok(())
    }

    /// Takes the records that are there.
    fn collect(&mut self) {
        let TaskSampler {
            rings,
            pending,
            counters,
            with_kernel,
            ..
        } = self;
        for TaskRing { cpu, ring, .. } in rings {
            ring.drain(|record| match decode(record, *with_kernel) {
                Some(record) => pending.push((*cpu, record)),
                None if record.starts_with(&PERF_RECORD_UNTHROTTLE.to_le_bytes()) => {}
                None => counters.undecodable += 1,
            });
        }
    }

    fn deliver(&mut self, cpu: u32, record: &TaskRecord, handler: &mut dyn FnMut(Event<'_>)) {
        let time_ns = record.time_ns;
        match &record.body {
            TaskBody::Sample(sample) => self.deliver_sample(cpu, time_ns, sample, handler),
            TaskBody::Named {
                pid,
                tid,
                comm,
                is_exec,
            } => {
                if *is_exec {
                    self.threads.replaced(*pid, *tid, comm);
                    handler(Event::Exec {
                        pid: *pid,
                        time_ns,
                        comm: OsStr::from_bytes(comm),
                    });
                } else {
                    self.threads.begun(*pid, *tid, comm);
                }
            }
            &TaskBody::Forked {
                pid,
                parent,
                tid,
                parent_tid,
            } => {
                let name = self.threads.name(parent, parent_tid).to_vec();
                self.threads.begun(pid, tid, &name);
                if pid != parent {
                    handler(Event::Fork {
                        pid,
                        parent,
                        time_ns,
                    });
                }
            }
            &TaskBody::Ended { pid, tid } => {
                if self.threads.ended(pid, tid) {
                    handler(Event::Exit { pid, time_ns });
                }
            }
            TaskBody::Sideband(body) => self.deliver_sideband(time_ns, body, handler),
            TaskBody::Throttled => self.counters.throttled += 1,
        }
    }

    fn deliver_sample(
        &mut self,
        cpu: u32,
        time_ns: u64,
        sample: &TaskSample,
        handler: &mut dyn FnMut(Event<'_>),
    ) {
        let is_wanted = self
            .wanted
            .as_ref()
            .is_none_or(|it| it.contains(&sample.pid));
        if !is_wanted {
            return;
        }
        self.counters.samples += 1;
        if matches!(sample.user, UserState::Compat) {
            self.counters.compat_tasks += 1;
        }
        let comm = self.threads.name(sample.pid, sample.tid);
        handler(Event::Sample(Sample {
            pid: sample.pid,
            tid: sample.tid,
            cpu,
            time_ns,
            value: self.period_ns,
            run_queue_ns: 0,
            event: 0,
            count: 1,
            cgroup_id: 0,
            // Forks, execs and ends are told: a process id is never that of an earlier process.
            process_start_ns: 0,
            comm: OsStr::from_bytes(comm),
            result: sample.result(),
            in_kernel: sample.in_kernel,
            process_known: true,
            copy_limited: false,
            was_preempted: false,
            lock: None,
            trace: None,
            waker: None,
            woken_ns: 0,
            waker_stack: None,
            labels: ThreadLabels::default(),
            is_walked: false,
            kernel_frames: &sample.kernel_frames,
            user_frames: &[],
            context: sample.context(),
        }));
    }

    fn deliver_sideband(
        &mut self,
        time_ns: u64,
        body: &SidebandBody,
        handler: &mut dyn FnMut(Event<'_>),
    ) {
        match body {
            SidebandBody::Mapped(mapping) => handler(mapping.to_event(time_ns)),
            &SidebandBody::Lost { records } => {
                self.counters.lost += records;
                handler(Event::SidebandLost { records });
            }
            // Names come as records of their own here.
            SidebandBody::Exec { .. } => {}
        }
    }
}

/// The threads of a process; none of one that has ended.
fn threads_of(pid: u32) -> Vec<u32> {
    let Ok(entries) = fs::read_dir(format!("/proc/{pid}/task")) else {
        return Vec::new();
    };
    let names = entries.filter_map(|entry| entry.ok()?.file_name().into_string().ok());
    names.filter_map(|name| name.parse().ok()).collect()
}

fn is_forbidden(error: &io::Error) -> bool {
    matches!(error.raw_os_error(), Some(libc::EACCES | libc::EPERM))
}

fn refusal(source: io::Error, pid: u32, cpu: u32) -> Error {
    if !is_forbidden(&source) {
        let event = "cpu-clock";
        return Error::PerfEvent { event, cpu, source };
    }
    match host::perf_event_paranoid() {
        // Above 2 are levels of distributions.
        Some(level) if level > 2 => Error::PerfParanoid { level },
        _ => Error::NotOurs { pid },
    }
}
