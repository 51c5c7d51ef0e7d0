//! Events of allocations, among those of the CPU source.

use std::sync::Arc;

use candela_ebpf::Allocation;
use candela_ebpf::Event;
use candela_ebpf::FileIdentity;
use candela_ebpf::Mapped;
use candela_ebpf::Sample;

use crate::allocations::AllocationNumber;
use crate::allocations::LiveHeaps;
use crate::allocations::MappedLibrary;
use crate::allocations::amount_of_allocation;
use crate::allocations::is_library;
use crate::cpu::state::CpuState;
use crate::cpu::worth::Worth;
use crate::kinds::Kind;
use crate::ledger::DropReason;
use crate::processes::Code;
use crate::processes::FileNumber;
use crate::processes::Object;
use crate::windows::Destination;
use crate::windows::Windows;

/// What user space has room for on x86-64: a program that tells of larger ones tells nonsense.
const LARGEST_OBJECT: u64 = 1 << 47;

/// A tebibyte: beyond that a program has no samples.
const LONGEST_INTERVAL: u64 = 1 << 40;

/// Stack copies that wait for tables in the continuous agent, bytes together.
const MOST_PENDING_BYTES_OF_SERVICES: usize = 16 << 20;

impl CpuState {
    /// Reads the mappings of processes that may not have been sampled before their first allocation is.
    pub(crate) fn prepare(&mut self, pids: &[u32]) {
        for &pid in pids {
            if self.processes.scan(pid) {
                self.register(pid);
            }
        }
    }

    /// Asks for the tables of a process with the library that the kernel has just heard of. Its first thousand
    /// allocations may come within milliseconds: too many stacks to copy until one of them tells which table is missing.
    pub(super) fn request_tables_of(&mut self, pid: u32) {
        // Of many processes of a host few are sampled in each of their objects.
        if !self.kinds.has(Kind::Alloc) && self.family.is_none() {
            return;
        }
        let Some(process) = self.processes.live_mut(pid) else {
            return;
        };
        let objects: Vec<Arc<Object>> = process
            .mappings
            .iter()
            .filter_map(|mapping| match &mapping.code {
                Code::Object(object) => Some(Arc::clone(object)),
                Code::Anonymous => None,
            })
            .collect();
        if !objects.iter().any(|object| is_library(&object.path)) {
            return;
        }
        for object in objects {
            self.tables.request(&object, &self.loader);
        }
    }

    /// Whether a file that was mapped has the library's name; then it will be looked into.
    pub(super) fn notice_library(&mut self, mapped: &Mapped<'_>) -> bool {
        let FileIdentity::Inode {
            major,
            minor,
            inode,
            ..
        } = mapped.file
        else {
            return false;
        };
        if !self.kinds.has(Kind::Alloc) {
            return false;
        }
        let file = FileNumber {
            device: (major, minor),
            inode,
        };
        let range = (mapped.start, mapped.start.saturating_add(mapped.length));
        let path = mapped.path.to_string_lossy();
        let library = MappedLibrary::of_path(mapped.pid, range, file, &path);
        let is_library = library.is_some();
        library.into_iter().for_each(|it| self.libraries.notice(it));
        is_library
    }

    /// What was allocated so far is nobody's.
    pub(crate) fn forget_heaps(&mut self) {
        self.heaps = LiveHeaps::recorded();
    }

    /// From now on what is in use is told window after window.
    pub(crate) fn follow_services(&mut self) {
        self.heaps = LiveHeaps::of_services();
        self.most_pending_bytes = MOST_PENDING_BYTES_OF_SERVICES;
    }

    pub(super) fn is_of_family(&self, pid: u32) -> bool {
        let family = self.family.as_ref();
        family.is_none_or(|family| family.contains(&pid))
    }

    /// Whether a process of the family may still run; another one may have got the id of one that has ended.
    pub(crate) fn has_family_left(&self) -> bool {
        let runs = |pid: &u32| std::fs::exists(format!("/proc/{pid}")).unwrap_or(true);
        self.family.iter().flatten().any(runs)
    }

    /// What was allocated and is in use at this time (CLOCK_MONOTONIC, nanoseconds).
    pub(crate) fn take_in_use(&mut self, time_ns: u64, windows: &mut Windows) {
        let refused = windows.in_use.take_refused();
        self.ledger.add(DropReason::AllocationNotFollowed, refused);
        windows.push_in_use(time_ns);
    }

    pub(super) fn allocated(
        &mut self,
        sample: &Sample<'_>,
        allocation: &Allocation,
        windows: &mut Windows,
    ) {
        if !self.is_of_family(sample.pid) || !self.times.contains(&sample.time_ns) {
            return;
        }
        if allocation.size > LARGEST_OBJECT || allocation.interval > LONGEST_INTERVAL {
            self.ledger.add(DropReason::AllocationImplausible, 1);
            return;
        }
        let process = (sample.pid, sample.process_start_ns);
        let in_use = &mut windows.in_use;
        let number = self.heaps.allocated(process, allocation, in_use);
        if number.is_none() {
            self.ledger.add(DropReason::AllocationNotFollowed, 1);
        }
        let worth = Worth::of_allocation(
            amount_of_allocation(sample.pid, allocation),
            number.unwrap_or(AllocationNumber::NONE),
        );
        let destination = Destination::Kinds([Kind::Alloc].into());
        self.sample(sample, destination, worth, windows);
    }

    pub(super) fn freed(&mut self, event: &Event<'_>, windows: &mut Windows) {
        if let Event::Freed {
            pid,
            time_ns,
            address,
            sequence,
        } = event
            && self.times.contains(time_ns)
        {
            let in_use = &mut windows.in_use;
            self.heaps.freed(*pid, *address, *sequence, in_use);
        }
    }

    /// A process has become another program.
    pub(super) fn replaced(&mut self, pid: u32, time_ns: u64, windows: &mut Windows) {
        if self.times.contains(&time_ns) {
            self.heaps.replaced(pid, &mut windows.in_use);
        }
        self.libraries.left(pid, time_ns);
    }
}
