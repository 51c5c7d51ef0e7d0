//! The process table: kept by events, completed from `/proc` when a process is sampled.
//!
//! Nothing is read of a process that is never sampled: most processes of a busy host live for some
//! milliseconds, and reading each would cost more than all sampling. Files are opened when they are
//! mapped, though, because a moment later they may be gone.

use candela_ebpf::FileIdentity;
use candela_ebpf::Mapped;
use hashbrown::HashMap;
use std::sync::Arc;

use crate::labels::is_context_mapping;
use crate::ledger::Ledger;
use crate::processes::forks::UnknownForks;
use crate::processes::mappings::Code;
use crate::processes::mappings::Mappings;
use crate::processes::mappings::ProcessMapping;
use crate::processes::maps_file::MapsLine;
use crate::processes::maps_file::parse_maps;
use crate::processes::maps_file::read_maps;
use crate::processes::object::FileNumber;
use crate::processes::objects::MappedRange;
use crate::processes::objects::Objects;
use crate::processes::process::Process;

/// How long a process that has ended is kept, because samples of it may still be on their way.
const EXITED_GRACE_NS: u64 = 2_000_000_000;

/// How many generations back it is looked for what a process has mapped; nobody forks as deep without an exec.
const MOST_GENERATIONS: usize = 64;

const VDSO: &[u8] = b"[vdso]";

/// Processes by pid.
#[derive(Debug)]
pub(crate) struct ProcessTable {
    live: HashMap<u32, Process>,
    /// Ended processes with the time of their end.
    exited: HashMap<u32, (u64, Process)>,
    forks: UnknownForks,
    pub(crate) objects: Objects,
    next_serial: u32,
    buffer: Vec<u8>,
}

impl ProcessTable {
    pub(crate) fn new(ledger: Arc<Ledger>) -> Self {
        Self {
            live: HashMap::new(),
            exited: HashMap::new(),
            forks: UnknownForks::default(),
            objects: Objects::new(ledger),
            next_serial: 1,
            buffer: Vec::new(),
        }
    }

    pub(crate) fn len(&self) -> usize {
        self.live.len()
    }

    /// A process, also one that has just ended.
    pub(crate) fn get_mut(&mut self, pid: u32) -> Option<&mut Process> {
        match self.live.get_mut(&pid) {
            Some(process) => Some(process),
            None => self.exited.get_mut(&pid).map(|(_, process)| process),
        }
    }

    /// A process that has not ended, as far as events told.
    pub(crate) fn live_mut(&mut self, pid: u32) -> Option<&mut Process> {
        self.live.get_mut(&pid)
    }

    pub(crate) fn is_live(&self, pid: u32) -> bool {
        self.live.contains_key(&pid)
    }

    pub(crate) fn live(&mut self) -> impl Iterator<Item = &mut Process> {
        self.live.values_mut()
    }

    /// The process of a sample; one that is new or incomplete is read from `/proc`, and one that is gone by now
    /// has what its parent has. `None` when no event told of it either.
    pub(crate) fn sampled(&mut self, pid: u32, start_ns: u64) -> Option<&mut Process> {
        let is_older = |process: &Process| process.start_ns != 0 && process.start_ns != start_ns;
        if let Some(process) = self.live.get(&pid)
            && is_older(process)
        {
            // The end of the one and the start of the other were both lost.
            self.live.remove(&pid);
        }
        let has_ended = !self.live.contains_key(&pid)
            && self
                .exited
                .get(&pid)
                .is_some_and(|(_, process)| !is_older(process));
        if has_ended {
            return self.get_mut(pid);
        }
        let is_complete = self
            .live
            .get(&pid)
            .is_some_and(|process| process.is_complete);
        if !is_complete && !self.scan(pid) && !self.live.contains_key(&pid) {
            self.adopt(pid);
        }
        let process = self.get_mut(pid)?;
        // One that ended earlier may have had its id.
        if is_older(process) {
            return None;
        }
        process.start_ns = start_ns;
        Some(process)
    }

    pub(crate) fn exec(&mut self, pid: u32, command: &str, time_ns: u64) {
        self.forks.forget(pid);
        let mut process = Process::new(pid, self.serial());
        process.began_ns = time_ns;
        process.command = command.to_owned();
        process.is_complete = true;
        self.live.insert(pid, process);
    }

