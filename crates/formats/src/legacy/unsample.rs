//! What sampled allocations stand for.

/// Number and bytes of all allocations of which `count` with `bytes` were sampled, one in `rate`
/// bytes on average: an allocation of size s is seen with the probability 1 − e^(−s/rate). A rate of
/// 1 or less means that all were seen, or that nothing is known. Fractions are cut off as pprof does.
pub(crate) fn unsampled(count: i64, bytes: i64, rate: i64) -> (i64, i64) {
    if bytes == 0 {
        return (0, 0);
    }
    if count == 0 {
        // jemalloc rounds counts, and less than half an object is none.
        return (0, bytes);
    }
    let average = bytes as f64 / count as f64;
    if rate <= 1 || average <= 0.0 {
        return (count, bytes);
    }
    let scale = 1.0 / (1.0 - (-average / rate as f64).exp());
    // Casts saturate where so much cannot be.
    let scaled = |value: i64| (value as f64 * scale) as i64;
    (scaled(count), scaled(bytes))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn small_allocations_stand_for_many() {
        assert_eq!(unsampled(1, 9216, 524_288), (57, 528_909));
        assert_eq!(unsampled(1, 2_162_688, 524_288), (1, 2_198_218));
        assert_eq!(unsampled(3, 100, 1), (3, 100));
        assert_eq!(unsampled(3, 0, 512), (0, 0));
        assert_eq!(unsampled(0, 3, 512), (0, 3));
        assert_eq!(unsampled(-1, 9216, 524_288), (-1, 9216));
        assert_eq!(unsampled(i64::MAX, i64::MAX, i64::MAX).0, i64::MAX);
    }
}
