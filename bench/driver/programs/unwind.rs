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

fn main() {
    loop {
        black_box(descend(40, &|| burn(20_000)));
        let mut values: Vec<u64> = (0..500).map(|value| value * 7919 % 1009).collect();
        values.sort_by(|left, right| (left ^ burn(3)).cmp(&(right ^ burn(3))));
        black_box(values);
    }
}
