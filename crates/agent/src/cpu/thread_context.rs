//! Telling the kernel where a process's threads tell of their spans.

use candela_ebpf::KernelTables;

use crate::processes::Process;
use crate::processes::ThreadContext;
use crate::processes::find_thread_context;

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
