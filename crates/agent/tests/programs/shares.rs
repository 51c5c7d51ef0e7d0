//! As shares.c, in Rust: inlined functions, generics, a closure, a thread.
//! Usage: shares_rust ROUNDS

use std::hint::black_box;

#[inline(always)]
fn mix_inlined(state: u64) -> u64 {
    black_box(state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407))
}

#[inline(never)]
fn burn_fifty(seed: u64, scale: u64) -> u64 {
    (0..500 * scale).fold(seed, |state, _| mix_inlined(state))
}

#[inline(never)]
fn burn_thirty(seed: u64, scale: u64) -> u64 {
    (0..300 * scale).fold(seed, |state, _| mix_inlined(state))
}

#[inline(never)]
fn burn_twenty(seed: u64, scale: u64) -> u64 {
    (0..200 * scale).fold(seed, |state, _| mix_inlined(state))
}

#[inline(never)]
fn descend<T: Copy>(depth: u32, rounds: u64, extra: T) -> u64 {
    if depth > 1 {
        return black_box(descend(depth - 1, rounds, extra)) + 1;
    }
    let mut state = 1;
    let mut random = 1_u32;
    for _ in 0..rounds {
        // Long rounds of random length, as in shares.c.
        random = random.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        let scale = 6_000 + u64::from(random >> 16) % 12_000;
        state = burn_fifty(state, scale);
        state = burn_thirty(state, scale);
        state = burn_twenty(state, scale);
    }
    black_box(extra);
    state
}

fn main() {
    let rounds = std::env::args().nth(1).and_then(|text| text.parse().ok()).unwrap_or(100);
    let thread = std::thread::spawn(move || descend(40, rounds, 7_u8));
    println!("{}", thread.join().unwrap() & 1);
}
