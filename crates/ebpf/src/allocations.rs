//! The programs of sampled allocations: attached to the functions that tell of them.

use crate::Error;
use crate::event::Event;
use crate::loader::{self, MessageCapture};
use crate::options::AllocationProbes;
use crate::record::FreeRecord;
use libbpf_rs::{ErrorKind, Link, Object, UprobeOpts};

const SAMPLED: &str = "alloc_sampled";
const FREED: &str = "alloc_freed";

/// Every process, as far as it has mapped the file.
const ALL_PROCESSES: i32 = -1;

/// Ends before begins: an allocation that is seen to begin is seen to end.
pub(crate) fn attach(object: &Object, probes: &[AllocationProbes]) -> Result<Vec<Link>, Error> {
    // What cannot be attached is our error to tell, not libbpf's.
    let _messages = MessageCapture::start();
    let mut links = Vec::new();
    for probes in probes {
        for (program, symbol) in [(FREED, probes.freed), (SAMPLED, probes.sampled)] {
            let options = UprobeOpts {
                func_name: Some(symbol.to_owned()),
                ..UprobeOpts::default()
            };
            let program = loader::program(object, program);
            let link = program.attach_uprobe_with_opts(ALL_PROCESSES, &probes.file, 0, options);
            links.push(link.map_err(|source| match source.kind() {
                ErrorKind::PermissionDenied => Error::ProbesForbidden,
                _ => Error::Probe {
                    symbol,
                    file: probes.file.clone(),
                    source,
                },
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
