//! How far it is to the next byte that is sampled.

/// Numbers that look random: SplitMix64, of Steele, Lea and Flood (2014).
pub(crate) fn next_random(state: &mut u64) -> u64 {
    *state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
    mixed(*state)
}

/// The same bits, well stirred.
pub(crate) fn mixed(bits: u64) -> u64 {
    let bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    bits ^ (bits >> 31)
}

/// The bytes to the next sampled one: exponentially distributed with the mean `interval`.
pub(crate) fn exponential(random: u64, interval: u64) -> i64 {
    // Above 0 and at most 1, in steps of 2^-53.
    let uniform = ((random >> 11) + 1) as f64 / (1_u64 << 53) as f64;
    let distance = -natural_logarithm(uniform) * interval as f64;
    // A cast saturates.
    distance as i64
}

/// The natural logarithm of a normal, positive number: core has none. Exact to about 1e-12.
fn natural_logarithm(number: f64) -> f64 {
    const MANTISSA_BITS: u32 = 52;
    const EXPONENT_OF_ONE: i64 = 1023;
    let bits = number.to_bits();
    let mut exponent = (bits >> MANTISSA_BITS) as i64 - EXPONENT_OF_ONE;
    let mantissa_bits = bits & ((1 << MANTISSA_BITS) - 1);
    let mut mantissa = f64::from_bits(mantissa_bits | (EXPONENT_OF_ONE as u64) << MANTISSA_BITS);
    if mantissa > core::f64::consts::SQRT_2 {
        mantissa /= 2.0;
        exponent += 1;
    }
    // ln m = 2 artanh z with |z| < 0.172, where the series ends soon.
    let z = (mantissa - 1.0) / (mantissa + 1.0);
    let square = z * z;
    let mut series = 0.0;
    for denominator in [15.0, 13.0, 11.0, 9.0, 7.0, 5.0, 3.0, 1.0] {
        series = series * square + 1.0 / denominator;
    }
    exponent as f64 * core::f64::consts::LN_2 + 2.0 * z * series
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_logarithm_is_that_of_the_standard_library() {
        for number in [f64::EPSILON, 1e-9, 0.3, 0.5, 0.707, 0.708, 0.999_999, 1.0] {
            let difference = natural_logarithm(number) - number.ln();
            assert!(difference.abs() < 1e-11, "{number}: {difference}");
        }
    }

    #[test]
    fn distances_have_their_mean_and_their_spread() {
        const COUNT: u32 = 200_000;
        let (mut state, mut sum, mut beyond) = (1, 0.0, 0);
        for _ in 0..COUNT {
            let distance = exponential(next_random(&mut state), 1000);
            assert!(distance >= 0);
            sum += distance as f64 + 0.5;
            beyond += u32::from(distance >= 2000);
        }
        let mean = sum / f64::from(COUNT);
        // Four standard errors.
        assert!(
            (mean - 1000.0).abs() < 4.0 * 1000.0 / f64::from(COUNT).sqrt(),
            "{mean}"
        );
        let share = f64::from(beyond) / f64::from(COUNT);
        assert!((share - (-2.0_f64).exp()).abs() < 0.0031, "{share}");
    }

    #[test]
    fn without_an_interval_there_is_no_distance() {
        assert!((0..100).all(|random| exponential(mixed(random), 0) == 0));
    }
}
