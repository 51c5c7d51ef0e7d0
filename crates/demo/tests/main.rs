//! What is made up is what it is said to be.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on should stop")]

mod calibration;
mod truths;
