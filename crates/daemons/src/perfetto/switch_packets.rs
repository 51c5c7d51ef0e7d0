//! Switches as Perfetto's own `traced_probes` writes them: a bundle for each CPU, in the compact form, which the
//! viewer reads as it does single events and which takes a tenth of their room.

use std::collections::BTreeMap;
use std::collections::HashMap;

use crate::perfetto::packets::OWN_SEQUENCE;
use crate::perfetto::packets::SEQUENCE;
use crate::perfetto::packets::TIMESTAMP;
use crate::perfetto::packets::bytes;
use crate::perfetto::packets::number;
use crate::perfetto::packets::push_packet;
use crate::perfetto::packets::varint;

/// Fields of `TracePacket`.
const FTRACE_EVENTS: u64 = 1;
const PROCESS_TREE: u64 = 2;
const CLOCK_SNAPSHOT: u64 = 6;
const FTRACE_STATS: u64 = 34;
const SYSTEM_INFO: u64 = 45;

/// Clocks of `ClockSnapshot`: the time of all packets is that since the epoch, and goes for the one since boot.
const REALTIME: u64 = 1;
const BOOTTIME: u64 = 6;

/// Of a thread or process in the tree, beyond its name.
const NAME_OVERHEAD: usize = 16;

/// A thread that comes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Thread<'a> {
    pub(crate) tid: u32,
    pub(crate) pid: u32,
    pub(crate) name: &'a str,
    pub(crate) process_name: &'a str,
    /// Whether that is the name of its first thread, for want of a better one.
    pub(crate) is_process_comm: bool,
}

/// Switches of all CPUs with what their threads and processes are called.
#[derive(Debug, Default)]
pub(crate) struct SwitchBatch {
    cpus: BTreeMap<u32, CpuSwitches>,
    /// Process and name of each thread.
    threads: BTreeMap<u32, (u32, String)>,
    /// Name of each process, and whether it is that of its first thread.
    processes: BTreeMap<u32, (String, bool)>,
    /// How large the packets will be, about.
    bytes: usize,
}

/// A CPU goes on with another thread.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Arrival<'a> {
    /// Since the epoch.
    pub(crate) unix_ns: u64,
    /// Why the thread before left.
    pub(crate) previous_state: u16,
    pub(crate) priority: u16,
    pub(crate) thread: Thread<'a>,
}

/// Columns of `FtraceEventBundle.CompactSched`, packed.
#[derive(Debug, Default)]
struct CpuSwitches {
    /// Some among these are missing.
    is_after_loss: bool,
    last_ns: u64,
    times: Vec<u8>,
    states: Vec<u8>,
    tids: Vec<u8>,
    priorities: Vec<u8>,
    names: Vec<String>,
    name_numbers: Vec<u8>,
    number_of_name: HashMap<String, u64>,
}

impl SwitchBatch {
    /// Adds a switch of a CPU; `is_after_loss` when some are missing before it.
    pub(crate) fn add(&mut self, cpu: u32, arrival: &Arrival<'_>, is_after_loss: bool) {
        let switches = self.cpus.entry(cpu).or_default();
        switches.is_after_loss |= is_after_loss;
        self.bytes += switches.push(arrival);
        self.name(&arrival.thread);
    }

    /// Says what a thread and its process are called. Number 0 is the idle task, which the viewer knows.
    fn name(&mut self, thread: &Thread<'_>) {
        if thread.tid == 0 {
            return;
        }
        let known = self.threads.get(&thread.tid);
        if known.is_none_or(|(pid, name)| *pid != thread.pid || name != thread.name) {
            let named = (thread.pid, thread.name.to_owned());
            self.threads.insert(thread.tid, named);
            self.bytes += thread.name.len() + NAME_OVERHEAD;
        }
        let known = self.processes.get(&thread.pid);
        if known.is_none_or(|(name, _)| name != thread.process_name) {
            let named = (thread.process_name.to_owned(), thread.is_process_comm);
            self.processes.insert(thread.pid, named);
            self.bytes += thread.process_name.len() + NAME_OVERHEAD;
        }
    }

    /// How large the packets will be, about.
    pub(crate) fn bytes(&self) -> usize {
        self.bytes
    }

