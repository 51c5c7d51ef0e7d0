//! Comparisons of made-up fleets, whose truth is known.

mod calibration;
mod hierarchy;
mod properties;
mod support;
