//! The perf side band: records of new executable mappings and of execs.
//!
//! Mapping tracepoints would run on every mmap call; these records exist for executable mappings
//! only, cover the kernel's own (execve) as well as dlopen, and name the file.

use crate::Error;
use crate::event::{Event, FileIdentity, Mapped};
use crate::perf_event;
use crate::perf_ring::PerfRing;
use crate::record::{Fields, text_before_nul};
use libbpf_rs::libbpf_sys;
use std::ffi::OsStr;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::ffi::OsStrExt;

const PAGE: usize = 4096;
/// 64 KiB per CPU: some hundred mappings, read as soon as the first is written.
const DATA_BYTES: usize = 16 * PAGE;

/// The records of one CPU.
#[derive(Debug)]
pub(crate) struct Sideband {
    ring: PerfRing,
    /// Its CPU went offline: it is always "ready" and never has records.
    pub(crate) is_gone: bool,
}

/// One record, owned: records of several CPUs are put into order before they are handed on.
#[derive(Debug)]
pub(crate) struct SidebandRecord {
    pub(crate) time_ns: u64,
    pub(crate) body: SidebandBody,
}

#[derive(Debug)]
pub(crate) enum SidebandBody {
    Exec { pid: u32, comm: Vec<u8> },
    Mapped(OwnedMapping),
    Lost { records: u64 },
}

/// A new executable mapping, as [`Mapped`] tells it.
#[derive(Debug)]
pub(crate) struct OwnedMapping {
    pub(crate) pid: u32,
    start: u64,
    length: u64,
    file_offset: u64,
    file: OwnedFileIdentity,
    path: Vec<u8>,
}

#[derive(Debug)]
enum OwnedFileIdentity {
    Inode {
        major: u32,
        minor: u32,
        inode: u64,
        generation: u64,
    },
    BuildId(Vec<u8>),
}

// === impl OwnedMapping ===

impl OwnedMapping {
    pub(crate) fn to_event(&self, time_ns: u64) -> Event<'_> {
        let file = match &self.file {
            OwnedFileIdentity::BuildId(id) => FileIdentity::BuildId(id),
            &OwnedFileIdentity::Inode {
                major,
                minor,
                inode,
                generation,
            } => FileIdentity::Inode {
                major,
                minor,
                inode,
                generation,
            },
        };
        Event::Mapped(Mapped {
            pid: self.pid,
            time_ns,
            start: self.start,
            length: self.length,
            file_offset: self.file_offset,
            file,
            path: OsStr::from_bytes(&self.path),
        })
    }
}

// === impl Sideband ===

impl Sideband {
    pub(crate) fn open(cpu: u32, build_ids: bool) -> Result<Sideband, Error> {
        let event = perf_event::open_sideband(cpu, build_ids)?;
        let ring = PerfRing::new(event, DATA_BYTES).map_err(|source| Error::PerfEvent {
            event: "dummy (side band)",
            cpu,
            source,
        })?;
        Ok(Sideband {
            ring,
            is_gone: false,
        })
    }

    /// Appends the records that are there to `out`.
    pub(crate) fn drain(&mut self, out: &mut Vec<SidebandRecord>) {
        self.ring.drain(|record| out.extend(decode(record)));
    }
}

impl AsFd for Sideband {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.ring.as_fd()
    }
}

/// Layouts of perf_event_open(2); each record ends with the sample id: pid, tid, time.
fn decode(record: &[u8]) -> Option<SidebandRecord> {
    const SAMPLE_ID_BYTES: usize = 16;
    let (content, sample_id) =
        record.split_at_checked(record.len().checked_sub(SAMPLE_ID_BYTES)?)?;
    let time_ns = Fields {
        rest: sample_id.get(8..)?,
    }
    .u64()?;
    let mut fields = Fields { rest: content };
    let kind = fields.u32()?;
    let misc = u32::from(fields.u16()?);
    fields.u16()?;
    let body = match kind {
        libbpf_sys::PERF_RECORD_COMM if misc & libbpf_sys::PERF_RECORD_MISC_COMM_EXEC != 0 => {
            let pid = fields.u32()?;
            fields.u32()?;
            SidebandBody::Exec {
                pid,
                comm: owned_text(fields.rest),
            }
        }
        libbpf_sys::PERF_RECORD_MMAP2 => decode_mapping(&mut fields, misc)?,
        libbpf_sys::PERF_RECORD_LOST => {
            fields.u64()?;
            SidebandBody::Lost {
                records: fields.u64()?,
            }
        }
        _ => return None,
    };
    Some(SidebandRecord { time_ns, body })
}

pub(crate) fn decode_mapping(fields: &mut Fields<'_>, misc: u32) -> Option<SidebandBody> {
    let pid = fields.u32()?;
    fields.u32()?;
    let (start, length, file_offset) = (fields.u64()?, fields.u64()?, fields.u64()?);
    let mut identity = Fields {
        rest: fields.bytes(24)?,
    };
    let file = if misc & libbpf_sys::PERF_RECORD_MISC_MMAP_BUILD_ID != 0 {
        let size = usize::from(identity.u8()?);
        identity.bytes(3)?;
        OwnedFileIdentity::BuildId(identity.rest.get(..size)?.to_vec())
    } else {
        OwnedFileIdentity::Inode {
            major: identity.u32()?,
            minor: identity.u32()?,
            inode: identity.u64()?,
            generation: identity.u64()?,
        }
    };
    // Protection and flags: executable, or there would be no record.
    fields.u64()?;
    Some(SidebandBody::Mapped(OwnedMapping {
        pid,
        start,
        length,
        file_offset,
        file,
        path: owned_text(fields.rest),
    }))
}

pub(crate) fn owned_text(bytes: &[u8]) -> Vec<u8> {
    text_before_nul(bytes).as_encoded_bytes().to_vec()
}
