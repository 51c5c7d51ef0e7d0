//! Events that somebody names: tracepoints, functions of programs, counters of the kernel and the CPU.

use crate::loader::MessageCapture;
use crate::{Error, loader, perf_event};
use libbpf_rs::{Link, Object, PerfEventOpts, RawTracepointOpts, UprobeOpts};
use std::fmt;
use std::os::fd::{AsRawFd, IntoRawFd};
use std::path::{Path, PathBuf};
use std::str::FromStr;

/// As many as a cookie can tell apart, and more than anybody reads at once.
pub const MOST_EXPLICIT_EVENTS: usize = 16;

const COOKIE_IS_EXIT: u64 = 1 << 8;
const COOKIE_CALL_SHIFT: u32 = 16;

/// Counters of `perf_event_open(2)`: name, type, number, as `perf list` has them.
const COUNTERS: [(&str, u32, u64); 15] = [
    ("cycles", 0, 0),
    ("instructions", 0, 1),
    ("cache-references", 0, 2),
    ("cache-misses", 0, 3),
    ("branches", 0, 4),
    ("branch-misses", 0, 5),
    ("bus-cycles", 0, 6),
    ("ref-cycles", 0, 9),
    ("task-clock", 1, 1),
    ("page-faults", 1, 2),
    ("context-switches", 1, 3),
    ("cpu-migrations", 1, 4),
    ("minor-faults", 1, 5),
    ("major-faults", 1, 6),
    ("alignment-faults", 1, 7),
];

/// Counters of which there are so many that the kernel chooses how many make a sample.
const HARDWARE: u32 = 0;
const TASK_CLOCK: u64 = 1;

/// An event that somebody names. Each time that it comes is a sample; of hardware counters so many that there
/// are as many samples a second as of CPU time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ExplicitEvent {
    /// `tracepoint:SUBSYSTEM:NAME`, as in `perf list`. That of a system call is `syscalls:sys_enter_NAME` or
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
    /// A counter, `cycles` for one.
    Counter {
        /// As `perf list` has it.
        name: &'static str,
        /// `perf_event_attr.type`.
        event_type: u32,
        /// `perf_event_attr.config`.
        config: u64,
    },
}

/// Why a name is none of an event.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "{given:?} is no event: name tracepoint:SUBSYSTEM:NAME, uprobe:PATH:FUNCTION or one of {counters}"
)]
pub struct ExplicitEventError {
    given: String,
    counters: String,
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
        let counter = COUNTERS.iter().find(|(name, ..)| *name == text);
        if let Some(&(name, event_type, config)) = counter {
            return Ok(ExplicitEvent::Counter {
                name,
                event_type,
                config,
            });
        }
        let refused = || ExplicitEventError {
            given: text.to_owned(),
            counters: COUNTERS.map(|(name, ..)| name).join(", "),
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
    /// As it was given.
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ExplicitEvent::Tracepoint { subsystem, name } => {
                write!(formatter, "tracepoint:{subsystem}:{name}")
            }
            ExplicitEvent::Function { path, function } => {
                write!(formatter, "uprobe:{}:{function}", path.display())
            }
            ExplicitEvent::Counter { name, .. } => formatter.write_str(name),
        }
    }
}

impl ExplicitEvent {
    /// The name in a profile type, whose parts stand between colons: `sys_enter_openat`, `libc.so.6/malloc`.
    pub fn short_name(&self) -> String {
        match self {
            ExplicitEvent::Tracepoint { name, .. } => name.clone(),
            ExplicitEvent::Function { path, function } => {
                let file = path.file_name().unwrap_or_default().to_string_lossy();
                format!("{file}/{function}").replace(':', "_")
            }
            ExplicitEvent::Counter { name, .. } => (*name).to_owned(),
        }
    }

    fn refused(&self, reason: impl fmt::Display) -> Error {
        Error::Event {
            event: self.to_string(),
            reason: reason.to_string(),
        }
    }

    fn function_refused(&self, path: &Path, source: &libbpf_rs::Error) -> Error {
        if !crate::host::is_there(path) {
            return self.refused(format_args!("there is no file {}", path.display()));
        }
        match source.kind() {
            libbpf_rs::ErrorKind::NotFound => self.refused("the file has no such function"),
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
            .map_err(|()| self.refused(format_args!("there is no system call {call:?}")))?;
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
        for (cookie, event) in (0..).zip(events) {
            match event {
                ExplicitEvent::Tracepoint { name, .. } => {
                    links.push(attach_tracepoint(object, event, name, cookie)?);
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
                ExplicitEvent::Counter {
                    name,
                    event_type,
                    config,
                } => {
                    let rate_hz = is_frequent(*event_type, *config).then_some(rate_hz);
                    for &cpu in cpus {
                        let counter =
                            perf_event::open_counter(name, *event_type, *config, rate_hz, cpu)?;
                        let options = PerfEventOpts {
                            cookie,
                            ..PerfEventOpts::default()
                        };
                        let link = loader::program(object, "explicit_counter")
                            .attach_perf_event_with_opts(counter.as_raw_fd(), options)
                            .map_err(|source| event.refused(source))?;
                        // The link closes the event when it is dropped.
                        let _ = counter.into_raw_fd();
                        links.push(link);
                    }
                }
            }
        }
        Ok(ExplicitEvents { links })
    }
}

fn is_frequent(event_type: u32, config: u64) -> bool {
    event_type == HARDWARE || config == TASK_CLOCK
}

fn attach_tracepoint(
    object: &Object,
    event: &ExplicitEvent,
    name: &str,
    cookie: u64,
) -> Result<Link, Error> {
    let (raw, of_call) = event.raw_tracepoint(name)?;
    let options = RawTracepointOpts {
        cookie: cookie | of_call,
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
        ] {
            let error = text.parse::<ExplicitEvent>().expect_err(text);
            assert!(error.to_string().contains("tracepoint:SUBSYSTEM:NAME"));
        }
    }

    #[test]
    fn system_calls_are_told_by_their_numbers() {
        let event: ExplicitEvent = "tracepoint:syscalls:sys_exit_openat".parse().expect("one");
        let (raw, cookie) = event.raw_tracepoint("sys_exit_openat").expect("known");
        assert_eq!(raw, "sys_exit");
        assert_eq!(cookie, COOKIE_IS_EXIT | (libc::SYS_openat as u64 + 1) << 16);
        let error = event.raw_tracepoint("sys_enter_opennat").expect_err("none");
        assert!(error.to_string().contains("opennat"), "{error}");
    }
}
