//! Which allocations are sampled.
//!
//! Each thread draws an exponentially distributed distance and counts the bytes that it allocates down from it; the
//! allocation with which it gets there is sampled. So one of `size` bytes is sampled with the probability
//! `1 - exp(-size / interval)` whatever came before it, and whoever weighs it with the inverse is right on
//! average, for numbers and for bytes, of every size and every stack.

use core::sync::atomic::AtomicU32;
use core::sync::atomic::AtomicU64;
use core::sync::atomic::Ordering;

use crate::DEFAULT_INTERVAL;
use crate::INTERVAL_VARIABLE;
use crate::SEED_VARIABLE;
use crate::distance::exponential;
use crate::distance::mixed;
use crate::distance::next_random;
use crate::environment::NumberOf;
use crate::live::LIVE;
use crate::probes;
use crate::system;
use crate::thread;
use crate::thread::ThreadState;

static INTERVAL: AtomicU64 = AtomicU64::new(DEFAULT_INTERVAL);

/// 0: whatever the clock says.
static SEED: AtomicU64 = AtomicU64::new(0);

/// How many random numbers were seeded.
static SEEDED: AtomicU64 = AtomicU64::new(0);

/// How many allocations were sampled: tells those apart that have one address after another.
static SAMPLED: AtomicU32 = AtomicU32::new(0);

/// Reads the settings from the environment.
pub(crate) fn configure() {
    let mut interval = NumberOf::new(INTERVAL_VARIABLE);
    let mut seed = NumberOf::new(SEED_VARIABLE);
    system::read_file(c"/proc/self/environ", |byte| {
        interval.take(byte);
        seed.take(byte);
    });
    let interval = interval.found().unwrap_or(DEFAULT_INTERVAL);
    INTERVAL.store(interval, Ordering::Relaxed);
    SEED.store(seed.found().unwrap_or_default(), Ordering::Relaxed);
}

/// Counts an allocation; called once it has succeeded, before the program knows of it.
#[inline(always)]
pub(crate) fn allocated(address: *mut u8, size: usize) {
    // One of no bytes is an object too.
    let size = size.max(1);
    let state = thread::current();
    // SAFETY: The state of this thread, to which there is no other reference.
    let ThreadState {
        countdown, depth, ..
    } = unsafe { &mut *state };
    if *depth != 0 {
        return;
    }
    // No object has more than isize::MAX bytes.
    *countdown = countdown.wrapping_sub(size as i64);
    if *countdown < 0 {
        reached(address, size);
    }
}

/// Counts the end of an allocation; called before the allocator knows of it.
#[inline(always)]
pub(crate) fn freed(address: *mut u8) {
    if let Some(sequence) = LIVE.remove(address as usize) {
        tell_freed(address, sequence);
    }
}

/// Tells of the end of an allocation that [`LIVE`] has forgotten.
pub(crate) fn tell_freed(address: *mut u8, sequence: u32) {
    probes::candela_alloc_freed(address as u64, sequence.into());
}

/// The countdown has come to its end, or this is the thread's first allocation.
#[cold]
#[inline(never)]
fn reached(address: *mut u8, size: usize) {
    let interval = INTERVAL.load(Ordering::Relaxed);
    // SAFETY: The state of this thread, to which there is no other reference.
    let state = unsafe { &mut *thread::current() };
    let process = system::process_id();
    if state.process != process {
        let is_new = state.process == 0;
        seed(state, process);
        if is_new {
            // What was counted down was no distance yet.
            let distance = exponential(next_random(&mut state.random), interval);
            state.countdown = distance.wrapping_sub(size as i64);
            if state.countdown >= 0 {
                return;
            }
        }
    }
    // The bytes beyond the sampled one do not count: an exponential distance has no memory.
    state.countdown = exponential(next_random(&mut state.random), interval);
    let sequence = SAMPLED.fetch_add(1, Ordering::Relaxed);
    let is_followed = LIVE.insert(address as usize, sequence);
    let flags = if is_followed { probes::IS_FOLLOWED } else { 0 };
    probes::candela_alloc_sampled(
        address as u64,
        size as u64,
        u64::from(sequence) | flags,
        interval,
    );
}

/// A thread gets random numbers of its own, and those of a forked process are not its parent's.
fn seed(state: &mut ThreadState, process: u32) {
    let ordinal = SEEDED.fetch_add(1, Ordering::Relaxed);
    state.process = process;
    state.random = match SEED.load(Ordering::Relaxed) {
        0 => {
            // SAFETY: Every x86-64 processor has a time stamp counter.
            let clock = unsafe { core::arch::x86_64::_rdtsc() };
            mixed(clock ^ (u64::from(process) << 32)) ^ mixed(ordinal)
        }
        seed => mixed(seed) ^ mixed(ordinal),
    };
}
