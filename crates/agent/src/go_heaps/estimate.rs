//! What sampled allocations of a Go program stand for.

use crate::window::Amount;

/// Objects and bytes of all allocations that samples of a place stand for, as `runtime/pprof` estimates them: an
/// object of `size` bytes is a sample with the probability `1 - exp(-size / rate)`. At a rate of 1 each is.
pub(super) fn estimate(objects: u64, bytes: u64, rate: u64) -> Amount {
    if objects == 0 || bytes == 0 {
        return Amount::default();
    }
    if rate <= 1 {
        return Amount {
            value: bytes,
            count: objects,
        };
    }
    let mean_size = bytes as f64 / objects as f64;
    let scale = 1.0 / (1.0 - (-mean_size / rate as f64).exp());
    Amount {
        value: (bytes as f64 * scale) as u64,
        count: (objects as f64 * scale) as u64,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn small_objects_stand_for_many() {
        let of = |value, count| Amount { value, count };
        // 1 - exp(-64 / 524288) is 1 in 8192.5.
        assert_eq!(estimate(2, 128, 524_288), of(1_048_640, 16_385));
        assert_eq!(estimate(1, 1 << 30, 524_288), of(1 << 30, 1));
        assert_eq!(estimate(3, 144, 1), of(144, 3));
        assert_eq!(estimate(0, 0, 524_288), of(0, 0));
        assert_eq!(estimate(5, 0, 524_288), of(0, 0), "objects of no bytes");
    }
}
