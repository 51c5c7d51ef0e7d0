//! Many functions at a time: Benjamini and Hochberg's false discovery rate. Functions are one family;
//! nodes of a tree are many (`hierarchy`).

/// For each p its q: of all that have this q or less, so large a part is expected to be there by chance.
/// What has no p was not tested, and costs the others nothing.
#[must_use]
pub fn adjusted(p: &[Option<f64>]) -> Vec<Option<f64>> {
    let mut by_p: Vec<(f64, usize)> = p
        .iter()
        .enumerate()
        .filter_map(|(position, p)| p.map(|p| (p, position)))
        .collect();
    by_p.sort_by(|one, other| one.0.total_cmp(&other.0));
    let tested = by_p.len() as f64;
    let mut adjusted = vec![None; p.len()];
    // From the largest: what is less likely by chance never has the larger q.
    let mut least = 1.0_f64;
    for (rank, &(p, position)) in by_p.iter().enumerate().rev() {
        // Rounding must not make it less than p.
        least = least.min((p * tested / (rank + 1) as f64).max(p));
        adjusted[position] = Some(least);
    }
    adjusted
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn the_example_of_benjamini_and_hochberg() {
        // 1995, section 3.2: at 5 % the first four of fifteen are rejected.
        let p = [
            0.0001, 0.0004, 0.0019, 0.0095, 0.0201, 0.0278, 0.0298, 0.0344, 0.0459, 0.3240, 0.4262,
            0.5719, 0.6528, 0.7590, 1.0000,
        ];
        let q = adjusted(&p.map(Some));
        let rejected = q.iter().filter(|q| q.is_some_and(|q| q <= 0.05)).count();
        assert_eq!(rejected, 4);
        assert!((q[3].expect("tested") - 0.0095 * 15.0 / 4.0).abs() < 1e-12);
    }

    #[test]
    fn what_is_not_tested_costs_nothing() {
        let alone = adjusted(&[Some(0.02)]);
        let among = adjusted(&[None, Some(0.02), None]);
        assert_eq!((alone[0], among[1]), (Some(0.02), Some(0.02)));
        assert_eq!(among[0], None);
    }

    proptest! {
        #[test]
        fn q_is_no_less_than_p_and_in_its_order(
            p in prop::collection::vec(prop::option::of(0.0_f64..=1.0), 0..60),
        ) {
            let q = adjusted(&p);
            for (p, q) in p.iter().zip(&q) {
                prop_assert_eq!(p.is_some(), q.is_some());
                if let (Some(p), Some(q)) = (p, q) {
                    prop_assert!(q >= p && *q <= 1.0);
                }
            }
            for (one, q_of_one) in p.iter().zip(&q) {
                for (other, q_of_other) in p.iter().zip(&q) {
                    if one.is_some() && other.is_some() && one < other {
                        prop_assert!(q_of_one <= q_of_other);
                    }
                }
            }
        }

        #[test]
        fn the_rejected_are_those_of_the_step_up_procedure(
            p in prop::collection::vec(0.0_f64..=1.0, 1..60),
            rate in 0.01_f64..0.3,
        ) {
            let tested = p.len() as f64;
            let mut sorted = p.clone();
            sorted.sort_by(f64::total_cmp);
            let largest = (1..=p.len())
                .rev()
                .find(|&rank| sorted[rank - 1] <= rank as f64 * rate / tested);
            let limit = largest.map(|rank| sorted[rank - 1]);
            let all: Vec<Option<f64>> = p.iter().copied().map(Some).collect();
            for (p, q) in p.iter().zip(adjusted(&all)) {
                let q = q.expect("tested");
                // Rounding decides where both are the same.
                prop_assume!((q - rate).abs() > 1e-12);
                prop_assert_eq!(q <= rate, limit.is_some_and(|limit| *p <= limit));
            }
        }
    }
}