    pub(crate) fn fork(&mut self, pid: u32, parent: u32, time_ns: u64) {
        let serial = self.serial();
        let known = self.live.get(&parent);
        let child = known.map(|parent| parent.forked(pid, serial, time_ns));
        match child {
            Some(child) => {
                self.forks.forget(pid);
                self.live.insert(pid, child);
            }
            None => {
                self.live.remove(&pid);
                self.forks.note(pid, parent, time_ns);
            }
        }
    }

    pub(crate) fn exit(&mut self, pid: u32, time_ns: u64) {
        self.forks.ended(pid, time_ns);
        if let Some(process) = self.live.remove(&pid) {
            self.exited.insert(pid, (time_ns, process));
        }
    }

    /// Makes a process known that is gone and was forked by one that nothing was known of: it had what the nearest
    /// of its ancestors has of which something can be known.
    fn adopt(&mut self, pid: u32) {
        let Some(fork) = self.forks.of(pid) else {
            return;
        };
        let mut nearest = fork;
        for _ in 0..MOST_GENERATIONS {
            if self.get_mut(nearest.parent).is_some() || self.scan(nearest.parent) {
                break;
            }
            match self.forks.of(nearest.parent) {
                // A process that is younger than its child has got the id of the parent.
                Some(earlier) if earlier.time_ns <= nearest.time_ns => nearest = earlier,
                _ => return,
            }
        }
        let serial = self.serial();
        let ancestor = self.get_mut(nearest.parent);
        let Some(ancestor) = ancestor.filter(|it| it.began_ns <= nearest.time_ns) else {
            return;
        };
        let child = ancestor.forked(pid, serial, fork.time_ns);
        match fork.ended_ns {
            Some(ended_ns) => {
                self.exited.insert(pid, (ended_ns, child));
            }
            None => {
                self.live.insert(pid, child);
            }
        }
    }

    /// Adds a mapping that a process has just made. True when the kernel should hear of it.
    pub(crate) fn mapped(&mut self, mapped: &Mapped<'_>) -> bool {
        let Some(process) = self.live.get_mut(&mapped.pid) else {
            // Older than the agent and never sampled: its maps are read when it is.
            return false;
        };
        let file = match mapped.file {
            FileIdentity::Inode {
                major,
                minor,
                inode,
                ..
            } => FileNumber {
                device: (major, minor),
                inode,
            },
            FileIdentity::BuildId(_) => {
                process.is_complete = false;
                return process.is_registered;
            }
        };
        let end = mapped.start.saturating_add(mapped.length);
        let path = mapped.path.as_encoded_bytes();
        let range = MappedRange {
            pid: mapped.pid,
            start: mapped.start,
            end,
        };
        if let Some(code) = code_of(&mut self.objects, file, range, path) {
            process.mappings.insert(ProcessMapping {
                start: mapped.start,
                end,
                file_offset: mapped.file_offset,
                code,
            });
            process.identity.generation += 1;
        }
        process.is_registered || process.is_program_sampled()
    }

    /// Events were lost: what is known may be out of date.
    pub(crate) fn distrust_all(&mut self) {
        for process in self.live.values_mut() {
            process.is_complete = false;
        }
    }

    /// Reads the maps of a process again; false when it is gone.
    pub(crate) fn scan(&mut self, pid: u32) -> bool {
        if read_maps(pid, &mut self.buffer).is_err() || self.buffer.is_empty() {
            return false;
        }
        let mut lines = Vec::new();
        for line in parse_maps(&self.buffer).filter(|line| line.is_executable) {
            lines.extend(mapping_of(&mut self.objects, pid, &line));
        }
        let next_serial = &mut self.next_serial;
        let process = self.live.entry(pid).or_insert_with(|| {
            *next_serial += 1;
            let fork = self.forks.forget(pid);
            let mut process = Process::new(pid, *next_serial);
            process.began_ns = fork.map_or(0, |fork| fork.time_ns);
            process.parent = fork.map(|fork| fork.parent);
            process
        });
        process.mappings = Mappings::from_lines(lines);
        process.identity.generation += 1;
        process.is_complete = true;
        true
    }

    /// Forgets processes that ended a while ago and closes files that nobody needs.
    pub(crate) fn sweep(&mut self, now_ns: u64) {
        self.exited
            .retain(|_, (ended_ns, _)| now_ns.saturating_sub(*ended_ns) < EXITED_GRACE_NS);
        self.forks
            .forget_ended_before(now_ns.saturating_sub(EXITED_GRACE_NS));
        self.objects.sweep();
    }

    /// Forgets processes that no longer exist although no event said so.
    pub(crate) fn remove_vanished(&mut self) {
        let is_there = |pid: u32| std::fs::metadata(format!("/proc/{pid}")).is_ok();
        self.live.retain(|&pid, _| is_there(pid));
        self.forks.retain(is_there);
    }

