//! The on-CPU source.

mod collector;
mod pending;
mod state;

pub(crate) use self::collector::CpuCollector;
pub(crate) use self::collector::CpuOptions;
