//! The programs of page faults: attached to every fault, and run over all threads on request.

use crate::thread_visit::{ThreadVisitor, Visit};
use crate::{Error, loader};
use libbpf_rs::{Link, Object};

const VISIT: &str = "fault_visit";
const TRACED: [&str; 3] = ["fault_in_user", "fault_in_kernel", "fault_exit"];

/// Counts page faults until it is dropped.
#[derive(Debug)]
pub(crate) struct Faults {
    #[expect(dead_code, reason = "held: the programs run until they are dropped")]
    traced: Vec<Link>,
    threads: ThreadVisitor,
}

// === impl Faults ===

impl Faults {
    pub(crate) fn attach(object: &Object) -> Result<Faults, Error> {
        let attach = |program| {
            let link = loader::program(object, program).attach_trace();
            link.map_err(|source| Error::Attach { program, source })
        };
        Ok(Faults {
            threads: ThreadVisitor::attach(object, VISIT)?,
            traced: TRACED.into_iter().map(attach).collect::<Result<_, _>>()?,
        })
    }

    /// Samples, with the time `time_ns`, of the faults that none stands for yet; how many threads found no room
    /// for theirs.
    pub(crate) fn sample_rest(&self, time_ns: u64) -> Result<usize, Error> {
        let visit = Visit {
            mode: 0,
            reserved: 0,
            time_ns,
        };
        self.threads.visit_all(visit)
    }
}
