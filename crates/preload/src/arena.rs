//! Memory for allocations that are made while the real allocator is being looked up.

use core::cell::UnsafeCell;
use core::ptr;
use core::sync::atomic::AtomicUsize;
use core::sync::atomic::Ordering;

/// The lookup itself asks for a few dozen bytes, if any.
const BYTES: usize = 16 * 1024;

/// What every allocation is a multiple of, and aligned to at least.
const GRAIN: usize = 16;

#[repr(align(4096))]
struct Memory(UnsafeCell<[u8; BYTES]>);

// SAFETY: Nobody looks into it but the owners of pieces, and no two pieces overlap.
unsafe impl Sync for Memory {}

static MEMORY: Memory = Memory(UnsafeCell::new([0; BYTES]));
static USED: AtomicUsize = AtomicUsize::new(0);

/// Zeroed memory that is never given back, null when there is no more. `alignment` is a power of two.
pub(crate) fn allocate(size: usize, alignment: usize) -> *mut u8 {
    let alignment = alignment.max(GRAIN);
    let Some(room) = size.checked_add(alignment) else {
        return ptr::null_mut();
    };
    let claim = |used: usize| used.checked_add(room).filter(|&end| end <= BYTES);
    let Ok(start) = USED.fetch_update(Ordering::Relaxed, Ordering::Relaxed, claim) else {
        return ptr::null_mut();
    };
    let base: *mut u8 = MEMORY.0.get().cast();
    let mask = alignment - 1;
    base.wrapping_add(start)
        .map_addr(|address| (address + mask) & !mask)
}

/// Whether `address` is of this arena.
#[inline]
pub(crate) fn owns(address: *const u8) -> bool {
    (address as usize).wrapping_sub(MEMORY.0.get() as usize) < BYTES
}

/// How many bytes can be read from `address`, which is of this arena: at least what was asked for.
pub(crate) fn readable_bytes(address: *const u8) -> usize {
    BYTES - (address as usize - MEMORY.0.get() as usize)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_are_aligned_apart_and_end() {
        let first = allocate(3, 1);
        let second = allocate(100, 64);
        assert!(owns(first) && owns(second));
        assert_eq!((first as usize % GRAIN, second as usize % 64), (0, 0));
        assert!(second as usize >= first as usize + 3);
        assert!(readable_bytes(second) >= 100);
        assert!(allocate(BYTES, 1).is_null() && allocate(usize::MAX, 1).is_null());
        assert!(!owns(ptr::null()) && !owns((&raw const USED).cast()));
    }
}
