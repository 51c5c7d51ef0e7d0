//! Events of allocations, among those of the CPU source.

use std::sync::Arc;

use candela_ebpf::Allocation;
use candela_ebpf::Event;
use candela_ebpf::Sample;

use crate::allocations::AllocationNumber;
use crate::allocations::LiveHeaps;
use crate::allocations::amount_of_allocation;
use crate::cpu::state::CpuState;
use crate::cpu::worth::Worth;
use crate::kinds::Kind;
use crate::ledger::DropReason;
use crate::processes::Code;
use crate::processes::Object;
use crate::symbolize::Scale;
use crate::windows::Destination;
use crate::windows::WindowId;
use crate::windows::Windows;

impl CpuState {
    /// Reads the mappings of processes that may not have been sampled before their first allocation is.
    pub(crate) fn prepare(&mut self, pids: &[u32]) {
        for &pid in pids {
            if self.processes.scan(pid) {
                self.register(pid);
            }
        }
    }

    /// Asks for the tables of a process that the kernel has just heard of. Its first thousand allocations may come
    /// within milliseconds: too many stacks to copy until one of them tells which table is missing.
    pub(super) fn request_tables_of(&mut self, pid: u32) {
        if !self.kinds.has(Kind::Alloc) {
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
        for object in objects {
            self.tables.request(&object, &self.loader);
        }
    }

    /// What was allocated so far is nobody's.
    pub(crate) fn forget_heaps(&mut self) {
        self.heaps = LiveHeaps::default();
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

    /// What was allocated and is in use now.
    pub(crate) fn take_in_use(&self, windows: &mut Windows) {
        let allocated = windows.of(WindowId::Kind(Kind::Alloc));
        let in_use = allocated.in_use(|number| self.heaps.is_in_use(number));
        windows.push(in_use, Scale::in_use());
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
        let number = self.heaps.allocated(sample.pid, allocation);
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

    pub(super) fn freed(&mut self, event: &Event<'_>) {
        if let Event::Freed {
            pid,
            time_ns,
            address,
            sequence,
        } = event
            && self.times.contains(time_ns)
        {
            self.heaps.freed(*pid, *address, *sequence);
        }
    }

    /// A process has become another program.
    pub(super) fn replaced(&mut self, pid: u32, time_ns: u64) {
        if self.times.contains(&time_ns) {
            self.heaps.replaced(pid);
        }
    }
}
