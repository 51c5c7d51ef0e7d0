//! What a sampled allocation stands for.

use candela_ebpf::Allocation;

use crate::window::Amount;

/// The objects and bytes that an allocation stands for, so that sums are right on average.
///
/// One of `size` bytes was sampled with the probability `1 - exp(-size / interval)`, and of so many of these one was told,
/// so each sample is worth the inverse of that in objects. That is rarely a whole number: it is rounded up as often as the fraction asks for.
pub(crate) fn amount_of_allocation(pid: u32, allocation: &Allocation) -> Amount {
    let size = allocation.size as f64;
    let objects = match allocation.interval {
        0 => 1.0,
        // One of no bytes is sampled as if it had one.
        interval => -1.0 / (-size.max(1.0) / interval as f64).exp_m1(),
    };
    let objects = objects * allocation.stands_for as f64;
    let is_up = objects.fract() > evenly_spread(pid, allocation.sequence);
    Amount {
        value: (objects * size).round() as u64,
        count: objects as u64 + u64::from(is_up),
    }
}

/// From 0 to 1, for any run of sequence numbers and any regular choice from it about as often in each part: multiples
/// of the golden ratio, whose fractions stay apart from each other as far as any can.
fn evenly_spread(pid: u32, sequence: u32) -> f64 {
    let number = (u64::from(pid) << 32) | u64::from(sequence);
    let fraction = number.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    (fraction >> 11) as f64 / (1_u64 << 53) as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    fn amount(size: u64, interval: u64, sequence: u32) -> Amount {
        let allocation = Allocation {
            address: 0x1000,
            size,
            sequence,
            is_followed: true,
            interval,
            stands_for: 1,
        };
        amount_of_allocation(7, &allocation)
    }

    #[test]
    fn an_object_is_worth_the_inverse_of_its_chance() {
        // 1 - exp(-64 / 524288) is 1 in 8192.5.
        let amount = amount(64, 524_288, 0);
        assert_eq!(amount.value, 524_320);
        assert!((8192..=8193).contains(&amount.count), "{amount:?}");
    }

    #[test]
    fn one_that_was_told_of_many_is_worth_as_many() {
        let of_four = Allocation {
            address: 0x1000,
            size: 24,
            sequence: 3,
            is_followed: true,
            interval: 0,
            stands_for: 4,
        };
        let expected = Amount {
            value: 96,
            count: 4,
        };
        assert_eq!(amount_of_allocation(7, &of_four), expected);
    }

    #[test]
    fn fractions_of_objects_add_up() {
        // 1 / (1 - 1/e) objects each.
        for every in [1, 2, 3] {
            let sequences = (0..3000).step_by(every);
            let samples = sequences.clone().count() as f64;
            let objects: u64 = sequences
                .map(|number| amount(1000, 1000, number).count)
                .sum();
            let expected = samples * 1.581_976_7;
            assert!(
                (objects as f64 - expected).abs() < 5.0,
                "{every}: {objects}"
            );
        }
    }

    #[test]
    fn large_and_all_and_empty_ones_count_as_they_are() {
        let of = |value, count| Amount { value, count };
        assert_eq!(amount(1 << 30, 524_288, 3), of(1 << 30, 1));
        assert_eq!(amount(24, 0, 3), of(24, 1));
        assert_eq!(amount(0, 0, 3), of(0, 1));
        assert!(amount(0, 1000, 3).count >= 1000);
    }
}
