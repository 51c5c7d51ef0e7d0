//! Telling the kernel where a process's threads tell of their spans, and what they tell besides.

use std::sync::Arc;

use candela_ebpf::KernelTables;
use candela_ebpf::LabelKey;
use candela_ebpf::Sample;

use crate::cpu::state::CpuState;
use crate::labels::AttributeKey;
use crate::labels::published_context;
use crate::processes::Process;
use crate::processes::ThreadContext;
use crate::processes::find_context;
use crate::processes::find_thread_context;
use crate::sample_context::SampleContext;

impl CpuState {
    /// What a sample tells of the work of its thread.
    pub(super) fn context_of(&mut self, sample: &Sample<'_>) -> Option<SampleContext> {
        let numbers = sample.labels.iter().filter_map(|(key, _)| match key {
            LabelKey::Number(number) => Some(usize::from(number)),
            LabelKey::Text(_) => None,
        });
        let numbers: Vec<usize> = numbers.collect();
        let highest = numbers.iter().copied().max();
        let keys = match (highest, self.processes.get_mut(sample.pid)) {
            (Some(highest), Some(process)) => attribute_keys(process, highest, sample.time_ns),
            _ => Arc::default(),
        };
        let is_cut = |number: &usize| keys.get(*number).is_some_and(|key| key.is_cut);
        self.labels_cut += u64::from(numbers.iter().any(is_cut));
        SampleContext::of(sample, &keys)
    }
}

/// The names of a process's attributes, which it may have added to up to this number.
fn attribute_keys(process: &mut Process, highest: usize, now_ns: u64) -> Arc<[AttributeKey]> {
    let is_new = highest >= process.attribute_keys.len();
    if is_new && process.attribute_keys_wait.try_now(now_ns) {
        let pid = process.identity.pid;
        let address = process.context_address.or_else(|| find_context(pid));
        let published = address.and_then(|address| published_context(pid, address));
        if let Some(published) = published {
            process.attribute_keys = published.attribute_keys.into();
        }
    }
    Arc::clone(&process.attribute_keys)
}

/// Lets samples of a process that the kernel knows tell of their spans.
pub(crate) fn tell_thread_context(kernel: &KernelTables, process: &mut Process) {
    let pid = process.identity.pid;
    let source = match find_thread_context(pid, &process.mappings) {
        ThreadContext::Absent => {
            process.thread_context_wait = None;
            None
        }
        ThreadContext::Unresolved => {
            process.thread_context_wait.get_or_insert_default();
            None
        }
        ThreadContext::At(source) => {
            process.thread_context_wait = None;
            Some(source)
        }
    };
    if let Err(error) = kernel.set_trace_source(pid, source) {
        tracing::debug!(%error, pid, "thread context not told to the kernel");
    }
}
