//! Numbers that follow from a seed and what they are for (SplitMix64), so that what is drawn for one
//! window does not depend on what was drawn for others.

#[derive(Clone, Debug)]
pub(crate) struct Random(u64);

impl Random {
    /// The numbers of one purpose.
    pub(crate) fn keyed(seed: u64, key: &[u64]) -> Self {
        let mut random = Self(seed);
        for &part in key {
            random.0 = random.next() ^ part;
        }
        random
    }

    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ mixed >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ mixed >> 31
    }

    /// From 0 until before 1.
    pub(crate) fn unit(&mut self) -> f64 {
        (self.next() >> 11) as f64 / (1_u64 << 53) as f64
    }

    /// Of mean 0 and deviation 1: a sum of twelve, which has no tails to speak of and needs no logarithm.
    pub(crate) fn normal(&mut self) -> f64 {
        (0..12).map(|_| self.unit()).sum::<f64>() - 6.0
    }

    /// A factor around 1 with this deviation, never below a tenth.
    pub(crate) fn factor(&mut self, deviation: f64) -> f64 {
        (1.0 + deviation * self.normal()).max(0.1)
    }

    /// How often something happens that happens `mean` times on average.
    pub(crate) fn poisson(&mut self, mean: f64) -> u64 {
        if mean > 40.0 {
            return (mean + mean.sqrt() * self.normal()).round().max(0.0) as u64;
        }
        let limit = (-mean).exp();
        let mut product = self.unit();
        let mut count = 0;
        while product > limit {
            product *= self.unit();
            count += 1;
        }
        count
    }
}

/// A number for a text, the same in each run and on each machine (FNV-1a).
pub(crate) fn hash_of(text: &str) -> u64 {
    text.bytes().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn purposes_have_numbers_of_their_own() {
        let first = |seed, key: &[u64]| Random::keyed(seed, key).next();
        assert_eq!(first(1, &[2, 3]), first(1, &[2, 3]));
        assert_ne!(first(1, &[2, 3]), first(1, &[3, 2]));
        assert_ne!(first(1, &[2, 3]), first(2, &[2, 3]));
    }

    #[test]
    fn counts_have_their_mean_and_their_variance() {
        for mean in [0.5, 7.0, 60.0, 400.0] {
            let mut random = Random::keyed(7, &[mean as u64]);
            let counts: Vec<f64> = (0..4000).map(|_| random.poisson(mean) as f64).collect();
            let average = counts.iter().sum::<f64>() / 4000.0;
            let squares = counts.iter().map(|count| (count - average).powi(2));
            let variance = squares.sum::<f64>() / 4000.0;
            assert!((average / mean - 1.0).abs() < 0.08, "{average} of {mean}");
            assert!((variance / mean - 1.0).abs() < 0.15, "{variance} of {mean}");
        }
    }
}
