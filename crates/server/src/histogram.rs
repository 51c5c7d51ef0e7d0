//! A latency histogram.

use std::fmt::Write;
use std::time::Duration;

/// Upper bounds of the buckets, seconds.
const BOUNDS: [f64; 12] = [
    0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 10.0,
];

/// Counts by upper bound.
#[derive(Clone, Debug, Default)]
pub(crate) struct Histogram {
    buckets: [u64; BOUNDS.len()],
    count: u64,
    sum_seconds: f64,
}

impl Histogram {
    pub(crate) fn observe(&mut self, duration: Duration) {
        let seconds = duration.as_secs_f64();
        self.count += 1;
        self.sum_seconds += seconds;
        if let Some(bucket) = BOUNDS.iter().position(|bound| seconds <= *bound) {
            self.buckets[bucket] += 1;
        }
    }

    /// Lines of the Prometheus text format, labels given as `name="value"` pairs.
    pub(crate) fn write(&self, name: &str, labels: &str, out: &mut String) {
        let mut cumulative = 0;
        for (bound, count) in BOUNDS.iter().zip(self.buckets) {
            cumulative += count;
            let _ = writeln!(out, "{name}_bucket{{{labels},le=\"{bound}\"}} {cumulative}");
        }
        let _ = writeln!(out, "{name}_bucket{{{labels},le=\"+Inf\"}} {}", self.count);
        let _ = writeln!(out, "{name}_sum{{{labels}}} {}", self.sum_seconds);
        let _ = writeln!(out, "{name}_count{{{labels}}} {}", self.count);
    }
}
