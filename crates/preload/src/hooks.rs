//! The functions that stand before those of the C library.
//!
//! Each calls the next one of its name and counts what came of it. What begins life is counted afterwards and
//! what ends it before, so that an address is never told twice at a time. `reallocarray` is not among them: C
//! libraries call `realloc` for it, as they call `malloc` for `strdup` and the like.

use core::ffi::c_int;
use core::ptr;

use crate::arena;
use crate::live::LIVE;
use crate::next;
use crate::sampling::allocated;
use crate::sampling::freed;
use crate::sampling::tell_freed;
use crate::thread::nesting;

const ENOMEM: c_int = 12;
const EINVAL: c_int = 22;
const PAGE_BYTES: usize = 4096;

/// `malloc(3)`.
///
/// # Safety
/// As in C.
#[cfg_attr(candela_preload, unsafe(no_mangle))]
pub unsafe extern "C" fn malloc(size: usize) -> *mut u8 {
    // SAFETY: The C function of this name.
    let Some(next) = (unsafe { next::MALLOC.get::<next::Malloc>() }) else {
        return without_next(1, size);
    };
    // SAFETY: The caller's argument.
    counted(unsafe { next(size) }, size)
}

/// `calloc(3)`.
///
/// # Safety
/// As in C.
#[cfg_attr(candela_preload, unsafe(no_mangle))]
pub unsafe extern "C" fn calloc(count: usize, size: usize) -> *mut u8 {
    // SAFETY: The C function of this name.
    let Some(next) = (unsafe { next::CALLOC.get::<next::Calloc>() }) else {
        return match count.checked_mul(size) {
            Some(bytes) => without_next(1, bytes),
            None => without_next(1, usize::MAX),
        };
    };
    // SAFETY: The caller's arguments. It succeeds only where the product is no overflow.
    let address = nesting(|| unsafe { next(count, size) });
    counted(address, count.wrapping_mul(size))
}

/// `free(3)`.
///
/// # Safety
/// As in C.
#[cfg_attr(candela_preload, unsafe(no_mangle))]
pub unsafe extern "C" fn free(address: *mut u8) {
    if address.is_null() || arena::owns(address) {
        return;
    }
    freed(address);
    // SAFETY: The C function of this name, and the caller's argument.
    unsafe {
        if let Some(next) = next::FREE.get::<next::Free>() {
            next(address);
        }
    }
}

/// `realloc(3)`: the end of one allocation and the begin of another.
///
/// # Safety
/// As in C.
#[cfg_attr(candela_preload, unsafe(no_mangle))]
pub unsafe extern "C" fn realloc(address: *mut u8, size: usize) -> *mut u8 {
    if address.is_null() {
        // SAFETY: What C says of this case.
        return unsafe { malloc(size) };
    }
    if arena::owns(address) {
        // SAFETY: The caller's address.
        return unsafe { moved_out_of_arena(address, size) };
    }
    // SAFETY: The C function of this name.
    let Some(next) = (unsafe { next::REALLOC.get::<next::Realloc>() }) else {
        return ptr::null_mut();
    };
    // Forgotten before another thread can get the same address, told when it is known to have ended.
    let sequence = LIVE.remove(address as usize);
    // SAFETY: The caller's arguments.
    let moved = nesting(|| unsafe { next(address, size) });
    if let Some(sequence) = sequence {
        let has_failed = moved.is_null() && size != 0;
        // Then the old one lives on, if there is still room to remember it.
        let lives_on = has_failed && LIVE.insert(address as usize, sequence);
        if !lives_on {
            tell_freed(address, sequence);
        }
    }
    counted(moved, size)
}

/// `posix_memalign(3)`.
///
/// # Safety
/// As in C.
#[cfg_attr(candela_preload, unsafe(no_mangle))]
pub unsafe extern "C" fn posix_memalign(
    result: *mut *mut u8,
    alignment: usize,
    size: usize,
) -> c_int {
    // SAFETY: The C function of this name.
    let Some(next) = (unsafe { next::POSIX_MEMALIGN.get::<next::PosixMemalign>() }) else {
        if !alignment.is_power_of_two() || !alignment.is_multiple_of(size_of::<usize>()) {
            return EINVAL;
        }
        // SAFETY: Both are what they must be there.
        let address = unsafe { aligned(&next::MEMALIGN, alignment, size) };
        if address.is_null() {
            return ENOMEM;
        }
        // SAFETY: The caller's place for the result.
        unsafe { *result = address };
        return 0;
    };
    // SAFETY: The caller's arguments.
    let error = nesting(|| unsafe { next(result, alignment, size) });
    if error == 0 {
        // SAFETY: It has just been written.
        counted(unsafe { *result }, size);
    }
    error
}

