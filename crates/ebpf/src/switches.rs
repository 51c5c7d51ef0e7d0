//! Every switch of every CPU: which thread leaves it, and which one it goes on with.

use crate::bpf_map::BpfMap;
use crate::loader::{self, BTF_PATH, MessageCapture};
use crate::record::{Fields, text_before_nul};
use crate::ring::Ring;
use crate::{Error, host, tracepoints};
use libbpf_rs::{Link, Object, ObjectBuilder};
use std::ffi::OsStr;

static OBJECT: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/switches.bpf.o"));

const PROGRAM: &str = "record_switch";

/// Room for a quarter of a second of a CPU that switches 50 000 times a second, with 72 bytes each.
const RING_BYTES_PER_CPU: u32 = 1 << 20;
/// However many CPUs there are.
const MOST_RING_BYTES: u32 = 64 << 20;

/// A CPU goes on with another thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Switch<'a> {
    /// CLOCK_MONOTONIC, nanoseconds.
    pub time_ns: u64,
    /// Which CPU.
    pub cpu: u32,
    /// The thread that leaves; 0 is none.
    pub previous_tid: u32,
    /// Why, as `prev_state` of the kernel's own tracepoint: 0 or 0x100 where it could go on, 1 where it sleeps.
    pub previous_state: u16,
    /// The thread that comes; 0 is none.
    pub tid: u32,
    /// Its process.
    pub pid: u32,
    /// The lower, the sooner it gets a CPU: 120 for what nobody has changed.
    pub priority: u16,
    /// The name of the thread that comes.
    pub comm: &'a OsStr,
    /// The name of the first thread of its process.
    pub process_comm: &'a OsStr,
}

/// Records every switch until it is dropped.
///
/// The kernel's side never waits: what finds the ring full is lost and counted. Nothing wakes the reader, which is to
/// come often enough.
pub struct SwitchRecorder {
    // It comes first: the program is detached before what it uses goes.
    #[expect(dead_code, reason = "held: the program runs until it is dropped")]
    link: Link,
    ring: Ring,
    lost: BpfMap,
    possible_cpus: usize,
    undecodable: u64,
    #[expect(dead_code, reason = "held: it owns the program")]
    object: Object,
}

// === impl SwitchRecorder ===

impl SwitchRecorder {
    /// Loads the program and attaches it.
    ///
    /// # Errors
    /// As [`Sampler::start`](crate::Sampler::start) when the kernel refuses it.
    pub fn start() -> Result<SwitchRecorder, Error> {
        if host::in_initial_pid_namespace() == Some(false) {
            return Err(Error::PidNamespace);
        }
        if !host::is_there(BTF_PATH) {
            return Err(Error::NoBtf { path: BTF_PATH });
        }
        let messages = MessageCapture::start();
        let refusal = |source| loader::refusal(source, &messages);
        let possible_cpus = libbpf_rs::num_possible_cpus().map_err(refusal)?;
        let ring_bytes = ring_bytes(possible_cpus);
        let mut open = ObjectBuilder::default()
            .open_memory(OBJECT)
            .map_err(refusal)?;
        tracepoints::check(&open)?;
        for mut map in open.maps_mut() {
            if map.name() == OsStr::new("switches") {
                map.set_max_entries(ring_bytes).map_err(refusal)?;
            }
        }
        let object = open.load().map_err(refusal)?;
        let ring = Ring::new(loader::map(&object, "switches")?, ring_bytes)?;
        let link = loader::program(&object, PROGRAM).attach_trace();
        let link = link.map_err(|source| Error::Attach {
            program: PROGRAM,
            source,
        })?;
        Ok(SwitchRecorder {
            link,
            ring,
            lost: loader::map(&object, "lost")?,
            possible_cpus,
            undecodable: 0,
            object,
        })
    }

    /// Hands over what has happened since the last call. Those of one CPU come in the order of time.
    pub fn read(&mut self, handler: &mut dyn FnMut(Switch<'_>)) {
        let undecodable = &mut self.undecodable;
        self.ring
            .drain(self.ring.produced(), |record| match decode(record) {
                Some(switch) => handler(switch),
                None => *undecodable += 1,
            });
    }

    /// How many switches found no room since the start, for each possible CPU.
    ///
    /// # Errors
    /// [`Error::Map`].
    pub fn lost_by_cpu(&self) -> Result<Vec<u64>, Error> {
        let mut lost = vec![0; self.possible_cpus];
        self.lost.lookup_per_cpu(0, &mut lost)?;
        Ok(lost)
    }

    /// Records of a layout that we do not know: a defect of ours.
    pub fn undecodable(&self) -> u64 {
        self.undecodable
    }
}

impl std::fmt::Debug for SwitchRecorder {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter
            .debug_struct("SwitchRecorder")
            .field("possible_cpus", &self.possible_cpus)
            .field("undecodable", &self.undecodable)
            .finish_non_exhaustive()
    }
}

fn ring_bytes(cpus: usize) -> u32 {
    let cpus = u32::try_from(cpus).unwrap_or(u32::MAX);
    let wanted = cpus.saturating_mul(RING_BYTES_PER_CPU);
    wanted
        .clamp(RING_BYTES_PER_CPU, MOST_RING_BYTES)
        .next_power_of_two()
}

/// `struct switch_record` of bpf/switches.bpf.c.
fn decode(record: &[u8]) -> Option<Switch<'_>> {
    let mut fields = Fields { rest: record };
    let time_ns = fields.u64()?;
    let (cpu, previous_tid, tid, pid) =
        (fields.u32()?, fields.u32()?, fields.u32()?, fields.u32()?);
    let (previous_state, priority) = (fields.u16()?, fields.u16()?);
    fields.u32()?;
    Some(Switch {
        time_ns,
        cpu,
        previous_tid,
        previous_state,
        tid,
        pid,
        priority,
        comm: text_before_nul(fields.bytes(16)?),
        process_comm: text_before_nul(fields.bytes(16)?),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn records_are_whole_or_none() {
        let mut record = Vec::new();
        record.extend(7_u64.to_le_bytes());
        for number in [1_u32, 20, 30, 29] {
            record.extend(number.to_le_bytes());
        }
        record.extend([1_u16, 120].map(u16::to_le_bytes).concat());
        record.extend([0; 4]);
        record.extend(*b"worker\0\0\0\0\0\0\0\0\0\0");
        record.extend(*b"a-long-name-of-1");
        assert!(decode(&record[..record.len() - 1]).is_none());
        let expected = Switch {
            time_ns: 7,
            cpu: 1,
            previous_tid: 20,
            previous_state: 1,
            tid: 30,
            pid: 29,
            priority: 120,
            comm: OsStr::new("worker"),
            process_comm: OsStr::new("a-long-name-of-1"),
        };
        assert_eq!(decode(&record), Some(expected));
    }

    #[test]
    fn the_ring_grows_with_the_cpus_up_to_a_bound() {
        let sizes = [0, 1, 3, 64, 4096].map(ring_bytes);
        assert_eq!(sizes, [1 << 20, 1 << 20, 4 << 20, 64 << 20, 64 << 20]);
    }
}
