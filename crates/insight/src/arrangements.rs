//! Which clusters could have been on the other side: all ways to deal them, or enough that are drawn.

use crate::distributions::ALPHA;

/// Ways to deal clusters to both sides: those that are before come first, then those that are after.
#[derive(Debug)]
pub(crate) struct Arrangements {
    clusters: usize,
    /// For each arrangement by cluster whether it is after.
    is_after: Vec<bool>,
    /// Whether these are all there are. Else they are drawn, and that of the data comes on top.
    is_exact: bool,
}

/// Numbers that look random, the same in each run of a seed (SplitMix64).
#[derive(Clone, Debug)]
struct Random(u64);

// === impl Arrangements ===

impl Arrangements {
    /// Of so many clusters on each side, at most `most`. `None` where not even the rarest arrangement is rare.
    pub(crate) fn of_clusters(before: usize, after: usize, most: usize, seed: u64) -> Option<Self> {
        let all = before + after;
        let choices = (1..=after).map(|it| (before + it) as f64 / it as f64);
        let count: f64 = choices.product();
        // Of as many clusters a mirror image is an arrangement as well, and says the same.
        let alike = if before == after { 2.0 } else { 1.0 };
        if alike / count > ALPHA {
            return None;
        }
        let is_exact = count.round() <= most as f64;
        let is_after = if is_exact {
            all_choices(all, after)
        } else {
            let mut random = Random(seed);
            (1..most)
                .flat_map(|_| drawn_choice(all, after, &mut random))
                .collect()
        };
        Some(Self {
            clusters: all,
            is_after,
            is_exact,
        })
    }

    /// Of so many pairs, the sides of which are exchanged in some.
    pub(crate) fn of_pairs(pairs: usize, most: usize, seed: u64) -> Option<Self> {
        let count = 2.0_f64.powf(pairs as f64);
        if 2.0 / count > ALPHA {
            return None;
        }
        let is_exact = count <= most as f64;
        let is_after = if is_exact {
            (0..1_usize << pairs)
                .flat_map(|swaps| swapped(pairs, |pair| swaps >> pair & 1 == 1))
                .collect()
        } else {
            let mut random = Random(seed);
            (1..most)
                .flat_map(|_| swapped(pairs, |_| random.below(2) == 1))
                .collect()
        };
        Some(Self {
            clusters: 2 * pairs,
            is_after,
            is_exact,
        })
    }

    /// How many there are, that of the data included.
    pub(crate) fn count(&self) -> usize {
        let arranged = self.is_after.len() / self.clusters;
        arranged + usize::from(!self.is_exact)
    }

    /// In how large a part of them something is so, as it is in that of the data.
    pub(crate) fn part(&self, is_so: impl FnMut(&&[bool]) -> bool) -> f64 {
        let arranged = self.is_after.chunks_exact(self.clusters);
        // That of the data is among all there are. Among those that are drawn it has to be counted, or the
        // part could be nothing (Phipson and Smyth).
        let so = arranged.filter(is_so).count() + usize::from(!self.is_exact);
        so as f64 / self.count() as f64
    }
}

/// All ways to choose so many clusters, in the order of their positions.
fn all_choices(all: usize, after: usize) -> Vec<bool> {
    let mut chosen: Vec<usize> = (0..after).collect();
    let mut choices = Vec::new();
    loop {
        let first = choices.len();
        choices.resize(first + all, false);
        for &cluster in &chosen {
            choices[first + cluster] = true;
        }
        // The last one that can move on does, and those behind it follow closely.
        let next = (0..after).rfind(|&it| chosen[it] < all - after + it);
        let Some(next) = next else {
            return choices;
        };
        let moved = chosen[next] + 1;
        for (behind, position) in chosen[next..].iter_mut().enumerate() {
            *position = moved + behind;
        }
    }
}

/// The first of a shuffled deck.
fn drawn_choice(all: usize, after: usize, random: &mut Random) -> Vec<bool> {
    let mut deck: Vec<usize> = (0..all).collect();
    let mut is_after = vec![false; all];
    for drawn in 0..after {
        deck.swap(drawn, drawn + random.below(all - drawn));
        is_after[deck[drawn]] = true;
    }
    is_after
}