/// `aligned_alloc(3)`.
///
/// # Safety
/// As in C.
#[cfg_attr(candela_preload, unsafe(no_mangle))]
pub unsafe extern "C" fn aligned_alloc(alignment: usize, size: usize) -> *mut u8 {
    // SAFETY: The caller's arguments.
    unsafe { aligned(&next::ALIGNED_ALLOC, alignment, size) }
}

/// `memalign(3)`.
///
/// # Safety
/// As in C.
#[cfg_attr(candela_preload, unsafe(no_mangle))]
pub unsafe extern "C" fn memalign(alignment: usize, size: usize) -> *mut u8 {
    // SAFETY: The caller's arguments.
    unsafe { aligned(&next::MEMALIGN, alignment, size) }
}

/// `valloc(3)`.
///
/// # Safety
/// As in C.
#[cfg_attr(candela_preload, unsafe(no_mangle))]
pub unsafe extern "C" fn valloc(size: usize) -> *mut u8 {
    // SAFETY: The C function of this name.
    let Some(next) = (unsafe { next::VALLOC.get::<next::Malloc>() }) else {
        return without_next(PAGE_BYTES, size);
    };
    // SAFETY: The caller's argument.
    counted(nesting(|| unsafe { next(size) }), size)
}

/// `pvalloc(3)`.
///
/// # Safety
/// As in C.
#[cfg_attr(candela_preload, unsafe(no_mangle))]
pub unsafe extern "C" fn pvalloc(size: usize) -> *mut u8 {
    // SAFETY: The C function of this name.
    let Some(next) = (unsafe { next::PVALLOC.get::<next::Malloc>() }) else {
        return without_next(PAGE_BYTES, size);
    };
    // SAFETY: The caller's argument.
    let address = nesting(|| unsafe { next(size) });
    // It succeeds only where this is no overflow.
    counted(
        address,
        size.wrapping_add(PAGE_BYTES - 1) & !(PAGE_BYTES - 1),
    )
}

/// Before anything else allocates, if nothing has by then.
#[cfg(candela_preload)]
#[used]
#[unsafe(link_section = ".init_array")]
static START: extern "C" fn() = start;

#[cfg(candela_preload)]
extern "C" fn start() {
    // SAFETY: The C function of this name, which is looked up and not called.
    let _ = unsafe { next::MALLOC.get::<next::Malloc>() };
}

#[inline(always)]
fn counted(address: *mut u8, size: usize) -> *mut u8 {
    if !address.is_null() {
        allocated(address, size);
    }
    address
}

/// # Safety
/// `next` is a function of alignment and size, and the arguments are such.
unsafe fn aligned(next: &next::Next, alignment: usize, size: usize) -> *mut u8 {
    // SAFETY: The caller says so.
    let Some(next) = (unsafe { next.get::<next::Memalign>() }) else {
        return without_next(alignment, size);
    };
    // SAFETY: The caller's arguments.
    counted(nesting(|| unsafe { next(alignment, size) }), size)
}

/// Memory where the C library has no such function, or is just being asked for it.
fn without_next(alignment: usize, size: usize) -> *mut u8 {
    let address = match alignment.is_power_of_two() {
        true => arena::allocate(size, alignment),
        false => ptr::null_mut(),
    };
    if address.is_null() {
        next::set_errno(ENOMEM);
    }
    address
}

/// # Safety
/// `address` is of the arena.
#[cold]
unsafe fn moved_out_of_arena(address: *mut u8, size: usize) -> *mut u8 {
    // SAFETY: Any size may be asked for.
    let moved = unsafe { malloc(size) };
    if !moved.is_null() {
        let readable = arena::readable_bytes(address);
        // SAFETY: What the arena has behind the address, at most what the new place has. They do not overlap: where
        // the new one is of the arena too, it lies behind everything that was allocated there before.
        unsafe { ptr::copy(address, moved, readable.min(size)) };
    }
    moved
}
