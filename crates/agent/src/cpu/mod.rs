//! The kernel source: what runs on CPUs, what is off them, page faults, and allocations.

mod allocated;
mod collector;
mod pending;
mod raw_stack;
mod state;
mod strangers;
mod thread_context;
mod worth;

pub(crate) use self::collector::CpuCollector;
pub(crate) use self::collector::CpuOptions;
pub(crate) use self::collector::SamplingPlan;
