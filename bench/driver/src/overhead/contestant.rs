//! What runs beside the work: our agent in several ways, `perf record`, a peer, or nothing.

use std::path::Path;
use std::process::Command;
use std::time::Duration;

use super::memory_group::MemoryGroup;
use super::memory_group::MemoryUse;
use crate::host::Bench;
use crate::process::Program;
use crate::process::measure_for;
use crate::process::output;

/// One of them.
#[derive(Clone, Debug)]
pub(crate) struct Contestant {
    pub(crate) name: String,
    how: How,
}

#[derive(Clone, Debug)]
enum How {
    Nothing,
    /// The kinds of `agent.kinds`, and samples a second.
    Agent(&'static str, u32),
    /// Arguments of `perf record`.
    Perf(&'static [&'static str]),
    /// A program and its arguments.
    Peer(Vec<String>),
}

/// A contestant at work, in a memory group of its own.
#[derive(Debug)]
pub(crate) struct Daemon {
    program: Program,
    // After the program: a group with processes cannot be removed.
    group: MemoryGroup,
}

/// What has been used since a daemon's start.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Spent {
    pub(crate) process_seconds: f64,
    /// While the kernel kept statistics of BPF programs.
    pub(crate) bpf_seconds: f64,
}

// === impl Contestant ===

impl Contestant {
    const ALL_KINDS: &str = "cpu,off-cpu,lock,runq,fault,growth,io,kernel-lock";
    /// Programs have to opt in to the last.
    const ALL_KINDS_AND_ALLOC: &str = "cpu,off-cpu,lock,runq,fault,growth,io,kernel-lock,alloc";
    /// Of row A2.
    pub(crate) const FOUR_KINDS: &str = "cpu,off-cpu,lock,fault";

    pub(crate) fn nothing() -> Self {
        Self {
            name: "nothing".to_owned(),
            how: How::Nothing,
        }
    }

    pub(crate) fn agent(kinds: &'static str, rate_hz: u32) -> Self {
        let name = match kinds {
            Self::ALL_KINDS => "everything",
            Self::ALL_KINDS_AND_ALLOC => "everything and alloc",
            kinds => kinds,
        };
        Self {
            name: format!("{name} at {rate_hz} Hz"),
            how: How::Agent(kinds, rate_hz),
        }
    }

    pub(crate) fn everything() -> Self {
        Self::agent(Self::ALL_KINDS, 19)
    }

    /// With programs that opted in to have their allocations sampled.
    pub(crate) fn everything_and_alloc() -> Self {
        Self::agent(Self::ALL_KINDS_AND_ALLOC, 19)
    }

    /// Nothing first, each kind on its own, all of them, and what others do.
    pub(crate) fn all(peer: Option<&str>) -> Vec<Self> {
        let mut all = vec![
            Self::nothing(),
            Self::agent("cpu", 19),
            Self::agent("cpu", 99),
        ];
        let alone = Self::ALL_KINDS.split(',').filter(|&kind| kind != "cpu");
        all.extend(alone.map(|kind| Self::agent(kind, 19)));
        all.push(Self::everything());
        all.push(Self::everything_and_alloc());
        all.push(Self {
            name: "perf record, frame pointers, 99 Hz".to_owned(),
            how: How::Perf(&["--call-graph", "fp"]),
        });
        all.push(Self {
            name: "perf record, dwarf, 99 Hz".to_owned(),
            how: How::Perf(&["--call-graph", "dwarf"]),
        });
        if let Some(peer) = peer {
            let words: Vec<String> = peer.split_whitespace().map(str::to_owned).collect();
            let name = words.first().map(Path::new).and_then(Path::file_name);
            all.push(Self {
                name: name.unwrap_or_default().to_string_lossy().into_owned(),
                how: How::Peer(words),
            });
        }
        all
    }

    /// `NAME=VALUE` for programs whose allocations it is to sample; the library it names is in `folder`.
    pub(crate) fn opt_in(&self, bench: &Bench, folder: &Path) -> Result<Option<String>, String> {
        if !matches!(self.how, How::Agent(Self::ALL_KINDS_AND_ALLOC, _)) {
            return Ok(None);
        }
        let mut command = Command::new(bench.binary("candela")?);
        let printed = output(command.args(["preload", "--quiet"]).arg(folder))?;
        Ok(Some(printed.trim().to_owned()))
    }

    pub(crate) fn is_nothing(&self) -> bool {
        matches!(self.how, How::Nothing)
    }

    /// Whether it is a program of others: what befalls it is told, and the rest is measured all the same.
    pub(crate) fn is_of_others(&self) -> bool {
        matches!(self.how, How::Perf(_) | How::Peer(_))
    }

    /// Starts it; our agent sends to `server`, what others write goes to `folder`. None for nothing.
    pub(crate) fn start(
        &self,
        bench: &Bench,
        folder: &Path,
        server: &str,
    ) -> Result<Option<Daemon>, String> {
        let command = match &self.how {
            How::Nothing => return Ok(None),
            How::Agent(kinds, rate_hz) => {
                let mut command = Command::new(bench.binary("candela")?);
                command
                    .args(["agent", "--rate", &rate_hz.to_string(), "--server", server])
                    .arg("--data-dir")
                    .arg(folder.join("agent"))
                    .env("CANDELA_AGENT__KINDS", kinds)
                    // What it costs is asked, not whether it samples less in time.
                    .env("CANDELA_AGENT__CPU_BUDGET", "off");
                command
            }
            How::Perf(arguments) => {
                let mut command = Command::new("perf");
                command
                    .args(["record", "-q", "-a", "-e", "cpu-clock", "-F", "99"])
                    .args(*arguments)
                    .arg("-o")
                    .arg(folder.join("perf.data"));
                command
            }
            How::Peer(words) => {
                let (program, arguments) = words.split_first().ok_or("the peer has no name")?;
                let mut command = Command::new(program);
                command.args(arguments).current_dir(folder);
                command
            }
        };
        let group = MemoryGroup::create()?;
        let program = Program::start(&mut group.enter(&command))?;
        Ok(Some(Daemon { program, group }))
    }
}

// === impl Daemon ===

impl Daemon {
    pub(crate) fn spent(&mut self) -> Result<Spent, String> {
        self.program.still_runs()?;
        Ok(Spent {
            process_seconds: self.program.cpu_seconds()?,
            bpf_seconds: self.program.bpf_sum("run_time_ns")? as f64 / 1e9,
        })
    }

    pub(crate) fn memory(&self) -> Result<MemoryUse, String> {
        self.group.memory()
    }

    /// Asks it to end, so that it does not leave its last data to the next one's time.
    pub(crate) fn end(mut self) -> Result<(), String> {
        self.program.end(Duration::from_secs(20))?;
        // Its BPF programs and maps go after a grace period of the kernel.
        measure_for(Duration::from_millis(300));
        Ok(())
    }
}

// === impl Spent ===

impl Spent {
    pub(crate) fn since(self, before: Self) -> Self {
        Self {
            process_seconds: self.process_seconds - before.process_seconds,
            bpf_seconds: self.bpf_seconds - before.bpf_seconds,
        }
    }

    pub(crate) fn seconds(self) -> f64 {
        self.process_seconds + self.bpf_seconds
    }
}
