//! The programs of sampled allocations: attached to the functions that tell of them.

use crate::Error;
use crate::event::Event;
use crate::loader::{self, MessageCapture};
use crate::options::AllocationProbes;
use crate::record::FreeRecord;
use libbpf_rs::btf::types::Func;
use libbpf_rs::{ErrorKind, Link, Object, ProgramMut, UprobeMultiOpts, UprobeOpts};
use std::os::fd::AsRawFd;
use std::path::{Path, PathBuf};

pub(crate) const SAMPLED: &str = "alloc_sampled";
pub(crate) const FREED: &str = "alloc_freed";

/// Every process, as far as it has mapped the file.
const ALL_PROCESSES: i32 = -1;

/// What of the kernel attaches programs to functions without perf events, since Linux 6.6.
const LINK: &str = "bpf_uprobe_multi_link_attach";

/// A library that is watched: until this is dropped its calls are samples, of every process that is wanted.
#[derive(Debug)]
pub struct AllocationWatch {
    #[expect(dead_code, reason = "held: the programs run until it is dropped")]
    links: [Link; 2],
}

/// How programs are attached to functions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FunctionLink {
    /// By a link of BPF's own, which takes no more than loading the programs.
    Bpf,
    /// By perf events, which are for CAP_SYS_ADMIN alone.
    PerfEvent,
}

// === impl FunctionLink ===

impl FunctionLink {
    /// The best that this kernel has.
    pub(crate) fn of_host() -> FunctionLink {
        let types = libbpf_rs::btf::Btf::from_vmlinux();
        match types.is_ok_and(|types| types.type_by_name::<Func<'_>>(LINK).is_some()) {
            true => FunctionLink::Bpf,
            false => FunctionLink::PerfEvent,
        }
    }

    fn attach(
        self,
        program: &ProgramMut<'_>,
        file: &Path,
        offset: usize,
    ) -> libbpf_rs::Result<Link> {
        match self {
            FunctionLink::Bpf => {
                let options = UprobeMultiOpts {
                    offsets: vec![offset],
                    ..UprobeMultiOpts::default()
                };
                program.attach_uprobe_multi_with_opts(ALL_PROCESSES, file, "", options)
            }
            FunctionLink::PerfEvent => {
                let options = UprobeOpts::default();
                program.attach_uprobe_with_opts(ALL_PROCESSES, file, offset, options)
            }
        }
    }
}

/// Ends before begins: an allocation that is seen to begin is seen to end.
///
/// # Errors
/// [`Error::ProbesForbidden`], [`Error::Probe`].
pub(crate) fn watch(
    object: &Object,
    link: FunctionLink,
    probes: &AllocationProbes,
) -> Result<AllocationWatch, Error> {
    // What cannot be attached is our error to tell, not libbpf's.
    let _messages = MessageCapture::start();
    // The kernel finds the open file by it, whatever path it has and in whichever mount namespace.
    let file = PathBuf::from(format!("/proc/self/fd/{}", probes.file.as_raw_fd()));
    let attach = |name, offset: u64| {
        let program = loader::program(object, name);
        let place = usize::try_from(offset).unwrap_or(usize::MAX);
        let attached = link.attach(&program, &file, place);
        attached.map_err(|source| match source.kind() {
            ErrorKind::PermissionDenied => Error::ProbesForbidden,
            _ => Error::Probe { offset, source },
        })
    };
    let freed = attach(FREED, probes.freed)?;
    let sampled = attach(SAMPLED, probes.sampled)?;
    Ok(AllocationWatch {
        links: [freed, sampled],
    })
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
