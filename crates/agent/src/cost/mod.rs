//! What the agent costs, and how it stays within its budget.

mod assumed;
mod budget;
mod keeper;
mod memory;
mod programs;
mod thread_clocks;

pub(crate) use self::keeper::CostKeeper;
pub(crate) use self::memory::resident_bytes;
pub(crate) use self::thread_clocks::ThreadClocks;
