//! What each thread remembers.
//!
//! Thread-local storage of the initial-exec kind, which is there with the thread: any other kind is allocated at
//! first use, by the very functions that ask for it. Rust has no word for it without its standard library, so it is
//! defined in assembly.

use core::arch::asm;
use core::arch::global_asm;

/// A thread begins with zeros.
#[derive(Debug)]
#[repr(C)]
pub(crate) struct ThreadState {
    /// Bytes that are allocated before the next sampled one.
    pub(crate) countdown: i64,
    pub(crate) random: u64,
    /// The process for which `random` was seeded; 0 before.
    pub(crate) process: u32,
    /// How many functions of the C library that may call another one of those are at work.
    pub(crate) depth: u32,
}

global_asm!(
    ".pushsection .tbss.candela_preload_thread, \"awT\", @nobits",
    ".globl candela_preload_thread",
    ".hidden candela_preload_thread",
    ".type candela_preload_thread, @object",
    ".size candela_preload_thread, {size}",
    ".balign 8",
    "candela_preload_thread:",
    ".zero {size}",
    ".popsection",
    size = const size_of::<ThreadState>(),
);

/// The calling thread's state: valid as long as the thread, and nobody else's.
#[inline(always)]
pub(crate) fn current() -> *mut ThreadState {
    let state: *mut ThreadState;
    // SAFETY: The x86-64 ABI of thread-local storage: fs:0 holds its own address, and the offset of the
    // variable from there is in the global offset table.
    unsafe {
        asm!(
            "mov {state}, qword ptr [rip + candela_preload_thread@GOTTPOFF]",
            "add {state}, qword ptr fs:[0]",
            state = out(reg) state,
            options(pure, readonly, nostack)
        );
    }
    state
}

/// Calls a function of the C library that may call another one that stands here, too, as musl's `calloc` calls
/// `malloc`: what that allocates is not counted twice.
#[inline(always)]
pub(crate) fn nesting<T>(call: impl FnOnce() -> T) -> T {
    let state = current();
    // SAFETY: The state of this thread, to which there is no reference.
    unsafe { (*state).depth += 1 };
    let result = call();
    // SAFETY: The same.
    unsafe { (*state).depth -= 1 };
    result
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_thread_has_its_own_which_begins_with_zeros() {
        let change = || {
            let state = current();
            // SAFETY: Of this thread.
            let before = unsafe { (*state).countdown };
            // SAFETY: The same.
            unsafe { (*state).countdown = 5 };
            (state as usize, before)
        };
        let (first, before) = change();
        let (second, before_of_second) =
            std::thread::scope(|scope| scope.spawn(change).join().expect("no panic"));
        assert_eq!((before, before_of_second), (0, 0));
        assert_ne!(first, second);
        assert_eq!(change(), (first, 5));
    }
}
