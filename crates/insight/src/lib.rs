//! What a change between two sets of samples is worth: a ratio, the interval that holds it with 95 %
//! confidence, and how likely chance alone makes as much.
//!
//! Samples of a function are told apart by *cluster*: what is independent of the others, an instance of
//! a service or a window of time. Pooled samples alone say too little: instances differ for reasons of
//! their own, and whoever forgets that finds a regression in one of three comparisons in which nothing
//! changed (`tests/calibration.rs`).
//!
//! | step | module |
//! |---|---|
//! | what is compared | [`Counts`], [`Side`], [`Pair`] |
//! | what "unchanged" means: share, absolute by exposure, or robust by the median of ratios | [`Normalization`] |
//! | what chance does to a sum of samples, also of samples that weigh differently | `sampling` |
//! | how much more than that clusters differ | `dispersion` |
//! | functions with few samples: the exact test | `exact` |
//! | all others: Student's t of the logarithm of the ratio | `log_ratio` |
//! | many functions at a time | `fdr` |
//! | nodes of a tree, from the root down | [`compare_nodes`] |
//! | what is significant once more, without a model: clusters are exchanged between the sides | `permutation` |
//! | all of it in one call | [`compare()`] |
//!
//! This crate sees no storage, no clock and no network.
//!
//! ```
//! use candela_insight::{ChangeClass, Comparison, Counts, Normalization, Pair, Side, compare};
//!
//! let side = |samples: [f64; 4]| Side { all: Counts::of_samples(samples.into()), exposure: Vec::new() };
//! let comparison = Comparison {
//!     normalization: Normalization::Share,
//!     fdr: 0.05,
//!     before: side([10_000.0; 4]),
//!     after: side([10_000.0; 4]),
//!     is_paired: false,
//!     is_sampled: true,
//!     seed: 1,
//! };
//! let parse = Pair {
//!     before: Counts::of_samples(vec![510.0, 490.0, 505.0, 495.0]),
//!     after: Counts::of_samples(vec![700.0, 690.0, 715.0, 695.0]),
//! };
//! let compared = compare(&comparison, std::slice::from_ref(&parse), std::slice::from_ref(&parse));
//! let change = &compared.functions[0].own;
//! assert_eq!(change.class, ChangeClass::Changed);
//! assert!(change.low > Some(1.2) && change.high < Some(1.6));
//! ```
#![forbid(unsafe_code)]

mod arrangements;
mod change;
mod compare;
mod counts;
mod design;
mod dispersion;
mod distributions;
mod exact;
mod fdr;
mod hierarchy;
mod log_ratio;
mod normalization;
mod permutation;
mod sampling;

pub use crate::change::Change;
pub use crate::change::ChangeClass;
pub use crate::change::ChangeFilter;
pub use crate::change::FunctionChange;
pub use crate::compare::Compared;
pub use crate::compare::Comparison;
pub use crate::compare::compare;
pub use crate::counts::Counts;
pub use crate::counts::Pair;
pub use crate::counts::Side;
pub use crate::fdr::adjusted;
pub use crate::hierarchy::compare_nodes;
pub use crate::normalization::Normalization;
pub use crate::permutation::Confirmation;
