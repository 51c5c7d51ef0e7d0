//! Allocations of programs that have `candela-preload` in them: what they stand for, which still live, and how
//! the library gets there; and what else tells of allocations.

mod frames;
mod heaps;
mod library;
mod sources;
mod unseen;
mod weight;

pub(crate) use self::frames::callers_of_library;
pub(crate) use self::heaps::AllocationNumber;
pub(crate) use self::heaps::LiveHeaps;
pub(crate) use self::sources::AllocationSources;
pub use self::unseen::UnseenAllocations;
pub(crate) use self::weight::amount_of_allocation;
