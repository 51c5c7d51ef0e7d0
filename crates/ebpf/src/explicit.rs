//! Events that somebody names: tracepoints, functions of programs, counters of the kernel and the CPU.

use crate::loader::MessageCapture;
use crate::perf_counter::{self, CounterSpace, PerfCounter};
use crate::tracefs::Membership;
use crate::{Error, loader, perf_event, tracefs};
use libbpf_rs::btf::Btf;
use libbpf_rs::btf::types::Struct;
use libbpf_rs::{Link, Object, PerfEventOpts, RawTracepointOpts, UprobeOpts};
use std::ffi::OsStr;
use std::fmt;
use std::os::fd::{AsRawFd, IntoRawFd};
use std::path::{Path, PathBuf};
use std::str::FromStr;

/// As many as a cookie can tell apart, and more than anybody reads at once.
pub const MOST_EXPLICIT_EVENTS: usize = 16;

const COOKIE_IS_EXIT: u64 = 1 << 8;
const COOKIE_CALL_SHIFT: u32 = 16;

/// What a name that stands alone before a colon is not: a subsystem of tracepoints.
const OTHER_KINDS: [&str; 4] = ["tracepoint", "uprobe", "kprobe", "usdt"];

/// An event that somebody names. Each time that it comes is a sample; of hardware counters so many that there
/// are as many samples a second as of CPU time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ExplicitEvent {
    /// `tracepoint:SUBSYSTEM:NAME`, or `SUBSYSTEM:NAME` as in `perf list`. That of a system call is `syscalls:sys_enter_NAME` or
    /// `syscalls:sys_exit_NAME`.
    Tracepoint {
        /// The kernel's subsystem; names are unique without it.
        subsystem: String,
        /// The tracepoint's name.
        name: String,
    },
    /// `uprobe:PATH:FUNCTION`: calls of a function of a program or library.
    Function {
        /// The file that has it.
        path: PathBuf,
        /// The function, as in the file's symbol table.
        function: String,
    },
    /// A counter, `cycles` for one, or `cycles:u` of programs and `cycles:k` of the kernel alone.
    Counter(PerfCounter),
}

/// Why a name is none of an event.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ExplicitEventError {
    /// Nothing has this name.
    #[error(
        "{given:?} is no event: name tracepoint:SUBSYSTEM:NAME, uprobe:PATH:FUNCTION or one of {}, {}",
        perf_counter::names(),
        perf_counter::OTHER_NAMES
    )]
    Unknown {
        /// The name as given.
        given: String,
    },
    /// A counter with a modifier of perf's that has no meaning here.
    #[error(
        "{given:?} has a modifier that is not known: behind a counter stands :u (in programs) or :k (in the kernel)"
    )]
    Modifier {
        /// The name as given.
        given: String,
    },
}

/// Samples named events until it is dropped.
#[derive(Debug)]
pub(crate) struct ExplicitEvents {
    #[expect(dead_code, reason = "held: the programs run until they are dropped")]
    links: Vec<Link>,
}

// === impl ExplicitEvent ===

impl FromStr for ExplicitEvent {
    type Err = ExplicitEventError;

    fn from_str(text: &str) -> Result<ExplicitEvent, ExplicitEventError> {
        if let Some(counter) = PerfCounter::find(text) {
            return Ok(ExplicitEvent::Counter(counter));
        }
        if let Some((counter, modifiers)) = counter_with_modifiers(text) {
            let space = CounterSpace::of_modifiers(modifiers);
            let space = space.ok_or_else(|| ExplicitEventError::Modifier {
                given: text.to_owned(),
            })?;
            return Ok(ExplicitEvent::Counter(PerfCounter { space, ..counter }));
        }
        if let Some((subsystem, name)) = tracepoint_of_perf(text) {
            return Ok(ExplicitEvent::Tracepoint {
                subsystem: subsystem.to_owned(),
                name: name.to_owned(),
            });
        }
        let refused = || ExplicitEventError::Unknown {
            given: text.to_owned(),
        };
        let (kind, rest) = text.split_once(':').ok_or_else(refused)?;
        // A path may have a colon in it, a function of C++ or Rust two of them: the symbol table's names have none.
        let (first, second) = rest.rsplit_once(':').ok_or_else(refused)?;
        if first.is_empty() || second.is_empty() {
            return Err(refused());
        }
        match kind {
            "tracepoint" => Ok(ExplicitEvent::Tracepoint {
                subsystem: first.to_owned(),
                name: second.to_owned(),
            }),
            "uprobe" => Ok(ExplicitEvent::Function {
                path: first.into(),
                function: second.to_owned(),
            }),
            _ => Err(refused()),
        }
    }
}

impl fmt::Display for ExplicitEvent {
    /// As it can be given.
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ExplicitEvent::Tracepoint { subsystem, name } => {
                write!(formatter, "tracepoint:{subsystem}:{name}")
            }
            ExplicitEvent::Function { path, function } => {
                write!(formatter, "uprobe:{}:{function}", path.display())
            }
            ExplicitEvent::Counter(counter) => {
                formatter.write_str(&counter.name)?;
                match counter.space.modifier() {
                    Some(modifier) => write!(formatter, ":{modifier}"),
                    None => Ok(()),
                }
            }
        }
    }
}

