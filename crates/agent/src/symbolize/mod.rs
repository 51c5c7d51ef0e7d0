//! From a window of places to a profile with names, off the sampling path.

mod jit;
mod kernel;
mod names;
mod profile;

pub(crate) use self::names::SymbolOptions;
pub(crate) use self::names::Symbols;
pub(crate) use self::profile::ProfileHeader;
pub(crate) use self::profile::build_profile;
