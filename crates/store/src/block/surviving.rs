//! Damage that the parquet crate answers with a panic.

use std::panic::AssertUnwindSafe;
use std::panic::catch_unwind;

use crate::error::ReadFault;

/// Runs what decodes a file. The parquet crate panics on some of what cannot be, and a query, or a
/// start, is to go on without the block. A file whose checksum is right is only such if somebody
/// made it so, but then each reader would fall over it.
pub(super) fn surviving<T>(decode: impl FnOnce() -> Result<T, ReadFault>) -> Result<T, ReadFault> {
    let decoded = catch_unwind(AssertUnwindSafe(decode));
    decoded.unwrap_or_else(|_| Err("it cannot be decoded at all".into()))
}