impl ExplicitEvent {
    /// The name in a profile type, whose parts stand between colons: `sys_enter_openat`, `libc.so.6/malloc`, `cycles_u`.
    pub fn short_name(&self) -> String {
        match self {
            ExplicitEvent::Tracepoint { name, .. } => name.clone(),
            ExplicitEvent::Function { path, function } => {
                let file = path.file_name().unwrap_or_default().to_string_lossy();
                format!("{file}/{function}").replace(':', "_")
            }
            ExplicitEvent::Counter(_) => self.to_string().replace(':', "_"),
        }
    }

    fn refused(&self, reason: impl fmt::Display) -> Error {
        Error::Event {
            event: self.to_string(),
            reason: reason.to_string(),
        }
    }

    fn not_there(&self, reason: impl fmt::Display) -> Error {
        Error::NoSuchEvent {
            event: self.to_string(),
            reason: reason.to_string(),
        }
    }

    fn function_refused(&self, path: &Path, source: &libbpf_rs::Error) -> Error {
        if !crate::host::is_there(path) {
            return self.not_there(format_args!("there is no file {}", path.display()));
        }
        match source.kind() {
            libbpf_rs::ErrorKind::NotFound => self.not_there("the file has no such function"),
            libbpf_rs::ErrorKind::PermissionDenied => Error::ProbesForbidden,
            _ => self.refused(source),
        }
    }

    /// The tracepoint that is attached to, and what its cookie says besides.
    fn raw_tracepoint<'a>(&self, name: &'a str) -> Result<(&'a str, u64), Error> {
        let (raw, call, is_exit) = if let Some(call) = name.strip_prefix("sys_enter_") {
            ("sys_enter", call, 0)
        } else if let Some(call) = name.strip_prefix("sys_exit_") {
            ("sys_exit", call, COOKIE_IS_EXIT)
        } else {
            return Ok((name, 0));
        };
        let call: syscalls::Sysno = call
            .parse()
            .map_err(|()| self.not_there(format_args!("there is no system call {call:?}")))?;
        let number = call.id() as u64 + 1;
        Ok((raw, is_exit | number << COOKIE_CALL_SHIFT))
    }
}

// === impl ExplicitEvents ===

impl ExplicitEvents {
    /// `rate_hz` is that of hardware counters, on each CPU of `cpus`.
    pub(crate) fn attach(
        object: &Object,
        events: &[ExplicitEvent],
        rate_hz: u32,
        cpus: &[u32],
    ) -> Result<ExplicitEvents, Error> {
        // What cannot be attached is our error to tell, not libbpf's.
        let _messages = MessageCapture::start();
        let mut links = Vec::new();
        let mut has_tracepoint = false;
        for (cookie, event) in (0..).zip(events) {
            match event {
                ExplicitEvent::Tracepoint { subsystem, name } => {
                    let membership = tracefs::membership(subsystem, name);
                    if let Membership::No(reason) = membership {
                        return Err(event.not_there(reason));
                    }
                    let is_second = std::mem::replace(&mut has_tracepoint, true);
                    links.push(attach_tracepoint(object, event, name, cookie, is_second)?);
                    if membership == Membership::Untold {
                        tracing::warn!(
                            "the tracepoint {name} is recorded, but nothing tells whether it is of {subsystem}: tracefs \
                             is not mounted on /sys/kernel/tracing, or has no event of that name"
                        );
                    }
                }
                ExplicitEvent::Function { path, function } => {
                    let options = UprobeOpts {
                        cookie,
                        func_name: Some(function.clone()),
                        ..UprobeOpts::default()
                    };
                    let every_process = -1;
                    let program = loader::program(object, "explicit_function");
                    let link = program.attach_uprobe_with_opts(every_process, path, 0, options);
                    links.push(link.map_err(|source| event.function_refused(path, &source))?);
                }
                ExplicitEvent::Counter(counter) => {
                    let rate_hz = counter.is_frequent().then_some(rate_hz);
                    for &cpu in cpus {
                        let file = perf_event::open_counter(counter, rate_hz, cpu)?;
                        let options = PerfEventOpts {
                            cookie,
                            ..PerfEventOpts::default()
                        };
                        let link = loader::program(object, "explicit_counter")
                            .attach_perf_event_with_opts(file.as_raw_fd(), options)
                            .map_err(|source| event.refused(source))?;
                        // The link closes the event when it is dropped.
                        let _ = file.into_raw_fd();
                        links.push(link);
                    }
                }
            }
        }
        Ok(ExplicitEvents { links })
    }
}

/// `cycles:u`: a counter, and what stands behind its name.
fn counter_with_modifiers(text: &str) -> Option<(PerfCounter, &str)> {
    let (name, modifiers) = text.split_once(':')?;
    Some((PerfCounter::find(name)?, modifiers))
}

