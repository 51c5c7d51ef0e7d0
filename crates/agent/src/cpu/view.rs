//! What a sample's window needs of its process: labels that are made once, and better later.

use std::sync::Arc;

use candela_ebpf::Sample;
use candela_model::Labels;

use crate::filters::SampleFilters;
use crate::labels::Named;
use crate::labels::Namer;
use crate::labels::ProcessFacts;
use crate::processes::Process;
use crate::window::ProcessView;

/// How many samples of a process without command line look for one. Few programs have none, but one
/// whose labels are wrong has them for good.
const LABEL_ATTEMPTS: u8 = 10;

/// How processes are named, and which of them nobody wants.
#[derive(Clone, Debug)]
pub(crate) struct Naming {
    pub(crate) namer: Arc<Namer>,
    pub(crate) filters: SampleFilters,
}

// === impl Naming ===

impl Naming {
    /// A process as it is at a sample; whether that is wanted, it knows itself.
    pub(super) fn view_of(&self, process: &mut Process, sample: &Sample<'_>) -> ProcessView {
        let known = self.known_labels(process, sample);
        let labels = known.unwrap_or_else(|| self.new_labels(process, sample));
        ProcessView {
            identity: process.identity,
            labels,
            unsettled: process.unsettled.clone(),
            mappings: process.mappings.clone(),
        }
    }

    fn known_labels(&self, process: &mut Process, sample: &Sample<'_>) -> Option<Arc<Labels>> {
        let labels = process.labels.clone()?;
        let named = if let Some(unsettled) = &process.unsettled {
            unsettled.named_again(sample.time_ns)
        } else if sample.time_ns >= process.names_again_ns {
            process.names_again_ns = u64::MAX;
            let facts = facts_of(process, sample);
            // One that has ended keeps the names that it had.
            let is_there = facts.cgroup.container_id.is_some();
            is_there.then(|| self.namer.name(facts, sample.time_ns))
        } else {
            None
        };
        match named {
            Some(named) => Some(self.take(process, named)),
            None => Some(labels),
        }
    }

    fn new_labels(&self, process: &mut Process, sample: &Sample<'_>) -> Arc<Labels> {
        process.mark_program_sampled();
        let facts = facts_of(process, sample);
        // A process in the middle of its exec has no command line yet.
        process.label_attempts += 1;
        let is_final = !facts.arguments.is_empty() || process.label_attempts >= LABEL_ATTEMPTS;
        let labels = self.take(process, self.namer.name(facts, sample.time_ns));
        if !is_final {
            process.labels = None;
            process.is_unwanted = false;
        }
        labels
    }

    fn take(&self, process: &mut Process, named: Named) -> Arc<Labels> {
        // What a runtime is being asked for may be what the rules are about.
        process.is_unwanted = named.unsettled.is_none() && !self.filters.wants(&named.labels);
        process.labels = Some(Arc::clone(&named.labels));
        process.unsettled = named.unsettled;
        process.names_again_ns = named.again_ns;
        named.labels
    }
}

fn facts_of(process: &Process, sample: &Sample<'_>) -> ProcessFacts {
    let pid = process.identity.pid;
    // A process may give itself another name than its exec did, and the thread of the sample may have its own.
    let now = std::fs::read_to_string(format!("/proc/{pid}/comm")).unwrap_or_default();
    let command = match (now.trim_end(), process.command.as_str()) {
        ("", "") => sample.comm.to_string_lossy(),
        ("", command) | (command, _) => command.into(),
    };
    ProcessFacts {
        pid,
        ..ProcessFacts::read(
            namesake(process).unwrap_or(pid),
            &command,
            process.executable(),
            process.context_address,
        )
    }
}

/// Who has the names of a process that is gone: its parent runs the same program in the same place, at least as a rule.
fn namesake(process: &Process) -> Option<u32> {
    let executable = format!("/proc/{}/exe", process.identity.pid);
    match std::fs::read_link(executable) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => process.parent,
        _ => None,
    }
}