fn swapped(pairs: usize, is_swapped: impl FnMut(usize) -> bool) -> Vec<bool> {
    let mut is_after: Vec<bool> = (0..pairs).map(is_swapped).collect();
    is_after.extend_from_within(..);
    for after in &mut is_after[pairs..] {
        *after = !*after;
    }
    is_after
}

// === impl Random ===

impl Random {
    fn bits(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut bits = self.0;
        bits = (bits ^ (bits >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        bits = (bits ^ (bits >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        bits ^ (bits >> 31)
    }

    /// One of so many numbers. Some are likelier than others by less than one in 2⁵⁰.
    fn below(&mut self, count: usize) -> usize {
        ((u128::from(self.bits()) * count as u128) >> 64) as usize
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MOST: usize = 1000;

    fn all_of(arrangements: &Arrangements) -> Vec<&[bool]> {
        let all = arrangements.is_after.chunks_exact(arrangements.clusters);
        all.collect()
    }

    #[test]
    fn few_clusters_have_too_few_arrangements() {
        let of_clusters = |before, after| {
            let arrangements = Arrangements::of_clusters(before, after, MOST, 1);
            arrangements.as_ref().map(Arrangements::count)
        };
        let of_pairs = |pairs| {
            let arrangements = Arrangements::of_pairs(pairs, MOST, 1);
            arrangements.as_ref().map(Arrangements::count)
        };
        // 2 of 20 and 2 of 32 are more than one in twenty; 2 of 70, 1 of 21 and 2 of 64 are less.
        assert_eq!(of_clusters(3, 3), None);
        assert_eq!(of_pairs(5), None);
        assert_eq!(of_clusters(1, 1), None);
        assert_eq!((of_clusters(0, 30), of_pairs(0)), (None, None));
        assert_eq!(of_clusters(4, 4), Some(70));
        assert_eq!(of_clusters(2, 5), Some(21));
        assert_eq!(of_pairs(6), Some(64));
        assert_eq!(of_clusters(6, 6), Some(924));
        assert_eq!(of_clusters(20, 20), Some(MOST));
        assert_eq!(of_clusters(1, 5000), Some(MOST));
        assert_eq!(of_pairs(200), Some(MOST));
    }

    #[test]
    fn all_arrangements_are_there_once() {
        let of_clusters = Arrangements::of_clusters(4, 3, MOST, 1).expect("enough");
        let of_pairs = Arrangements::of_pairs(6, MOST, 1).expect("enough");
        for (arrangements, after) in [(of_clusters, 3), (of_pairs, 6)] {
            let mut all = all_of(&arrangements);
            let count = all.len();
            all.sort();
            all.dedup();
            assert_eq!(all.len(), count);
            let has_as_many = |it: &&[bool]| it.iter().filter(|&&it| it).count() == after;
            assert!(all.iter().all(has_as_many));
        }
    }

    #[test]
    fn each_cluster_is_drawn_as_often() {
        let arrangements = Arrangements::of_clusters(12, 8, MOST, 7).expect("enough");
        let again = Arrangements::of_clusters(12, 8, MOST, 7).expect("enough");
        assert_eq!(arrangements.is_after, again.is_after);
        for cluster in 0..20 {
            let all = all_of(&arrangements);
            let drawn = all.iter().filter(|it| it[cluster]).count();
            // Four standard deviations of 999 draws of 40 %.
            assert!(drawn.abs_diff(400) < 62, "{cluster}: {drawn}");
        }
    }

    #[test]
    fn the_arrangement_of_the_data_always_counts() {
        let drawn = Arrangements::of_clusters(20, 20, MOST, 1).expect("enough");
        assert_eq!(drawn.part(|_| false), 0.001);
        assert_eq!(drawn.part(|_| true), 1.0);
        let all = Arrangements::of_clusters(4, 4, MOST, 1).expect("enough");
        let as_it_is = [false, false, false, false, true, true, true, true];
        assert_eq!(all.part(|it| **it == as_it_is), 1.0 / 70.0);
    }
}
