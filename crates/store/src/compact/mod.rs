//! Many small blocks to few large ones, and the sums of long times.
//!
//! What was flushed of an hour becomes one block, and the hours of a day become one: stacks and
//! symbols, most of a small block, are then stored once. The hour's job also makes the rollups:
//! sums over ten minutes and over an hour, which answer questions about weeks and stay when the
//! profiles themselves are gone.
//!
//! A job writes its blocks, checks them against those they were made from, and swaps them in one
//! transaction of the catalog. Done again after a crash it writes the same files.

mod checksum;
mod erase;
mod erase_left;
mod erase_sums;
mod job;
mod merge;
mod plan;
mod rollup;
mod run;
mod source;
mod tail;
mod throttle;
mod undo;
mod unfinished;

pub use erase::Erased;
pub use erase::Erasure;
pub(crate) use erase::job_of;
#[cfg(feature = "fuzzing")]
pub(crate) use merge::stack_counts;
pub(crate) use plan::Due;
pub use rollup::KEPT_LABELS;
pub(crate) use run::CompactionCounters;
pub(crate) use run::FirstError;
pub use tail::CUT_FRAME;
pub(crate) use throttle::Throttle;
pub(crate) use undo::BegunBlock;
pub(crate) use unfinished::KnownBlocks;
pub(crate) use unfinished::settle_merges;
