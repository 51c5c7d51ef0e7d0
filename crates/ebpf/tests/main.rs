//! The programs in the kernel.

mod host;
mod support;

#[path = "../../unwind/tests/support/recorded.rs"]
#[expect(dead_code, reason = "the tests that record them use the rest")]
mod recorded;