    #[cfg(test)]
    pub(crate) fn is_after_loss(&self, cpu: u32) -> bool {
        self.cpus[&cpu].is_after_loss
    }

    pub(crate) fn packets(&self) -> Vec<u8> {
        let starts = self.cpus.values().filter_map(CpuSwitches::first_ns);
        let start_ns = starts.min().unwrap_or_default();
        let mut packets = Vec::new();
        push_packet(&mut packets, &clock_snapshot(start_ns));
        push_packet(&mut packets, &self.process_tree(start_ns));
        for (&cpu, switches) in &self.cpus {
            let mut bundle = Vec::new();
            number(&mut bundle, 1, cpu.into());
            if switches.is_after_loss {
                number(&mut bundle, 3, 1);
            }
            bytes(&mut bundle, 4, &switches.compact());
            let mut packet = Vec::new();
            bytes(&mut packet, FTRACE_EVENTS, &bundle);
            number(&mut packet, SEQUENCE, OWN_SEQUENCE);
            push_packet(&mut packets, &packet);
        }
        packets
    }

    fn process_tree(&self, start_ns: u64) -> Vec<u8> {
        let mut tree = Vec::new();
        for (&pid, (name, is_comm)) in &self.processes {
            let mut process = Vec::new();
            number(&mut process, 1, pid.into());
            bytes(&mut process, 3, name.as_bytes());
            if *is_comm {
                number(&mut process, 9, 1);
            }
            bytes(&mut tree, 1, &process);
        }
        for (&tid, (pid, name)) in &self.threads {
            let mut thread = Vec::new();
            number(&mut thread, 1, tid.into());
            bytes(&mut thread, 2, name.as_bytes());
            number(&mut thread, 3, (*pid).into());
            bytes(&mut tree, 2, &thread);
        }
        let mut packet = Vec::new();
        number(&mut packet, TIMESTAMP, start_ns);
        number(&mut packet, SEQUENCE, OWN_SEQUENCE);
        bytes(&mut packet, PROCESS_TREE, &tree);
        packet
    }
}

impl CpuSwitches {
    /// Adds a switch; how many bytes it takes.
    fn push(&mut self, arrival: &Arrival<'_>) -> usize {
        let before = self.column_bytes();
        // The clock on the wall may have been set back between two looks at it.
        let unix_ns = arrival.unix_ns.max(self.last_ns);
        varint(&mut self.times, unix_ns - self.last_ns);
        self.last_ns = unix_ns;
        varint(&mut self.states, arrival.previous_state.into());
        varint(&mut self.tids, arrival.thread.tid.into());
        varint(&mut self.priorities, arrival.priority.into());
        let name = arrival.thread.name;
        let (name_number, name_bytes) = match self.number_of_name.get(name) {
            Some(&known) => (known, 0),
            None => {
                let next = self.names.len() as u64;
                self.names.push(name.to_owned());
                self.number_of_name.insert(name.to_owned(), next);
                (next, name.len() + 2)
            }
        };
        varint(&mut self.name_numbers, name_number);
        self.column_bytes() - before + name_bytes
    }

    fn column_bytes(&self) -> usize {
        let columns = [
            &self.times,
            &self.states,
            &self.tids,
            &self.priorities,
            &self.name_numbers,
        ];
        columns.map(Vec::len).iter().sum()
    }

    /// The first time is whole, later ones are distances.
    fn first_ns(&self) -> Option<u64> {
        let mut first = 0;
        for (position, byte) in self.times.iter().take(10).enumerate() {
            first |= u64::from(byte & 0x7f) << (7 * position);
            if byte & 0x80 == 0 {
                return Some(first);
            }
        }
        None
    }

    fn compact(&self) -> Vec<u8> {
        let mut compact = Vec::new();
        bytes(&mut compact, 1, &self.times);
        bytes(&mut compact, 2, &self.states);
        bytes(&mut compact, 3, &self.tids);
        bytes(&mut compact, 4, &self.priorities);
        for name in &self.names {
            bytes(&mut compact, 5, name.as_bytes());
        }
        bytes(&mut compact, 6, &self.name_numbers);
        compact
    }
}

