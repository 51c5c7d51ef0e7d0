//! The processes of the machine as the records tell of them: names, mappings, births and deaths.

use std::collections::VecDeque;

use candela_model::StringId;
use hashbrown::HashMap;

use crate::options::Limits;
use crate::perf_data::bytes::Bytes;
use crate::perf_data::files::Files;
use crate::perf_data::files::build_id_hex;
use crate::perf_data::mappings::Mapping;
use crate::perf_data::mappings::Mappings;
use crate::perf_data::records::Record;
use crate::perf_data::texts::Texts;
use crate::work::Work;

/// Where the processor was: the lowest bits of a record's flags.
pub(crate) const CPU_MODE_MASK: u16 = 7;
pub(crate) const MODE_KERNEL: u16 = 1;
pub(crate) const MODE_HYPERVISOR: u16 = 3;
pub(crate) const MODE_GUEST_KERNEL: u16 = 4;
pub(crate) const MODE_GUEST_USER: u16 = 5;

/// `PERF_RECORD_MISC_COMM_EXEC`, `..._FORK_EXEC`: one bit whose meaning is the record's.
const MISC_EXEC: u16 = 1 << 13;
/// `PERF_RECORD_MISC_MMAP_BUILD_ID`.
const MISC_MAPPING_HAS_BUILD_ID: u16 = 1 << 14;

/// A bit of the protection that the kernel does not have: simpleperf marks mappings with it that it
/// made up for what a just-in-time compiler wrote.
const PROTECTION_OF_COMPILED: u32 = 1 << 14;

/// Processes that have ended are kept until so many more have: samples of their last moments come
/// after the record of their end.
const MOST_ENDED: usize = 4096;

/// Mappings of all processes: what is beyond is left out. A host with a tenth of that has not been
/// met.
const MOST_MAPPINGS: usize = 4_000_000;

/// Mappings of one process: forks copy them, and records of a hundred bytes make forks.
const MOST_MAPPINGS_EACH: usize = 32_768;

/// Threads that have a name, and processes that have mappings.
const MOST_THREADS: usize = 4_000_000;

/// What idle processors run.
const IDLE_NAME: &str = "swapper";

/// All processes.
#[derive(Debug)]
pub(crate) struct Machine {
    spaces: HashMap<u32, Mappings>,
    /// Names of threads by their numbers.
    names: HashMap<u32, StringId>,
    pub(crate) kernel: Mappings,
    pub(crate) guest_kernel: Mappings,
    ended: VecDeque<u32>,
    bounds: MappingBounds,
}

/// How many mappings all processes have and may have, and how many were left out.
#[derive(Debug)]
struct MappingBounds {
    held: isize,
    most: isize,
    left_out: u64,
    /// Pays for mappings that are copied or moved: a fork and one mapping of its own copy all that the
    /// parent has.
    work: Work,
}

/// `PERF_RECORD_MMAP` and `PERF_RECORD_MMAP2`.
struct MmapRecord<'a> {
    pid: u32,
    start: u64,
    length: u64,
    file_offset: u64,
    build_id: String,
    is_compiled: bool,
    path: &'a [u8],
}

impl Machine {
    pub(crate) fn new(limits: &Limits) -> Self {
        let most = (limits.inflated_bytes() / size_of::<Mapping>()).min(MOST_MAPPINGS);
        Self {
            spaces: HashMap::new(),
            names: HashMap::new(),
            kernel: Mappings::default(),
            guest_kernel: Mappings::default(),
            ended: VecDeque::new(),
            bounds: MappingBounds {
                held: 0,
                most: most.cast_signed(),
                left_out: 0,
                work: Work::new(limits),
            },
        }
    }

    pub(crate) fn left_out_mappings(&self) -> u64 {
        self.bounds.left_out
    }

    /// Takes note of a record, which pays for what it makes the processes do.
    pub(crate) fn pay_in(&mut self, record: Record<'_>) {
        self.bounds.work.earn(record.body.len());
    }

    pub(crate) fn space(&self, pid: u32) -> Option<&Mappings> {
        self.spaces.get(&pid)
    }

