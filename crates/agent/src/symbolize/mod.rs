//! From a window of places to a profile with names, off the sampling path.

mod jit;
mod kernel;
mod names;
mod off_cpu_reason;
mod profile;
mod scale;
mod selection;
mod stack_labels;

pub(crate) use self::names::SymbolOptions;
pub(crate) use self::names::Symbols;
pub(crate) use self::profile::ProfileHeader;
pub(crate) use self::profile::build_profile;
pub(crate) use self::scale::Scale;
pub use self::scale::event_type;
