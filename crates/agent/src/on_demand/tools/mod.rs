//! Profilers of the host, run where a request names their path.

mod bcc_profile;
mod counts;
mod perf;
mod process;
mod trust;

pub(crate) use self::bcc_profile::bcc_profile;
pub(crate) use self::perf::perf;
pub use self::trust::trusted as trusted_program;
