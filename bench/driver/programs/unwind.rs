//! Deep recursion through closures and sorting, optimized.

use std::hint::black_box;

#[inline(never)]
fn burn(rounds: u64) -> u64 {
    (0..rounds).fold(1, |state: u64, round| {
        black_box(state.wrapping_mul(6364136223846793005).wrapping_add(round))
    })
}

#[inline(never)]
fn descend(depth: u32, work: &dyn Fn() -> u64) -> u64 {
    if depth == 0 {
        return work();
    }
    let deeper = || work().wrapping_add(1);
    black_box(descend(depth - 1, &deeper)).wrapping_add(1)
}

/// Rounds of a fixed length fall into step with the sampling clock: each lasts 10 to 25 ms, and none
/// as long as the one before.
fn random_between(seed: &mut u32, least: u64, most: u64) -> u64 {
    *seed = seed.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
    least + u64::from(*seed >> 16) % (most - least)
}

fn main() {
    let mut seed = 1;
    loop {
        let rounds = random_between(&mut seed, 6_000, 18_000) * 500;
        black_box(descend(40, &|| burn(rounds)));
        for _ in 0..random_between(&mut seed, 50, 150) {
            let mut values: Vec<u64> = (0..500).map(|value| value * 7919 % 1009).collect();
            values.sort_by(|left, right| (left ^ burn(3)).cmp(&(right ^ burn(3))));
            black_box(values);
        }
    }
}
