//! The kernel source: what runs on CPUs, what is off them, and page faults.

mod collector;
mod pending;
mod raw_stack;
mod state;
mod thread_context;
mod worth;

pub(crate) use self::collector::CpuCollector;
pub(crate) use self::collector::CpuOptions;
pub(crate) use self::collector::SamplingPlan;
