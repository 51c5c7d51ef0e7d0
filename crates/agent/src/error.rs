//! What can go wrong while observing a host.

use std::io;
use std::path::PathBuf;

use crate::allocations::UnseenAllocations;
use crate::go_heaps::GoHeapError;
use crate::kinds::Kind;

/// Why the agent could not start, or why a recording has no result.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum AgentError {
    /// The kernel refused to be observed; the message says what to do.
    #[error(transparent)]
    Kernel(#[from] candela_ebpf::Error),
    /// Processes could be sampled neither by BPF nor without it.
    #[error("{bpf}; without BPF: {perf}")]
    NeitherWay {
        /// Why not by BPF.
        bpf: Box<AgentError>,
        /// Why not by perf events alone.
        perf: Box<AgentError>,
    },
    /// What is sampled by perf events alone has one rate.
    #[error(
        "perf events of own processes are not sampled less often: give agent.rate, or what BPF needs"
    )]
    FixedPace,
    /// A recording was stopped while unwind tables were built for it.
    #[error("stopped before the recording began")]
    StoppedEarly,
    /// A recording was stopped because nobody wants it any more.
    #[error("stopped and thrown away")]
    Discarded,
    /// All processes of a recording ended while unwind tables were built for it.
    #[error(
        "what was to be recorded ended before the recording began; record its start with `-- CMD`"
    )]
    EndedEarly,
    /// A thread of the kernel has no program whose stack could be taken.
    #[error(
        "process {pid} ({name}) is a thread of the kernel and runs no program; its stack is in /proc/{pid}/stack"
    )]
    KernelThread {
        /// Its id.
        pid: u32,
        /// Its name.
        name: String,
    },
    /// The id is that of a thread.
    #[error("{tid} is a thread of process {process}; give -p {process}")]
    NotAProcess {
        /// The id as given.
        tid: u32,
        /// Its process.
        process: u32,
    },
    /// A configured service rule has no name.
    #[error("a service rule has an empty service name; give it one")]
    EmptyServiceName,
    /// A configured service rule has a pattern that does not parse.
    #[error(
        "service rule pattern {pattern:?} is no regular expression: {}",
        in_one_line(source)
    )]
    ServicePattern {
        /// The pattern as given.
        pattern: String,
        /// What the parser stumbled over.
        source: Box<regex::Error>,
    },
    /// The socket of a container runtime without protocol or path.
    #[error("{given:?} is no socket of a container runtime: write docker:PATH or cri:PATH")]
    ContainerSocket {
        /// As given.
        given: String,
    },
    /// The name of a node that none can have.
    #[error("{given:?} is no name of a node; give the pod its spec.nodeName, or unset it")]
    NodeName {
        /// As given.
        given: String,
    },
    /// An option is out of its range.
    #[error("{name} {value} is out of range; choose {range}")]
    Option {
        /// The option.
        name: &'static str,
        /// The value as given.
        value: String,
        /// What is allowed.
        range: &'static str,
    },
    /// Nothing is to be sampled.
    #[error(
        "no kind of profile is chosen; name one or more of {}", Kind::ALL.map(Kind::name).join(", ")
    )]
    NoKinds,
    /// Neither sampling nor scraping is wanted.
    #[error("the agent is to sample nothing and has nothing to scrape; turn one of both on")]
    NothingToDo,
    /// A scrape job that cannot be run.
    #[error("scrape: {0}")]
    Scrape(#[from] crate::scrape::ScrapeConfigError),
    /// The server's address is no URL.
    #[error(
        "server address {given:?} is not usable: {reason}; give one like http://127.0.0.1:4040"
    )]
    Endpoint {
        /// The address as given.
        given: String,
        /// Why.
        reason: String,
    },
    /// The credentials cannot be sent in a header.
    #[error("the token has characters that no HTTP header can hold; check the token file")]
    Token,
    /// The spool directory cannot be used.
    #[error("cannot use the spool directory {}: {source}", path.display())]
    Spool {
        /// The directory.
        path: PathBuf,
        /// The system's reason.
        source: io::Error,
    },
    /// The library that samples allocations could not be written to a file.
    #[error(
        "cannot put the library that samples allocations into {}: {source}; name another directory with TMPDIR", directory.display()
    )]
    Preload {
        /// Where it was to go.
        directory: PathBuf,
        /// The system's reason.
        source: io::Error,
    },
    /// Allocations of what runs already, without the library.
    #[error(
        "allocations of all but Go programs are sampled in the program itself, which must be started for it: \
             `candela record -e alloc -- CMD`, or start it with LD_PRELOAD={name} (`candela preload {name}` writes it) and name it with -p",
        name = candela_preload::FILE_NAME
    )]
    NotPreloaded,
    /// Allocations of a process that the library would not see either.
    #[error("process {pid} {why}")]
    UnseenAllocations {
        /// The process.
        pid: u32,
        /// Why.
        why: UnseenAllocations,
    },
    /// The heap profile of a Go program cannot be had.
    #[error("process {pid} allocates without malloc: it is a Go program, but {source}")]
    GoHeap {
        /// The process.
        pid: u32,
        /// Why.
        source: GoHeapError,
    },
    /// The program to record could not be started.
    #[error("cannot start {program}: {source}")]
    Command {
        /// The program.
        program: String,
        /// The system's reason.
        source: io::Error,
    },
    /// The system refused a thread.
    #[error("cannot start the thread {name}: {source}")]
    Thread {
        /// Its name.
        name: &'static str,
        /// The system's reason.
        source: io::Error,
    },
    /// A thread of the agent ended by a panic: a defect of ours.
    #[error("the agent's thread {name} ended unexpectedly; please report this with its log")]
    ThreadLost {
        /// Its name.
        name: &'static str,
    },
}

impl AgentError {
    /// Whether more privileges or another kernel would help (exit code 6 of the command line).
    #[must_use]
    pub fn is_permission_or_kernel(&self) -> bool {
        match self {
            Self::Kernel(error) => error.is_permission_or_kernel(),
            Self::GoHeap { source, .. } => source.is_permission(),
            Self::NeitherWay { .. } => true,
            _ => false,
        }
    }
}

/// What is wrong with a pattern, without the drawing that points at it.
fn in_one_line(error: &regex::Error) -> String {
    let text = error.to_string();
    let last = text.lines().last().unwrap_or_default();
    last.trim_start_matches("error: ").to_owned()
}

#[cfg(test)]
mod tests {
    use crate::kinds::Kinds;
    use crate::labels::ServiceRule;

    #[test]
    fn errors_are_one_line() {
        let rule = ServiceRule::new("shop").expect("a name");
        let error = rule.with_command_line("(shop").expect_err("no pattern");
        let text = error.to_string();
        assert!(
            text.ends_with("unclosed group") && text.lines().count() == 1,
            "{text}"
        );
        let text = Kinds::from([]).check().expect_err("none").to_string();
        assert!(
            text.starts_with("no kind of profile is chosen; name one or more of cpu, off-cpu,"),
            "{text}"
        );
    }
}
