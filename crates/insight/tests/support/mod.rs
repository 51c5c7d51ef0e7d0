//! A fleet that is made up: instances, each with windows of samples, whose noise is known.

use candela_insight::Comparison;
use candela_insight::Counts;
use candela_insight::Normalization;
use candela_insight::Pair;
use candela_insight::Side;

const WINDOWS: usize = 30;
const SAMPLES_PER_WINDOW: f64 = 600.0;
/// By how much a function differs from window to window of an instance.
const WINDOW_NOISE: f64 = 0.10;

/// Numbers that are the same in each run (SplitMix64).
pub(crate) struct Random(u64);

/// What is simulated.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Fleet {
    pub(crate) instances: usize,
    /// The function's part of all samples.
    pub(crate) share: f64,
    /// By how much it differs from instance to instance.
    pub(crate) instance_noise: f64,
    /// What it is multiplied by after.
    pub(crate) change: f64,
}

impl Random {
    pub(crate) fn new(seed: u64) -> Self {
        Self(seed)
    }

    fn bits(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut bits = self.0;
        bits = (bits ^ (bits >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        bits = (bits ^ (bits >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        bits ^ (bits >> 31)
    }

    /// In (0, 1).
    pub(crate) fn uniform(&mut self) -> f64 {
        ((self.bits() >> 11) as f64 + 0.5) / (1_u64 << 53) as f64
    }

    pub(crate) fn normal(&mut self) -> f64 {
        let radius = (-2.0 * self.uniform().ln()).sqrt();
        radius * (std::f64::consts::TAU * self.uniform()).cos()
    }

    /// How many of some samples are of a function with this share, `expected` on average. Means here
    /// are above a hundred, where the normal law corrected for skewness is exact enough.
    fn count(&mut self, expected: f64, share: f64) -> f64 {
        let normal = self.normal();
        let spread = (expected * (1.0 - share)).sqrt();
        let skew = (normal * normal - 1.0) / 6.0;
        (expected + spread * normal + skew).round().max(0.0)
    }
}

impl Fleet {
    /// Samples of the function by instance. `instances` are what each one makes of it.
    fn counts(self, factor: f64, instances: &[f64], random: &mut Random) -> Vec<f64> {
        let counts = instances.iter().map(|instance| {
            let windows: f64 = (0..WINDOWS)
                .map(|_| (WINDOW_NOISE * random.normal()).exp())
                .sum();
            let expected = windows * SAMPLES_PER_WINDOW * self.share * factor * instance;
            random.count(expected, self.share)
        });
        counts.collect()
    }

    fn instances(self, random: &mut Random) -> Vec<f64> {
        let noise = (0..self.instances).map(|_| (self.instance_noise * random.normal()).exp());
        noise.collect()
    }

    /// Two sides of different instances.
    pub(crate) fn pair(self, random: &mut Random) -> Pair {
        let (old, new) = (self.instances(random), self.instances(random));
        Pair {
            before: Counts::of_samples(self.counts(1.0, &old, random)),
            after: Counts::of_samples(self.counts(self.change, &new, random)),
        }
    }

    /// The same instances before and after.
    pub(crate) fn pair_of_same_instances(self, random: &mut Random) -> Pair {
        let instances = self.instances(random);
        Pair {
            before: Counts::of_samples(self.counts(1.0, &instances, random)),
            after: Counts::of_samples(self.counts(self.change, &instances, random)),
        }
    }

    /// How busy instances are, before and after alike.
    pub(crate) fn sizes(self, deviation: f64, random: &mut Random) -> Vec<f64> {
        let sizes = (0..self.instances).map(|_| (deviation * random.normal()).exp());
        sizes.collect()
    }

    /// Two sides of instances of these sizes, the same ones if they are pairs.
    pub(crate) fn pair_of_sizes(self, sizes: &[f64], is_paired: bool, random: &mut Random) -> Pair {
        let old = self.instances(random);
        let new = if is_paired {
            old.clone()
        } else {
            self.instances(random)
        };
        let mut counts = |factor, instances: &[f64]| {
            let sized: Vec<f64> = instances
                .iter()
                .zip(sizes)
                .map(|(it, size)| it * size)
                .collect();
            Counts::of_samples(self.counts(factor, &sized, random))
        };
        Pair {
            before: counts(1.0, &old),
            after: counts(self.change, &new),
        }
    }

    pub(crate) fn comparison(self, is_paired: bool) -> Comparison {
        self.comparison_of_sizes(&vec![1.0; self.instances], is_paired)
    }

    pub(crate) fn comparison_of_sizes(self, sizes: &[f64], is_paired: bool) -> Comparison {
        let all = sizes
            .iter()
            .map(|size| WINDOWS as f64 * SAMPLES_PER_WINDOW * size);
        let side = Side {
            all: Counts::of_samples(all.collect()),
            exposure: Vec::new(),
        };
        Comparison {
            normalization: Normalization::Share,
            fdr: 0.05,
            before: side.clone(),
            after: side,
            is_paired,
            is_sampled: true,
            seed: 1,
        }
    }
}