/// `sched:sched_switch`, as perf names it.
fn tracepoint_of_perf(text: &str) -> Option<(&str, &str)> {
    let (subsystem, name) = text.split_once(':')?;
    let is_word = |text: &str| {
        let mut bytes = text.bytes();
        !text.is_empty() && bytes.all(|byte| byte.is_ascii_alphanumeric() || b"_-".contains(&byte))
    };
    let is_other = OTHER_KINDS.contains(&subsystem);
    (is_word(subsystem) && is_word(name) && !is_other).then_some((subsystem, name))
}

/// What the cookie of the first tracepoint among `events` would be; 0 where there is none.
///
/// # Errors
/// [`Error::Event`] for a system call that there is not.
pub(crate) fn first_tracepoint_cookie(events: &[ExplicitEvent]) -> Result<u64, Error> {
    let mut tracepoints = (0..).zip(events).filter_map(|(cookie, event)| match event {
        ExplicitEvent::Tracepoint { name, .. } => Some((cookie, event, name)),
        _ => None,
    });
    let Some((cookie, event, name)) = tracepoints.next() else {
        return Ok(0);
    };
    event
        .raw_tracepoint(name)
        .map(|(_, of_call)| cookie | of_call)
}

/// Whether the link of a tracepoint tells its program which one it is: since Linux 6.10.
fn tracepoints_have_cookies() -> bool {
    let Ok(types) = Btf::from_vmlinux() else {
        return false;
    };
    let link = types.type_by_name::<Struct<'_>>("bpf_raw_tp_link");
    let is_cookie = |name: Option<&OsStr>| name == Some(OsStr::new("cookie"));
    link.is_some_and(|link| link.iter().any(|member| is_cookie(member.name)))
}

fn attach_tracepoint(
    object: &Object,
    event: &ExplicitEvent,
    name: &str,
    cookie: u64,
    is_second: bool,
) -> Result<Link, Error> {
    let (raw, of_call) = event.raw_tracepoint(name)?;
    let has_cookie = tracepoints_have_cookies();
    if is_second && !has_cookie {
        return Err(event.refused("before Linux 6.10 a recording has one tracepoint at most"));
    }
    let options = RawTracepointOpts {
        // Where there is none the program has it by its settings.
        cookie: if has_cookie { cookie | of_call } else { 0 },
        ..RawTracepointOpts::default()
    };
    let program = loader::program(object, "explicit_tracepoint");
    let link = program.attach_raw_tracepoint_with_opts(raw, options);
    link.map_err(|source| match source.kind() {
        libbpf_rs::ErrorKind::NotFound => event.refused("this kernel has no such tracepoint"),
        _ => event.refused(source),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_read_as_they_are_written() {
        let texts = [
            "tracepoint:syscalls:sys_enter_openat",
            "uprobe:/usr/lib/a:b/libc.so.6:malloc",
            "branch-misses",
            "L1-dcache-load-misses",
            "r00c0",
            "cycles:u",
            "cpu-clock:k",
        ];
        for text in texts {
            let event: ExplicitEvent = text.parse().expect(text);
            assert_eq!(event.to_string(), text);
            assert!(!event.short_name().contains(':'), "{}", event.short_name());
        }
        for text in [
            "",
            "cycle",
            "tracepoint:sched",
            "uprobe:/bin/ls:",
            "kprobe:a:b",
            "sched:",
            "/bin/ls:main",
        ] {
            let error = text.parse::<ExplicitEvent>().expect_err(text);
            assert!(error.to_string().contains("tracepoint:SUBSYSTEM:NAME"));
        }
        for text in ["cycles:", "cycles:pp", "instructions:uG", "r00c0:k:u"] {
            let error = text.parse::<ExplicitEvent>().expect_err(text);
            let told = error.to_string();
            assert!(
                told.contains(text) && told.contains(":u (in programs)"),
                "{told}"
            );
        }
        let both: ExplicitEvent = "cycles:uk".parse().expect("both");
        assert_eq!(both, "cycles".parse().expect("a counter"));
    }

    #[test]
    fn tracepoints_may_be_named_as_perf_does() {
        let event: ExplicitEvent = "sched:sched_switch".parse().expect("a tracepoint");
        assert_eq!(event, "tracepoint:sched:sched_switch".parse().expect("one"));
        assert_eq!(event.short_name(), "sched_switch");
    }

    #[test]
    fn system_calls_are_told_by_their_numbers() {
        let event: ExplicitEvent = "tracepoint:syscalls:sys_exit_openat".parse().expect("one");
        let (raw, cookie) = event.raw_tracepoint("sys_exit_openat").expect("known");
        assert_eq!(raw, "sys_exit");
        assert_eq!(cookie, COOKIE_IS_EXIT | (libc::SYS_openat as u64 + 1) << 16);
        let error = event.raw_tracepoint("sys_enter_opennat").expect_err("none");
        assert!(error.to_string().contains("opennat"), "{error}");
        assert!(!error.is_permission_or_kernel(), "{error}");
    }
}
