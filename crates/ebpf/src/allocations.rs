//! The programs of sampled allocations: attached to the functions that tell of them.

use crate::event::Event;
use crate::options::AllocationProbes;
use crate::record::FreeRecord;
use crate::{Error, loader};
use libbpf_rs::{Link, Object, UprobeOpts};

const SAMPLED: &str = "alloc_sampled";
const FREED: &str = "alloc_freed";

/// Every process, as far as it has mapped the file.
const ALL_PROCESSES: i32 = -1;

/// Ends before begins: an allocation that is seen to begin is seen to end.
pub(crate) fn attach(object: &Object, probes: &[AllocationProbes]) -> Result<Vec<Link>, Error> {
    let mut links = Vec::new();
    for probes in probes {
        for (program, symbol) in [(FREED, probes.freed), (SAMPLED, probes.sampled)] {
            let options = UprobeOpts {
                func_name: Some(symbol.to_owned()),
                ..UprobeOpts::default()
            };
            let program = loader::program(object, program);
            let link = program.attach_uprobe_with_opts(ALL_PROCESSES, &probes.file, 0, options);
            links.push(link.map_err(|source| Error::Probe {
                symbol,
                file: probes.file.clone(),
                source,
            })?);
        }
    }
    Ok(links)
}

// === impl Event ===

impl From<FreeRecord> for Event<'_> {
    fn from(record: FreeRecord) -> Self {
        Event::Freed {
            pid: record.pid,
            time_ns: record.time_ns,
            address: record.address,
            sequence: record.sequence,
        }
    }
}
