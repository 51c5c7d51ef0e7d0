//! Telling the kernel what processes have mapped, so that it walks their stacks itself.

use std::sync::Arc;

use candela_ebpf::Mapping;
use candela_ebpf::MappingKind;
use candela_ebpf::Sample;
use candela_ebpf::monotonic_ns;

use crate::cpu::state::CpuState;
use crate::cpu::thread_context::tell_thread_context;
use crate::ledger::DropReason;
use crate::processes::Code;
use crate::processes::Object;

/// A process with more executable mappings is not told to the kernel, where all processes share
/// 65 536 of them: its stacks come as copies, a few per second.
const MOST_MAPPINGS: usize = 8192;

impl CpuState {
    /// Registers the process of a sample that the kernel did not know, and the one that forked it: the kernel lets
    /// its next children inherit what it has, from their first instruction on.
    pub(super) fn make_known(&mut self, sample: &Sample<'_>) {
        let pid = sample.pid;
        let Some(process) = self.processes.live_mut(pid) else {
            return;
        };
        let was_registered = process.is_registered;
        if was_registered && sample.time_ns < process.registered_ns {
            return;
        }
        let (parent, began_ns) = (process.parent, process.began_ns);
        if let Some(parent) = parent {
            self.make_parent_known(parent, began_ns);
        }
        // With the parent its relatives have become known.
        let process = self.processes.live_mut(pid);
        let is_known = process.is_some_and(|process| process.is_registration_current());
        if was_registered || !is_known {
            self.register(pid);
        }
    }

    /// A parent that is seldom sampled itself, such as a server that forks for each connection.
    fn make_parent_known(&mut self, parent: u32, forked_ns: u64) {
        if !self.processes.is_live(parent) && !self.processes.scan(parent) {
            return;
        }
        let Some(process) = self.processes.live_mut(parent) else {
            return;
        };
        // It may have become another program, or another process.
        let is_parent = process.began_ns <= forked_ns;
        let can_be_registered = process.is_complete && process.mappings.len() <= MOST_MAPPINGS;
        let now_ns = monotonic_ns();
        if is_parent
            && can_be_registered
            && !process.is_registration_current()
            && !process.registration.is_too_early(now_ns)
        {
            self.register(parent);
        }
    }

    /// Registers what has changed, and with news of objects what waited for these.
    pub(super) fn register_changed(&mut self, has_news: bool) {
        let mut registrable: Vec<u32> = self.changed.drain().collect();
        if has_news {
            registrable.extend(self.unregistered.drain());
        }
        let now_ns = monotonic_ns();
        self.sort_by_age(&mut registrable);
        for pid in registrable {
            let Some(process) = self.processes.live_mut(pid) else {
                continue;
            };
            if process.is_registration_current() {
                continue;
            }
            if process.registration.is_too_early(now_ns) {
                self.changed.insert(pid);
                continue;
            }
            self.register(pid);
        }
    }

    /// Gives the kernel the mappings of a process, or notes it until they are all described.
    pub(super) fn register(&mut self, pid: u32) {
        let Some(kernel) = &self.kernel else {
            return;
        };
        // Nobody would take the mappings of an ended process out again.
        let Some(process) = self.processes.live_mut(pid) else {
            return;
        };
        let now_ns = monotonic_ns();
        process.registration.begin(now_ns, process.mappings.len());
        if process.mappings.len() > MOST_MAPPINGS {
            process.is_registered = false;
            self.ledger.add(DropReason::MappingsRefused, 1);
            return;
        }
        let mut mappings = Vec::new();
        for mapping in process.mappings.iter() {
            let length = mapping.end - mapping.start;
            let table = match &mapping.code {
                Code::Anonymous => None,
                Code::Object(object) => match object.description() {
                    None if object.is_readable() => {
                        self.unregistered.insert(pid);
                        return;
                    }
                    None | Some(None) => None,
                    Some(Some(description)) => {
                        let bias = description.bias(mapping.start, length, mapping.file_offset);
                        bias.zip(self.tables.kernel_id(object))
                    }
                },
            };
            mappings.push(Mapping {
                start: mapping.start,
                end: mapping.end,
                bias: table.map_or(0, |(bias, _)| bias),
                kind: table.map_or(MappingKind::FramePointer, |(_, id)| MappingKind::Table(id)),
            });
        }
        match kernel.replace_process_mappings(pid, &mappings) {
            Ok(()) => {
                process.note_registration(monotonic_ns());
                tell_thread_context(kernel, process);
                self.register_relatives(pid);
                self.request_tables_of(pid);
            }
            Err(error) => {
                process.is_registered = false;
                self.ledger.add(DropReason::MappingsRefused, 1);
                tracing::debug!(%error, pid, "mappings not registered");
            }
        }
    }

    /// A registered process's mappings are those of its forks, as long as none of them has mapped anything.
    fn register_relatives(&mut self, pid: u32) {
        let (Some(kernel), Some(process)) = (&self.kernel, self.processes.live_mut(pid)) else {
            return;
        };
        if !process.mappings.may_be_shared() {
            return;
        }
        let mappings = process.mappings.clone();
        for relative in self.processes.live() {
            let relative_pid = relative.identity.pid;
            if relative_pid == pid
                || !relative.mappings.is_shared_with(&mappings)
                || relative.is_registration_current()
            {
                continue;
            }
            match kernel.inherit_mappings(pid, relative_pid) {
                Ok(_) => relative.note_registration(monotonic_ns()),
                Err(error) => {
                    relative.is_registered = false;
                    tracing::debug!(%error, pid = relative_pid, "mappings not inherited");
                }
            }
        }
    }

    /// A slot has turned out to have no table: the kernel must follow frame pointers there.
    pub(super) fn register_all_with(&mut self, slot: u32) {
        let tables = &mut self.tables;
        let mut has_slot = |object: &Arc<Object>| tables.slot_of(object) == Some(slot);
        let mut concerned = Vec::new();
        for process in self.processes.live().filter(|it| it.is_registered) {
            let is_concerned = process.mappings.iter().any(|mapping| match &mapping.code {
                Code::Object(object) => has_slot(object),
                Code::Anonymous => false,
            });
            if is_concerned {
                process.is_registered = false;
                concerned.push(process.identity.pid);
            }
        }
        self.sort_by_age(&mut concerned);
        for pid in concerned {
            let process = self.processes.live_mut(pid);
            // With one of them its relatives are.
            if process.is_some_and(|process| !process.is_registered) {
                self.register(pid);
            }
        }
    }

    /// Parents before their children, which then share what these have.
    fn sort_by_age(&mut self, pids: &mut [u32]) {
        pids.sort_by_key(|&pid| {
            let process = self.processes.live_mut(pid);
            process.map(|process| process.identity.serial)
        });
    }
}
