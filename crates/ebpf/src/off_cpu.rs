//! The off-CPU programs: attached to every switch, and run over all threads on request.

use crate::Error;
use crate::loader::{self, STAND_INS};
use crate::thread_visit::{ThreadVisitor, Visit};
use libbpf_rs::{Link, Object};

const SWITCH: &str = "off_cpu_switch";
const VISIT: &str = "off_cpu_visit";

const VISIT_START: u32 = 1;
const VISIT_SAMPLE: u32 = 2;
const VISIT_END: u32 = 3;

/// Counts time off CPU until it is dropped.
#[derive(Debug)]
pub(crate) struct OffCpu {
    #[expect(dead_code, reason = "held: the programs run until they are dropped")]
    links: Vec<Link>,
    threads: ThreadVisitor,
}

// === impl OffCpu ===

impl OffCpu {
    /// Without `defers` at the end of each system call and at execs, too: the kernel does not call when a thread
    /// returns to user space.
    pub(crate) fn attach(object: &Object, defers: bool) -> Result<OffCpu, Error> {
        let threads = ThreadVisitor::attach(object, VISIT)?;
        let stand_ins: &[&'static str] = match defers {
            true => &[],
            false => &STAND_INS,
        };
        let links = stand_ins.iter().chain(&[SWITCH]).map(|&program| {
            let link = loader::program(object, program).attach_trace();
            link.map_err(|source| Error::Attach { program, source })
        });
        Ok(OffCpu {
            links: links.collect::<Result<_, Error>>()?,
            threads,
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

    /// The same, and what is on its way back to user space gives its sample now, without a user stack.
    pub(crate) fn end(&self, time_ns: u64) -> Result<usize, Error> {
        self.visit(VISIT_END, time_ns)
    }

    fn visit(&self, mode: u32, time_ns: u64) -> Result<usize, Error> {
        self.threads.visit_all(Visit {
            mode,
            reserved: 0,
            time_ns,
        })
    }
}