    /// The name of a thread; the empty one when no record tells it.
    pub(crate) fn name(&self, tid: u32, texts: &mut Texts) -> StringId {
        match self.names.get(&tid) {
            Some(name) => *name,
            None if tid == 0 => texts.strings.intern(IDLE_NAME),
            None => StringId::default(),
        }
    }

    /// A record that maps a file; `None` where it is too short.
    pub(crate) fn map(
        &mut self,
        record: Record<'_>,
        is_second_form: bool,
        files: &mut Files,
        texts: &mut Texts,
    ) -> Option<()> {
        let mmap = MmapRecord::parse(record, is_second_form)?;
        let mapping = |file| Mapping {
            start: mmap.start,
            end: mmap.start.saturating_add(mmap.length),
            file_offset: mmap.file_offset,
            file,
        };
        match record.misc & CPU_MODE_MASK {
            mode @ (MODE_KERNEL | MODE_GUEST_KERNEL) => {
                let file = files.kernel_file(mmap.path, &mmap.build_id, mmap.file_offset, texts);
                let space = if mode == MODE_KERNEL {
                    &mut self.kernel
                } else {
                    &mut self.guest_kernel
                };
                insert(space, mapping(file), &mut self.bounds);
            }
            MODE_GUEST_USER => {}
            _ if self.spaces.len() >= MOST_THREADS => self.bounds.left_out += 1,
            _ => {
                let (build_id, is_compiled) = (&mmap.build_id, mmap.is_compiled);
                let file = files.user_file(mmap.path, build_id, is_compiled, texts);
                let space = self.spaces.entry(mmap.pid).or_default();
                insert(space, mapping(file), &mut self.bounds);
            }
        }
        Some(())
    }

    /// A record of a BPF program or a trampoline that came into the kernel, or left it.
    pub(crate) fn kernel_symbol(
        &mut self,
        record: Record<'_>,
        files: &mut Files,
        texts: &mut Texts,
    ) -> Option<()> {
        const LEAVES: u16 = 1;
        let mut body = record.body;
        let start = body.u64()?;
        let length = body.u32()?;
        let kind = body.u16()?;
        let flags = body.u16()?;
        // Its samples may still come; what takes the place overwrites it.
        if flags & LEAVES != 0 {
            return Some(());
        }
        let file = files.kernel_symbol(body.text(), kind, texts);
        let mapping = Mapping {
            start,
            end: start.saturating_add(u64::from(length)),
            file_offset: 0,
            file,
        };
        insert(&mut self.kernel, mapping, &mut self.bounds);
        Some(())
    }

    /// A record that names a thread.
    pub(crate) fn rename(&mut self, record: Record<'_>, texts: &mut Texts) -> Option<()> {
        let mut body = record.body;
        let pid = body.u32()?;
        let tid = body.u32()?;
        self.set_name(tid, texts.intern(body.text()));
        // Another program: what the old one had mapped is gone.
        if record.misc & MISC_EXEC != 0 {
            self.forget_space(pid);
        }
        Some(())
    }

    /// A record of a new thread or process, which begins with what its parent has.
    pub(crate) fn fork(&mut self, record: Record<'_>) -> Option<()> {
        let mut body = record.body;
        let pid = body.u32()?;
        let parent_pid = body.u32()?;
        let tid = body.u32()?;
        let parent_tid = body.u32()?;
        if let Some(name) = self.names.get(&parent_tid) {
            self.set_name(tid, *name);
        }
        // Of processes that were there before, perf tells all mappings itself.
        let is_made_by_perf = record.misc & MISC_EXEC != 0;
        if pid == parent_pid || is_made_by_perf {
            return Some(());
        }
        self.forget_space(pid);
        if let Some(space) = self.spaces.get(&parent_pid)
            && self.spaces.len() < MOST_THREADS
        {
            let space = space.clone();
            self.spaces.insert(pid, space);
        }
        Some(())
    }

