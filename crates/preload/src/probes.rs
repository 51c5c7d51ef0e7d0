//! Where a uprobe is attached.
//!
//! Both begin with a one-byte nop: the kernel emulates it, of every version that has uprobes. Any other
//! instruction may have to be single-stepped, for some twenty times the cost.

use core::arch::naked_asm;

/// The name of [`candela_alloc_sampled`].
pub const SAMPLED: &str = "candela_alloc_sampled";

/// The name of [`candela_alloc_freed`].
pub const FREED: &str = "candela_alloc_freed";

/// The bit of `sequence` that says that the end of the allocation will be told.
pub const IS_FOLLOWED: u64 = 1 << 32;

/// An allocation of `size` bytes at `address` was picked. `sequence` tells it from others that had the
/// address before, in its low half; the rest is [`IS_FOLLOWED`]. `interval` is the mean distance in bytes.
#[cfg_attr(candela_preload, unsafe(no_mangle))]
#[unsafe(naked)]
pub extern "C" fn candela_alloc_sampled(address: u64, size: u64, sequence: u64, interval: u64) {
    naked_asm!(".cfi_startproc", "nop", "ret", ".cfi_endproc")
}

/// An allocation that was picked ends.
#[cfg_attr(candela_preload, unsafe(no_mangle))]
#[unsafe(naked)]
pub extern "C" fn candela_alloc_freed(address: u64, sequence: u64) {
    naked_asm!(".cfi_startproc", "nop", "ret", ".cfi_endproc")
}