/// Which kernel it was: the numbers of states are its own.
pub(crate) fn system_packet(release: &str, version: &str, packets: &mut Vec<u8>) {
    let mut utsname = Vec::new();
    bytes(&mut utsname, 1, b"Linux");
    bytes(&mut utsname, 2, version.as_bytes());
    bytes(&mut utsname, 3, release.as_bytes());
    bytes(&mut utsname, 4, std::env::consts::ARCH.as_bytes());
    let mut system = Vec::new();
    bytes(&mut system, 1, &utsname);
    let mut packet = Vec::new();
    number(&mut packet, SEQUENCE, OWN_SEQUENCE);
    bytes(&mut packet, SYSTEM_INFO, &system);
    push_packet(packets, &packet);
}

/// How many switches each CPU has lost, as the viewer tells it of ftrace: by its numbers at the start and at the end.
pub(crate) fn loss_packets(lost_by_cpu: &[u64], packets: &mut Vec<u8>) {
    for (phase, is_end) in [(1, false), (2, true)] {
        let mut stats = Vec::new();
        number(&mut stats, 1, phase);
        for (cpu, &lost) in lost_by_cpu.iter().enumerate() {
            let mut of_cpu = Vec::new();
            number(&mut of_cpu, 1, cpu as u64);
            number(&mut of_cpu, 3, if is_end { lost } else { 0 });
            bytes(&mut stats, 2, &of_cpu);
        }
        let mut packet = Vec::new();
        number(&mut packet, SEQUENCE, OWN_SEQUENCE);
        bytes(&mut packet, FTRACE_STATS, &stats);
        push_packet(packets, &packet);
    }
}

fn clock_snapshot(unix_ns: u64) -> Vec<u8> {
    let mut snapshot = Vec::new();
    for clock in [BOOTTIME, REALTIME] {
        let mut reading = Vec::new();
        number(&mut reading, 1, clock);
        number(&mut reading, 2, unix_ns);
        bytes(&mut snapshot, 1, &reading);
    }
    number(&mut snapshot, 2, BOOTTIME);
    let mut packet = Vec::new();
    number(&mut packet, TIMESTAMP, unix_ns);
    number(&mut packet, SEQUENCE, OWN_SEQUENCE);
    bytes(&mut packet, CLOCK_SNAPSHOT, &snapshot);
    packet
}

#[cfg(test)]
mod tests {
    use super::*;

    const THREAD: Thread<'static> = Thread {
        tid: 300,
        pid: 299,
        name: "worker",
        process_name: "shop",
        is_process_comm: false,
    };

    #[test]
    fn columns_are_those_of_compact_sched() {
        let mut switches = CpuSwitches::default();
        let mut push = |unix_ns, previous_state, priority, thread| {
            switches.push(&Arrival {
                unix_ns,
                previous_state,
                priority,
                thread,
            })
        };
        let idle = Thread {
            tid: 0,
            name: "swapper/0",
            ..THREAD
        };
        assert_eq!(push(1000, 1, 120, THREAD), 7 + 8);
        assert_eq!(push(1130, 0x100, 120, idle), 7 + 11);
        assert_eq!(push(1129, 2, 98, THREAD), 6);
        assert_eq!(switches.times, [0xe8, 0x07, 0x82, 0x01, 0], "never back");
        assert_eq!(switches.states, [1, 0x80, 0x02, 2]);
        assert_eq!(switches.tids, [0xac, 0x02, 0, 0xac, 0x02]);
        assert_eq!(switches.priorities, [120, 120, 98]);
        assert_eq!(
            (switches.names.len(), &switches.name_numbers[..]),
            (2, &[0, 1, 0][..])
        );
        assert_eq!(switches.first_ns(), Some(1000));
    }

    #[test]
    fn each_thread_and_process_is_named_once() {
        let mut batch = SwitchBatch::default();
        for _ in 0..3 {
            batch.name(&THREAD);
        }
        batch.name(&Thread { tid: 0, ..THREAD });
        let tree = batch.process_tree(1);
        let text = String::from_utf8_lossy(&tree);
        assert_eq!(text.matches("worker").count(), 1);
        assert_eq!(text.matches("shop").count(), 1);
        assert_eq!(batch.threads.len(), 1, "the idle task is nobody's");
    }
}
