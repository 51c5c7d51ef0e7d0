//! Allocations of programs that have `candela-preload` in them: what they stand for, which still live, and how
//! the library gets there and is found; and what else tells of allocations.

mod frames;
mod heaps;
mod held;
mod in_use;
mod leftovers;
mod library;
mod library_file;
mod loaded;
mod noticed;
mod sources;
mod unseen;
mod used_files;
mod watched;
mod weight;

pub(crate) use self::frames::callers_of_library;
pub(crate) use self::frames::is_library;
pub(crate) use self::heaps::AllocationNumber;
pub(crate) use self::heaps::LiveHeaps;
pub(crate) use self::in_use::InUse;
pub(crate) use self::library::PreloadedLibrary;
pub(crate) use self::loaded::LoadedLibrary;
pub(crate) use self::loaded::MappedLibrary;
pub(crate) use self::loaded::loaded_libraries;
pub(crate) use self::sources::AllocationSources;
pub use self::unseen::UnseenAllocations;
pub(crate) use self::watched::WatchedLibraries;
pub(crate) use self::weight::amount_of_allocation;
