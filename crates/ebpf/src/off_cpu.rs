//! The off-CPU programs: attached to every switch, and run over all threads on request.

use crate::bpf_map::BpfMap;
use crate::{Error, loader};
use libbpf_rs::{Iter, IterOpts, Link, Object};
use std::io::{self, Read};

const SWITCH: &str = "off_cpu_switch";
const VISIT: &str = "off_cpu_visit";

const VISIT_START: u32 = 1;
const VISIT_SAMPLE: u32 = 2;

/// `struct visit` of bpf/off_cpu.h.
#[derive(Clone, Copy)]
#[repr(C)]
struct Visit {
    mode: u32,
    reserved: u32,
    time_ns: u64,
}

/// Counts time off CPU until it is dropped.
#[derive(Debug)]
pub(crate) struct OffCpu {
    #[expect(dead_code, reason = "held: the program runs until it is dropped")]
    switches: Link,
    threads: Link,
    visits: BpfMap,
}

// === impl OffCpu ===

impl OffCpu {
    pub(crate) fn attach(object: &Object) -> Result<OffCpu, Error> {
        let failed = |program| move |source| Error::Attach { program, source };
        let threads = loader::program(object, VISIT).attach_iter_with_opts(IterOpts::None);
        let switches = loader::program(object, SWITCH).attach_trace();
        Ok(OffCpu {
            switches: switches.map_err(failed(SWITCH))?,
            threads: threads.map_err(failed(VISIT))?,
            visits: loader::map(object, "visits")?,
        })
    }

    /// Time off CPU counts from `time_ns` on.
    pub(crate) fn start(&self, time_ns: u64) -> Result<(), Error> {
        self.visit(VISIT_START, time_ns).map(|_| ())
    }

    /// What is off CPU gives samples of its time up to `time_ns`; how many threads found no room for theirs.
    pub(crate) fn sample(&self, time_ns: u64) -> Result<usize, Error> {
        self.visit(VISIT_SAMPLE, time_ns)
    }

    fn visit(&self, mode: u32, time_ns: u64) -> Result<usize, Error> {
        let visit = Visit {
            mode,
            reserved: 0,
            time_ns,
        };
        self.visits.update(0_u32, visit)?;
        let failed = Error::system("visit all threads");
        let mut threads = match Iter::new(&self.threads) {
            Ok(threads) => threads,
            Err(error) => return Err(failed(io::Error::other(error))),
        };
        let mut output = Vec::new();
        match threads.read_to_end(&mut output) {
            Ok(bytes) => Ok(bytes),
            Err(error) => Err(failed(error)),
        }
    }
}
