//! The kernel source: what runs on CPUs, what is off them, page faults, and allocations; and what there is without BPF.

mod allocated;
mod collector;
mod event_counts;
mod pending;
mod raw_stack;
mod registration;
mod state;
mod strangers;
mod thread_context;
mod view;
mod waiting;
mod waker;
mod without_bpf;
mod worth;

pub(crate) use self::collector::CpuCollector;
pub(crate) use self::collector::CpuOptions;
pub(crate) use self::collector::SAMPLING_PROGRAM;
pub(crate) use self::collector::SamplingPlan;
pub(crate) use self::event_counts::EventCounts;
pub(crate) use self::event_counts::EventKind;
pub(crate) use self::view::Naming;
pub(crate) use self::without_bpf::TaskCollector;
