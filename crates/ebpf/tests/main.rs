//! The programs in the kernel.

mod host;
mod measure;
mod recorded_twins;
mod support;
mod twins;

#[path = "../../unwind/tests/support/recorded.rs"]
#[expect(dead_code, reason = "the tests that record them use the rest")]
mod recorded;
