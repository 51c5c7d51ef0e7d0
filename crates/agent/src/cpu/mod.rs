//! The CPU source: what runs on CPUs, and what is off them.

mod collector;
mod pending;
mod state;

pub(crate) use self::collector::CpuCollector;
pub(crate) use self::collector::CpuOptions;
