//! A day of a small shop that does not exist: eight services in three regions, profiled all the time,
//! with planted truths ([`REGRESSION`], [`RENAME`], [`PERTURBATION`], [`SLOW_REGION`], [`LEAK`],
//! [`MISSING_SYMBOLS`]) that answers can be checked against.
//!
//! The day ends at the moment that is given, and all of it follows from the seed: what happens so long
//! before the end is the same whenever the end is. This crate sees no IO and no clock.
//!
//! ```
//! use candela_demo::Demo;
//!
//! let demo = Demo::new(1, 1_700_000_000_000_000_000);
//! let profile = demo.profiles().next().expect("a day has profiles");
//! assert_eq!(profile.validate(), Ok(()));
//! ```
#![forbid(unsafe_code)]

mod calls;
mod chains;
mod day;
mod deploys;
mod fleet;
mod generate;
mod heap;
mod palette;
mod programs;
mod random;
mod sampling;
mod truths;
mod waiting;

pub use crate::day::DAY;
pub use crate::deploys::Deploy;
pub use crate::generate::Demo;
pub use crate::sampling::PERIOD_NS;
pub use crate::truths::LEAK;
pub use crate::truths::Leak;
pub use crate::truths::MISSING_SYMBOLS;
pub use crate::truths::MissingSymbols;
pub use crate::truths::PERTURBATION;
pub use crate::truths::Perturbation;
pub use crate::truths::REGRESSION;
pub use crate::truths::RENAME;
pub use crate::truths::Regression;
pub use crate::truths::Rename;
pub use crate::truths::SLOW_REGION;
pub use crate::truths::SlowRegion;
