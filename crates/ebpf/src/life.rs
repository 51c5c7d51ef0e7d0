//! The life of processes: put into the order of time, applied to the kernel's mappings, passed on.

use crate::Error;
use crate::bpf_map::BpfMap;
use crate::event::Event;
use crate::kernel_tables::KernelTables;
use crate::record::LifeRecord;
use crate::sideband::{SidebandBody, SidebandRecord};
use std::collections::HashSet;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;

/// Something that happened to a process, before it is put into the order of time.
#[derive(Debug)]
pub(crate) enum LifeEvent {
    Life(LifeRecord),
    Sideband(SidebandRecord),
}

/// Keeps the kernel's mappings in step with the life of processes, and passes the events on.
pub(crate) struct LifeKeeper<'a> {
    pub(crate) kernel_tables: &'a KernelTables,
    pub(crate) targets: &'a mut Option<HashSet<u32>>,
    /// The same set in the kernel, which adds forks itself.
    pub(crate) target_pids: &'a BpfMap,
    pub(crate) sideband_lost: &'a mut u64,
}

// === impl LifeEvent ===

impl LifeEvent {
    pub(crate) fn time_ns(&self) -> u64 {
        match self {
            LifeEvent::Life(
                LifeRecord::Fork { time_ns, .. } | LifeRecord::Exit { time_ns, .. },
            ) => *time_ns,
            LifeEvent::Sideband(record) => record.time_ns,
        }
    }
}

// === impl LifeKeeper ===

impl LifeKeeper<'_> {
    pub(crate) fn deliver(&mut self, event: &LifeEvent, handler: &mut dyn FnMut(Event<'_>)) {
        match event {
            LifeEvent::Life(record) => self.deliver_life(*record, handler),
            LifeEvent::Sideband(record) => self.deliver_sideband(record, handler),
        }
    }

    fn deliver_life(&mut self, record: LifeRecord, handler: &mut dyn FnMut(Event<'_>)) {
        match record {
            LifeRecord::Fork {
                pid,
                parent,
                time_ns,
            } => {
                if let Some(targets) = self.targets {
                    targets.insert(pid);
                }
                self.note(
                    pid,
                    self.kernel_tables.forked(parent, pid, time_ns).map(|_| ()),
                );
                handler(Event::Fork {
                    pid,
                    parent,
                    time_ns,
                });
            }
            LifeRecord::Exit { pid, time_ns } => {
                if let Some(targets) = self.targets {
                    targets.remove(&pid);
                    self.note(pid, self.target_pids.delete(pid));
                }
                self.note(pid, self.kernel_tables.remove_process(pid));
                handler(Event::Exit { pid, time_ns });
            }
        }
    }

    fn deliver_sideband(&mut self, record: &SidebandRecord, handler: &mut dyn FnMut(Event<'_>)) {
        let time_ns = record.time_ns;
        match &record.body {
            SidebandBody::Exec { pid, comm } if self.is_wanted(*pid) => {
                self.note(*pid, self.kernel_tables.remove_process(*pid));
                handler(Event::Exec {
                    pid: *pid,
                    time_ns,
                    comm: OsStr::from_bytes(comm),
                });
            }
            SidebandBody::Mapped(mapping) if self.is_wanted(mapping.pid) => {
                handler(mapping.to_event(time_ns));
            }
            SidebandBody::Lost { records } => {
                *self.sideband_lost += records;
                handler(Event::SidebandLost { records: *records });
            }
            SidebandBody::Exec { .. } | SidebandBody::Mapped(_) => {}
        }
    }

    fn is_wanted(&self, pid: u32) -> bool {
        self.targets
            .as_ref()
            .is_none_or(|targets| targets.contains(&pid))
    }

    /// A process whose mappings could not be kept in step is walked by user space instead.
    fn note(&self, pid: u32, result: Result<(), Error>) {
        if let Err(error) = result {
            tracing::debug!(pid, %error, "mappings not updated");
        }
    }
}