    /// A record of a thread's end.
    pub(crate) fn exit(&mut self, record: Record<'_>) -> Option<()> {
        let mut body = record.body;
        let _pid_and_parent = body.u64()?;
        let tid = body.u32()?;
        self.ended.push_back(tid);
        if self.ended.len() > MOST_ENDED
            && let Some(oldest) = self.ended.pop_front()
        {
            self.names.remove(&oldest);
            // The mappings of a process go with its first thread.
            self.forget_space(oldest);
        }
        Some(())
    }

    fn set_name(&mut self, tid: u32, name: StringId) {
        if self.names.len() < MOST_THREADS || self.names.contains_key(&tid) {
            self.names.insert(tid, name);
        }
    }

    fn forget_space(&mut self, pid: u32) {
        if let Some(space) = self.spaces.remove(&pid) {
            self.bounds.held -= space.held();
        }
    }
}

/// Adds a mapping within the bounds.
fn insert(space: &mut Mappings, mapping: Mapping, bounds: &mut MappingBounds) {
    let has_room = bounds.held < bounds.most && space.len() < MOST_MAPPINGS_EACH;
    let steps = space.insertion_steps(&mapping);
    if !has_room || bounds.work.spend(steps).is_err() {
        bounds.left_out += 1;
        return;
    }
    bounds.held += space.insert(mapping);
}

impl<'a> MmapRecord<'a> {
    fn parse(record: Record<'a>, is_second_form: bool) -> Option<Self> {
        let mut body = record.body;
        let pid = body.u32()?;
        let _tid = body.u32()?;
        let start = body.u64()?;
        let length = body.u64()?;
        let file_offset = body.u64()?;
        let mut build_id = String::new();
        let mut is_compiled = false;
        if is_second_form {
            let mut identity = body.part(24)?;
            let protection = body.u32()?;
            let _flags = body.u32()?;
            is_compiled = protection & PROTECTION_OF_COMPILED != 0;
            if record.misc & MISC_MAPPING_HAS_BUILD_ID != 0 {
                build_id = mapped_build_id(&mut identity)?;
            }
        }
        Some(Self {
            pid,
            start,
            length,
            file_offset,
            build_id,
            is_compiled,
            path: body.text(),
        })
    }
}

/// The size, three bytes that are reserved, the id.
fn mapped_build_id(identity: &mut Bytes<'_>) -> Option<String> {
    let size = usize::from(identity.u8()?);
    identity.take(3)?;
    identity.take(size).map(build_id_hex)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::perf_data::bytes::Endian;
    use crate::perf_data::records::kinds;

    fn record(kind: u32, body: &[u8]) -> Record<'_> {
        Record {
            kind,
            misc: 0,
            body: Bytes::new(body, Endian::Little),
        }
    }

    #[test]
    fn forks_pay_for_the_mappings_that_they_copy() {
        let limits = Limits {
            max_inflated_bytes: 1000,
            ..Limits::default()
        };
        let mut machine = Machine::new(&limits);
        let (mut files, mut texts) = (Files::default(), Texts::new(limits));
        let mut map = |machine: &mut Machine, pid: u32, start: u64| {
            let mut body = [pid, pid].map(u32::to_le_bytes).concat();
            body.extend([start, 1, 0].map(u64::to_le_bytes).concat());
            let record = record(kinds::MMAP, &body);
            let mapped = machine.map(record, false, &mut files, &mut texts);
            mapped.expect("long enough");
        };
        for start in 0..20 {
            map(&mut machine, 1, start);
        }
        let fork = [2_u32, 1, 2, 1].map(u32::to_le_bytes).concat();
        let mut fork_and_map = |machine: &mut Machine| {
            let forked = machine.fork(record(kinds::FORK, &fork));
            forked.expect("long enough");
            map(machine, 2, 100);
        };
        for _ in 0..50 {
            fork_and_map(&mut machine);
        }
        assert_eq!(machine.left_out_mappings(), 0);
        for _ in 0..50 {
            fork_and_map(&mut machine);
        }
        assert_eq!(machine.left_out_mappings(), 50);
        machine.pay_in(record(kinds::FORK, &[0; 20]));
        fork_and_map(&mut machine);
        assert_eq!(machine.left_out_mappings(), 50);
    }
}
