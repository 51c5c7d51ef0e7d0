//! Samples by cluster.

/// Samples of a function, or of everything, on one side of a comparison.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Counts {
    /// What the samples of each cluster weigh, in the order of the side's clusters. A sample of a clock
    /// weighs its period, an allocation its bytes.
    pub by_cluster: Vec<f64>,
    /// The sum of the squares of the weights. Of samples that all weigh the same it is that weight
    /// times the sum.
    pub squares: f64,
}

/// One side of a comparison.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Side {
    /// All its samples.
    pub all: Counts,
    /// By cluster for how long it was looked at, in any unit, that of both sides. Empty where nobody
    /// knows: sides then count as equally exposed.
    pub exposure: Vec<f64>,
}

/// A function on both sides.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Pair {
    /// In what is compared with.
    pub before: Counts,
    /// In what is judged.
    pub after: Counts,
}

impl Counts {
    /// Samples that weigh one each.
    #[must_use]
    pub fn of_samples(by_cluster: Vec<f64>) -> Self {
        let squares = by_cluster.iter().sum();
        Self {
            by_cluster,
            squares,
        }
    }

    /// What all samples weigh.
    #[must_use]
    pub fn sum(&self) -> f64 {
        // Not `sum`, of which nothing at all is -0.
        self.by_cluster.iter().fold(0.0, |sum, value| sum + value)
    }

    /// How many samples of one weight would tell as much: (Σw)² / Σw².
    #[must_use]
    pub fn samples(&self) -> f64 {
        let sum = self.sum();
        if self.squares > 0.0 {
            sum * sum / self.squares
        } else {
            0.0
        }
    }

    /// What such a sample weighs; `None` where there is none.
    pub(crate) fn weight(&self) -> Option<f64> {
        let sum = self.sum();
        (sum > 0.0 && self.squares > 0.0).then(|| self.squares / sum)
    }
}

impl Pair {
    /// Samples on both sides.
    pub(crate) fn samples(&self) -> f64 {
        self.before.samples() + self.after.samples()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn few_heavy_samples_tell_little() {
        let even = Counts {
            by_cluster: vec![300.0, 100.0],
            squares: 400.0 * 10.0,
        };
        assert_eq!((even.samples(), even.weight()), (40.0, Some(10.0)));
        // One of 1000 beside a hundred of one: little more than one sample.
        let uneven = Counts {
            by_cluster: vec![1100.0],
            squares: 1000.0 * 1000.0 + 100.0,
        };
        assert!(uneven.samples() < 1.3, "{}", uneven.samples());
        assert_eq!(Counts::default().samples(), 0.0);
        assert_eq!(Counts::default().weight(), None);
        assert!(Counts::default().sum().is_sign_positive());
    }
}
