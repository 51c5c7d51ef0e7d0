//! The BPF programs, their loader and the typed events they emit.
//!
//! A [`Sampler`] takes a sample of every busy CPU at a fixed rate: the kernel stack and the user
//! stack, walked in the kernel by compact unwind tables of `candela-unwind`. Where a table or a
//! mapping is not there yet the sample carries registers and a copy of the stack instead, so
//! nothing is lost. It also tells when processes fork, exec, exit and map code, promptly enough
//! that tables can be there before the first sample.
//!
//! The crate never sees labels, symbols, files of the profiled processes, the network or formats.
//! It needs Linux 6.1 or newer with BTF, x86-64, and CAP_BPF with CAP_PERFMON. Without these a [`TaskSampler`]
//! takes samples of processes of one's own, each with a copy of its stack. A [`SwitchRecorder`] tells every switch of
//! every CPU.
//!
//! # Example
//!
//! ```no_run
//! use candela_ebpf::{Event, Options, Sampler};
//! use std::time::Duration;
//!
//! let mut sampler = Sampler::start(&Options { rate_hz: 99, ..Options::default() })?;
//! let tables = sampler.kernel_tables();
//! loop {
//!     sampler.poll(Duration::from_millis(100), &mut |event| match event {
//!         Event::Sample(sample) => println!("{}: {:?}", sample.pid, sample.user_frames),
//!         Event::Mapped(mapped) => {
//!             // Build the file's table on another thread, then:
//!             // tables.upload_table(id, &table)?;
//!             // tables.add_process_mappings(mapped.pid, &[mapping])?;
//!             println!("{} maps {:?}", mapped.pid, mapped.path);
//!         }
//!         other => println!("{other:?}"),
//!     })?;
//! #   let _ = &tables;
//! }
//! # #[allow(unreachable_code)]
//! # Ok::<(), candela_ebpf::Error>(())
//! ```

mod allocations;
mod arena;
mod bpf_map;
mod capabilities;
mod clock;
mod cost;
mod counters;
mod defect;
mod error;
mod event;
mod explicit;
mod faults;
mod held_records;
mod host;
mod kernel_tables;
mod life;
mod loader;
mod mapping_store;
mod memory_map;
mod off_cpu;
mod options;
mod pace;
mod perf_counter;
mod perf_event;
mod perf_ring;
mod polling;
mod precedence;
mod private_tracefs;
mod privileges;
mod program_runs;
mod record;
mod record_numbers;
mod refusal;
mod region;
mod ring;
mod sample_reader;
mod sampler;
mod sideband;
mod switches;
mod table_store;
mod task_record;
mod task_sampler;
mod task_threads;
mod thread_labels;
mod thread_variable;
mod thread_visit;
mod tracefs;
mod tracepoints;

pub use allocations::AllocationWatch;
pub use capabilities::{Check, capabilities};
pub use clock::{Clock, monotonic_ns};
pub use cost::ProgramCost;
pub use counters::Counters;
pub use defect::defect;
pub use error::Error;
pub use event::{
    Allocation, Event, FileIdentity, LockWait, Mapped, Sample, TraceContext, UserContext,
};
pub use explicit::{ExplicitEvent, ExplicitEventError, MOST_EXPLICIT_EVENTS};
pub use kernel_tables::{KernelTables, MemoryUse, TableUse};
pub use options::{
    AllocationProbes, LONGEST_OFF_CPU_MEAN_NS, MAX_STACK_COPY_BYTES, Options, RATE_RANGE_HZ,
    Target, Waits, Wakers,
};
pub use pace::Pace;
pub use perf_counter::{CounterSpace, PerfCounter};
pub use precedence::Precedence;
pub use privileges::{CAPABILITIES, Capability, GRANT};
pub use region::{Mapping, MappingKind, TableId};
pub use sampler::Sampler;
pub use switches::{Switch, SwitchRecorder};
pub use task_sampler::{TaskCounters, TaskSampler};
pub use thread_labels::{LabelKey, ThreadLabels};
pub use thread_variable::{BlockVector, ContextFormat, ThreadVariable, TraceSource};
pub use tracepoints::check_tracepoints;
