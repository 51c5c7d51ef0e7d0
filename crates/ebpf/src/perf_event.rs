//! perf_event_open(2), for the events we use.

use crate::Error;
use libbpf_rs::libbpf_sys;
use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};

/// _IO('$', 0) of linux/perf_event.h, which libbpf does not have.
const PERF_EVENT_IOC_ENABLE: libc::c_ulong = 0x2400;

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
/// [`Error::Event`] where the CPU has no such counter, [`Error::MissingCapability`], [`Error::PerfEvent`].
pub(crate) fn open_counter(
    name: &'static str,
    event_type: u32,
    config: u64,
    rate_hz: Option<u32>,
    cpu: u32,
) -> Result<OwnedFd, Error> {
    let mut attributes = attributes(0);
    attributes.type_ = event_type;
    attributes.config = config;
    attributes.set_disabled(1);
    attributes.set_exclude_idle(1);
    match rate_hz {
        Some(rate_hz) => {
            attributes.set_freq(1);
            attributes.__bindgen_anon_1.sample_freq = rate_hz.into();
        }
        None => attributes.__bindgen_anon_1.sample_period = 1,
    }
    open(&attributes, cpu, name).map_err(|error| match error {
        Error::PerfEvent { source, .. } if is_unsupported(&source) => Error::Event {
            event: name.to_owned(),
            reason: "this machine has no such counter; virtual machines often have none at all"
                .to_owned(),
        },
        other => other,
    })
}

fn is_unsupported(error: &io::Error) -> bool {
    let codes = [libc::ENOENT, libc::EOPNOTSUPP, libc::ENODEV];
    error
        .raw_os_error()
        .is_some_and(|code| codes.contains(&code))
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
    let no_group: libc::c_int = -1;
    // SAFETY: the attributes live through the call and carry their size.
    let file = unsafe {
        libc::syscall(
            libc::SYS_perf_event_open,
            std::ptr::from_ref(attributes),
            every_process,
            cpu as libc::c_int,
            no_group,
            libc::c_ulong::from(libbpf_sys::PERF_FLAG_FD_CLOEXEC),
        )
    };
    if file < 0 {
        let source = io::Error::last_os_error();
        return Err(match source.raw_os_error() {
            Some(libc::EACCES | libc::EPERM) => Error::MissingCapability {
                capability: "CAP_PERFMON",
                action: "observe all processes",
            },
            _ => Error::PerfEvent { event, cpu, source },
        });
    }
    // SAFETY: a descriptor that the call above has just opened for us.
    Ok(unsafe { OwnedFd::from_raw_fd(file as i32) })
}
