//! As shares.c, in Rust: inlined functions, generics, a closure, a thread.
//! Usage: shares_rust ROUNDS

use std::hint::black_box;

#[inline(always)]
fn mix_inlined(state: u64) -> u64 {
    black_box(state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407))
}

// Of nearly the same length, so that the compiler does not take the three for one.
#[inline(never)]
fn burn_fifty(seed: u64, scale: u64) -> u64 {
    (0..333 * scale).fold(seed, |state, _| mix_inlined(state))
}

#[inline(never)]
fn burn_thirty(seed: u64, scale: u64) -> u64 {
    (0..332 * scale).fold(seed, |state, _| mix_inlined(state))
}

#[inline(never)]
fn burn_twenty(seed: u64, scale: u64) -> u64 {
    (0..331 * scale).fold(seed, |state, _| mix_inlined(state))
}

/// With its share, and the CPU time that it has had.
type Function = (fn(u64, u64) -> u64, f64, f64);

/// Of this thread. The kernel brings the account of a thread that yields up to date.
fn cpu_nanoseconds() -> f64 {
    std::thread::yield_now();
    let account = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap();
    account.split(' ').next().unwrap().parse().unwrap()
}

#[inline(never)]
fn descend<T: Copy>(depth: u32, rounds: u64, extra: T) -> u64 {
    if depth > 1 {
        return black_box(descend(depth - 1, rounds, extra)) + 1;
    }
    let mut state = 1;
    let mut random = 1_u32;
    let mut functions: [Function; 3] = [(burn_fifty, 0.5, 0.0), (burn_thirty, 0.3, 0.0), (burn_twenty, 0.2, 0.0)];
    for _ in 0..3 * rounds {
        // Long visits of random length, to whatever has the least of its share of CPU time, as in shares.c.
        random = random.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        let scale = 6_000 + u64::from(random >> 16) % 12_000;
        let part = |(_, share, time): &Function| time / share;
        let next = functions.iter_mut().min_by(|one, other| part(one).total_cmp(&part(other))).unwrap();
        let begun = cpu_nanoseconds();
        state = next.0(state, scale);
        next.2 += cpu_nanoseconds() - begun;
    }
    black_box(extra);
    state
}

fn main() {
    let rounds = std::env::args().nth(1).and_then(|text| text.parse().ok()).unwrap_or(100);
    let thread = std::thread::spawn(move || descend(40, rounds, 7_u8));
    println!("{}", thread.join().unwrap() & 1);
}