    fn serial(&mut self) -> u32 {
        self.next_serial += 1;
        self.next_serial
    }
}

/// Where a process has published an OpenTelemetry context, if it has.
pub(crate) fn find_context(pid: u32) -> Option<u64> {
    let mut maps = Vec::new();
    read_maps(pid, &mut maps).ok()?;
    let mut lines = parse_maps(&maps);
    lines
        .find(|line| is_context_mapping(line.path))
        .map(|line| line.start)
}

fn mapping_of(objects: &mut Objects, pid: u32, line: &MapsLine<'_>) -> Option<ProcessMapping> {
    let file = FileNumber {
        device: line.device,
        inode: line.inode,
    };
    let range = MappedRange {
        pid,
        start: line.start,
        end: line.end,
    };
    Some(ProcessMapping {
        start: line.start,
        end: line.end,
        file_offset: line.file_offset,
        code: code_of(objects, file, range, line.path)?,
    })
}

/// What is mapped; `None` for `[vsyscall]`, which the kernel emulates: no code ever runs there.
fn code_of(
    objects: &mut Objects,
    file: FileNumber,
    range: MappedRange,
    path: &[u8],
) -> Option<Code> {
    if path == VDSO {
        return Some(Code::Object(objects.vdso()));
    }
    if path.starts_with(b"[vsyscall") {
        return None;
    }
    if file.inode == 0 {
        return Some(Code::Anonymous);
    }
    let path = String::from_utf8_lossy(path);
    Some(Code::Object(objects.get(file, range, &path)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table() -> ProcessTable {
        ProcessTable::new(Arc::new(Ledger::default()))
    }

    #[test]
    fn we_are_found_in_proc() {
        let mut table = table();
        let pid = std::process::id();
        let process = table.sampled(pid, 5).expect("we exist");
        let here = we_are_found_in_proc as fn() as usize as u64;
        let mapping = process.mappings.find(here).expect("our code");
        assert!(matches!(mapping.code, Code::Object(_)));
        let executable = std::env::current_exe().expect("our own path");
        assert_eq!(process.executable(), executable.to_string_lossy());
        let again = table.sampled(pid, 5).expect("we still exist");
        assert_eq!(again.identity.generation, 1, "nothing is read twice");
    }

    #[test]
    fn a_reused_pid_is_another_process() {
        let mut table = table();
        let pid = std::process::id();
        let first = table.sampled(pid, 5).expect("we exist").identity;
        let second = table.sampled(pid, 6).expect("we exist").identity;
        assert_ne!(first.serial, second.serial);
    }

    #[test]
    fn an_ended_process_is_known_for_a_while() {
        let mut table = table();
        let pid = std::process::id();
        table.sampled(pid, 5).expect("we exist");
        table.exit(pid, 1_000);
        table.fork(pid + 1, pid, 2_000);
        assert!(table.get_mut(pid + 1).is_none(), "a fork of nobody we know");
        assert!(table.sampled(pid, 5).is_some());
        table.sweep(1_000 + EXITED_GRACE_NS);
        assert!(table.get_mut(pid).is_none());
    }

    #[test]
    fn a_fork_that_is_gone_had_what_its_parent_has() {
        /// Above the largest process ids that Linux gives.
        const CHILD: u32 = 5_000_000;
        const GRANDCHILD: u32 = 5_000_001;
        const LATER: u32 = 5_000_002;
        let mut table = table();
        let pid = std::process::id();
        table.fork(CHILD, pid, 10);
        table.fork(GRANDCHILD, CHILD, 11);
        table.exit(GRANDCHILD, 12);
        let here = a_fork_that_is_gone_had_what_its_parent_has as fn() as usize as u64;
        for child in [GRANDCHILD, CHILD] {
            let process = table.sampled(child, 5).expect("it has been");
            assert!(process.mappings.find(here).is_some());
            assert_eq!(process.parent, Some(pid));
        }
        assert!(!table.is_live(GRANDCHILD), "it has ended");
        assert!(table.is_live(CHILD), "as far as events told");

        table.exit(pid, 20);
        table.sweep(20 + EXITED_GRACE_NS);
        table.fork(LATER, pid, 30);
        table.exec(pid, "another", 40);
        assert!(
            table.sampled(LATER, 5).is_none(),
            "its parent's program is gone"
        );
    }

    #[test]
    fn processes_that_never_were_are_nothing() {
        assert!(table().sampled(u32::MAX, 1).is_none());
    }
}
