//! Processes of which nothing but their samples is known.

use std::sync::Arc;

use candela_ebpf::Sample;

use crate::cpu::state::CpuState;
use crate::labels::ProcessFacts;
use crate::processes::Mappings;
use crate::processes::ProcessIdentity;
use crate::window::ProcessView;

impl CpuState {
    pub(super) fn kernel_thread(&self, pid: u32) -> ProcessView {
        ProcessView {
            identity: ProcessIdentity {
                pid,
                serial: 0,
                generation: 0,
            },
            labels: Arc::clone(&self.kernel_labels),
            unsettled: None,
            mappings: Mappings::default(),
        }
    }

    /// A process of which nothing but its sample is left.
    pub(super) fn unknown_process(&self, sample: &Sample<'_>) -> ProcessView {
        let facts = ProcessFacts {
            pid: sample.pid,
            command: sample.comm.to_string_lossy().into_owned(),
            ..ProcessFacts::default()
        };
        ProcessView {
            identity: ProcessIdentity {
                pid: sample.pid,
                serial: 0,
                generation: 0,
            },
            labels: Arc::new(self.naming.namer.labeler().labels(&facts)),
            unsettled: None,
            mappings: Mappings::default(),
        }
    }
}
