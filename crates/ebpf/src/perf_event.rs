//! perf_event_open(2), for the events we use.

use crate::Error;
use crate::perf_counter::{CounterSpace, PerfCounter};
use libbpf_rs::libbpf_sys;
use std::io;
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd};

/// _IO('$', 0) of linux/perf_event.h, which libbpf does not have.
const PERF_EVENT_IOC_ENABLE: libc::c_ulong = 0x2400;

/// _IO('$', 5).
const PERF_EVENT_IOC_SET_OUTPUT: libc::c_ulong = 0x2405;

/// ax, bx, cx, dx, si, di, bp, sp, ip and r8 to r15, by the numbers of asm/perf_regs.h of x86.
const USER_REGISTERS: u64 = 0xff_01ff;

/// Opens the software `cpu-clock` event of `cpu`, every `period_ns` of busy time, disabled
/// (attaching a program enables it; so does [`enable`]).
///
/// # Errors
/// [`Error::MissingCapability`], [`Error::PerfEvent`].
pub(crate) fn open_cpu_clock(cpu: u32, period_ns: u64) -> Result<OwnedFd, Error> {
    let mut attributes = attributes(libbpf_sys::PERF_COUNT_SW_CPU_CLOCK);
    attributes.__bindgen_anon_1.sample_period = period_ns;
    attributes.set_disabled(1);
    attributes.read_format = libbpf_sys::PERF_FORMAT_TOTAL_TIME_ENABLED.into();
    // Nothing runs in the idle task that a stack would explain.
    attributes.set_exclude_idle(1);
    open(&attributes, cpu, "cpu-clock")
}

/// Opens a counter of `cpu`, enabled by attaching a program: each of its events is a sample, or with `rate_hz`
/// so many a second.
///
/// # Errors
/// [`Error::Event`] where the CPU has no such counter, [`Error::MissingCapability`].
pub(crate) fn open_counter(
    counter: &PerfCounter,
    rate_hz: Option<u32>,
    cpu: u32,
) -> Result<OwnedFd, Error> {
    let mut attributes = attributes(0);
    attributes.type_ = counter.event_type;
    attributes.config = counter.config;
    attributes.set_disabled(1);
    attributes.set_exclude_idle(1);
    match counter.space {
        CounterSpace::Everywhere => {}
        CounterSpace::Programs => attributes.set_exclude_kernel(1),
        CounterSpace::Kernel => attributes.set_exclude_user(1),
    }
    match rate_hz {
        Some(rate_hz) => {
            attributes.set_freq(1);
            attributes.__bindgen_anon_1.sample_freq = rate_hz.into();
        }
        None => attributes.__bindgen_anon_1.sample_period = 1,
    }
    let refused = |reason: String| Error::Event {
        event: counter.name.to_string(),
        reason,
    };
    open(&attributes, cpu, "counter").map_err(|error| match error {
        Error::PerfEvent { source, .. } if is_unsupported(&source) => refused(
            "this machine has no such counter; virtual machines often have none at all".to_owned(),
        ),
        Error::PerfEvent { source, .. } => {
            refused(format!("perf_event_open on CPU {cpu}: {source}"))
        }
        other => other,
    })
}

fn is_unsupported(error: &io::Error) -> bool {
    let codes = [libc::ENOENT, libc::EOPNOTSUPP, libc::ENODEV];
    error
        .raw_os_error()
        .is_some_and(|code| codes.contains(&code))
}

/// What a sample of [`open_task_clock`] has, beside its thread and time.
#[derive(Clone, Copy, Debug)]
pub(crate) struct TaskClock {
    pub(crate) period_ns: u64,
    /// Bytes of its stack, a multiple of eight below 64 KiB.
    pub(crate) stack_bytes: u32,
    /// Sample it in the kernel, too, with the kernel's frames.
    pub(crate) with_kernel: bool,
    /// Only once it has replaced its program; for what is forked, which is sampled from then on.
    pub(crate) from_exec: bool,
    /// After so many bytes of records the reader wakes.
    pub(crate) wakeup_bytes: u32,
}

/// Opens the software `cpu-clock` event of a thread and of all that it starts, while they run on `cpu`, with the
/// records of their lives. Records end with pid, tid and time.
///
/// # Errors
/// [`io::Error`], for the caller knows whose thread it is.
pub(crate) fn open_task_clock(tid: u32, cpu: u32, clock: TaskClock) -> io::Result<OwnedFd> {
    let mut attributes = attributes(libbpf_sys::PERF_COUNT_SW_CPU_CLOCK);
    attributes.__bindgen_anon_1.sample_period = clock.period_ns;
    attributes.sample_type = u64::from(
        libbpf_sys::PERF_SAMPLE_TID
            | libbpf_sys::PERF_SAMPLE_TIME
            | libbpf_sys::PERF_SAMPLE_REGS_USER
            | libbpf_sys::PERF_SAMPLE_STACK_USER,
    );
    if clock.with_kernel {
        attributes.sample_type |= u64::from(libbpf_sys::PERF_SAMPLE_CALLCHAIN);
        attributes.set_exclude_callchain_user(1);
    }
    attributes.set_exclude_kernel(u64::from(!clock.with_kernel));
    attributes.set_exclude_hv(1);
    attributes.sample_regs_user = USER_REGISTERS;
    attributes.sample_stack_user = clock.stack_bytes;
    attributes.set_inherit(1);
    attributes.set_disabled(u64::from(clock.from_exec));
    attributes.set_enable_on_exec(u64::from(clock.from_exec));
    attributes.set_sample_id_all(1);
    attributes.set_mmap(1);
    attributes.set_mmap2(1);
    attributes.set_comm(1);
    attributes.set_comm_exec(1);
    attributes.set_task(1);
    attributes.set_use_clockid(1);
    attributes.clockid = libc::CLOCK_MONOTONIC;
    attributes.set_watermark(1);
    attributes.__bindgen_anon_2.wakeup_watermark = clock.wakeup_bytes;
    let tid = libc::pid_t::try_from(tid).map_err(|_| io::ErrorKind::InvalidInput)?;
    system_call(&attributes, tid, cpu)
}

/// Lets `event` write its records to the ring of another event of its CPU.
pub(crate) fn share_ring(event: &OwnedFd, of: BorrowedFd<'_>) -> io::Result<()> {
    // SAFETY: the call takes a descriptor, no pointer.
    let code = unsafe { libc::ioctl(event.as_raw_fd(), PERF_EVENT_IOC_SET_OUTPUT, of.as_raw_fd()) };
    match code {
        ..0 => Err(io::Error::last_os_error()),
        _ => Ok(()),
    }
}

/// Lets an event count that no program is attached to.
pub(crate) fn enable(event: &OwnedFd) -> io::Result<()> {
    // SAFETY: the call takes no pointer.
    let code = unsafe { libc::ioctl(event.as_raw_fd(), PERF_EVENT_IOC_ENABLE, 0) };
    match code {
        ..0 => Err(io::Error::last_os_error()),
        _ => Ok(()),
    }
}

/// How long an event has been enabled, in nanoseconds. It stands still when the event's CPU goes
/// offline, for good.
pub(crate) fn enabled_ns(event: &OwnedFd) -> io::Result<u64> {
    let mut value_and_time = [0_u64; 2];
    // SAFETY: the buffer has the bytes that are asked for; any bits are numbers.
    let bytes = unsafe {
        libc::read(
            event.as_raw_fd(),
            value_and_time.as_mut_ptr().cast(),
            size_of_val(&value_and_time),
        )
    };
    match bytes {
        ..0 => Err(io::Error::last_os_error()),
        _ => Ok(value_and_time[1]),
    }
}

/// Opens the side band of `cpu`: executable mappings and names of processes, as records.
///
/// # Errors
/// [`Error::MissingCapability`], [`Error::PerfEvent`].
pub(crate) fn open_sideband(cpu: u32, build_ids: bool) -> Result<OwnedFd, Error> {
    let mut attributes = attributes(libbpf_sys::PERF_COUNT_SW_DUMMY);
    attributes.sample_type = u64::from(libbpf_sys::PERF_SAMPLE_TID | libbpf_sys::PERF_SAMPLE_TIME);
    attributes.set_sample_id_all(1);
    attributes.set_mmap(1);
    attributes.set_mmap2(1);
    attributes.set_build_id(u64::from(build_ids));
    attributes.set_comm(1);
    attributes.set_comm_exec(1);
    // The clock of bpf_ktime_get_ns, so that records and ring buffer events can be ordered.
    attributes.set_use_clockid(1);
    attributes.clockid = libc::CLOCK_MONOTONIC;
    // Wake the reader at the first byte: tables should be there before the first sample.
    attributes.set_watermark(1);
    attributes.__bindgen_anon_2.wakeup_watermark = 1;
    open(&attributes, cpu, "dummy (side band)")
}

fn attributes(config: u32) -> libbpf_sys::perf_event_attr {
    libbpf_sys::perf_event_attr {
        type_: libbpf_sys::PERF_TYPE_SOFTWARE,
        size: size_of::<libbpf_sys::perf_event_attr>() as u32,
        config: config.into(),
        ..Default::default()
    }
}

fn open(
    attributes: &libbpf_sys::perf_event_attr,
    cpu: u32,
    event: &'static str,
) -> Result<OwnedFd, Error> {
    let every_process: libc::pid_t = -1;
    system_call(attributes, every_process, cpu).map_err(|source| match source.raw_os_error() {
        Some(libc::EACCES | libc::EPERM) => Error::MissingCapability {
            capability: "CAP_PERFMON",
            action: "observe all processes",
        },
        _ => Error::PerfEvent { event, cpu, source },
    })
}

fn system_call(
    attributes: &libbpf_sys::perf_event_attr,
    tid: libc::pid_t,
    cpu: u32,
) -> io::Result<OwnedFd> {
    let no_group: libc::c_int = -1;
    // SAFETY: the attributes live through the call and carry their size.
    let file = unsafe {
        libc::syscall(
            libc::SYS_perf_event_open,
            std::ptr::from_ref(attributes),
            tid,
            cpu as libc::c_int,
            no_group,
            libc::c_ulong::from(libbpf_sys::PERF_FLAG_FD_CLOEXEC),
        )
    };
    if file < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: a descriptor that the call above has just opened for us.
    Ok(unsafe { OwnedFd::from_raw_fd(file as i32) })
}
