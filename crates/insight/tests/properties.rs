//! What holds of every comparison.

use candela_insight::Change;
use candela_insight::ChangeClass;
use candela_insight::Comparison;
use candela_insight::Counts;
use candela_insight::Normalization;
use candela_insight::Pair;
use candela_insight::Side;
use candela_insight::compare;
use proptest::prelude::*;

const CLUSTERS: usize = 4;

fn counts() -> impl Strategy<Value = Vec<f64>> {
    prop::collection::vec((0_u32..400).prop_map(f64::from), CLUSTERS)
}

fn functions() -> impl Strategy<Value = Vec<(Vec<f64>, Vec<f64>)>> {
    prop::collection::vec((counts(), counts()), 1..20)
}

/// All functions together are the whole.
fn whole(functions: &[(Vec<f64>, Vec<f64>)]) -> (Vec<f64>, Vec<f64>) {
    let mut sums = (vec![0.0; CLUSTERS], vec![0.0; CLUSTERS]);
    for (before, after) in functions {
        for cluster in 0..CLUSTERS {
            sums.0[cluster] += before[cluster];
            sums.1[cluster] += after[cluster];
        }
    }
    sums
}

fn weighted(counts: &[f64], weight: f64) -> Counts {
    let sum: f64 = counts.iter().sum();
    Counts {
        by_cluster: counts.iter().map(|count| count * weight).collect(),
        squares: sum * weight * weight,
    }
}

fn changes(
    functions: &[(Vec<f64>, Vec<f64>)],
    normalization: Normalization,
    is_paired: bool,
    weight: f64,
) -> Vec<Change> {
    let (before, after) = whole(functions);
    let side = |counts: &[f64]| Side {
        all: weighted(counts, weight),
        exposure: vec![10.0; CLUSTERS],
    };
    let comparison = Comparison {
        normalization,
        fdr: 0.05,
        before: side(&before),
        after: side(&after),
        is_paired,
        is_sampled: true,
        seed: 1,
    };
    let pairs: Vec<Pair> = functions
        .iter()
        .map(|(before, after)| Pair {
            before: weighted(before, weight),
            after: weighted(after, weight),
        })
        .collect();
    let compared = compare(&comparison, &pairs, &pairs);
    compared.functions.iter().map(|it| it.own).collect()
}

fn is_near(one: f64, other: f64) -> bool {
    (one - other).abs() <= 1e-4 * (one.abs() + other.abs() + 1e-6)
}

fn normalizations() -> impl Strategy<Value = Normalization> {
    prop::sample::select(Normalization::ALL.to_vec())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(128))]

    #[test]
    fn an_interval_holds_its_ratio_and_q_is_no_less_than_p(
        functions in functions(),
        normalization in normalizations(),
        is_paired in any::<bool>(),
    ) {
        for change in changes(&functions, normalization, is_paired, 1.0) {
            if let (Some(ratio), Some(low)) = (change.ratio, change.low) {
                prop_assert!(low <= ratio * (1.0 + 1e-9), "{change:?}");
            }
            if let (Some(ratio), Some(high)) = (change.ratio, change.high) {
                prop_assert!(ratio <= high * (1.0 + 1e-9), "{change:?}");
            }
            prop_assert_eq!(change.p.is_some(), change.q.is_some());
            if let (Some(p), Some(q)) = (change.p, change.q) {
                prop_assert!((0.0..=1.0).contains(&p) && p <= q && q <= 1.0, "{change:?}");
                prop_assert_eq!(change.is_significant, q <= 0.05);
            }
            prop_assert_eq!(change.confirmation.is_some(), change.is_significant);
            if let Some(p) = change.permutation_p {
                // All ways to deal eight clusters; exchanging the sides of four pairs tells nothing.
                prop_assert!(!is_paired && (2.0 / 70.0..=1.0).contains(&p), "{change:?}");
            }
            let is_on_both_sides =
                matches!(change.class, ChangeClass::Changed | ChangeClass::Same);
            if is_on_both_sides {
                prop_assert_eq!(change.class == ChangeClass::Changed, change.is_significant);
            }
        }
    }

    #[test]
    fn sides_may_be_exchanged(
        functions in functions(),
        normalization in normalizations(),
        is_paired in any::<bool>(),
    ) {
        let exchanged: Vec<_> = functions
            .iter()
            .map(|(before, after)| (after.clone(), before.clone()))
            .collect();
        let forth = changes(&functions, normalization, is_paired, 1.0);
        let back = changes(&exchanged, normalization, is_paired, 1.0);
        for (forth, back) in forth.iter().zip(back) {
            prop_assert_eq!(forth.p.is_some(), back.p.is_some());
            if let (Some(one), Some(other)) = (forth.p, back.p) {
                prop_assert!(is_near(one, other), "{forth:?} {back:?}");
            }
            if let (Some(one), Some(other)) = (forth.permutation_p, back.permutation_p) {
                prop_assert!(is_near(one, other), "{forth:?} {back:?}");
            }
            if let (Some(one), Some(other)) = (forth.ratio, back.ratio)
                && one > 0.0
            {
                prop_assert!(is_near(one * other, 1.0), "{forth:?} {back:?}");
            }
        }
    }

    #[test]
    fn what_all_samples_weigh_does_not_matter(
        functions in functions(),
        normalization in normalizations(),
        is_paired in any::<bool>(),
    ) {
        let light = changes(&functions, normalization, is_paired, 1.0);
        let heavy = changes(&functions, normalization, is_paired, 8_388_608.0);
        for (light, heavy) in light.iter().zip(heavy) {
            prop_assert_eq!(light.class, heavy.class);
            let numbers =
                |it: &Change| [it.ratio, it.low, it.high, it.p, it.q, it.permutation_p];
            for (one, other) in numbers(light).into_iter().zip(numbers(&heavy)) {
                prop_assert_eq!(one.is_some(), other.is_some());
                let (one, other) = (one.unwrap_or(0.0), other.unwrap_or(0.0));
                prop_assert!(is_near(one, other), "{light:?} {heavy:?}");
            }
        }
    }

    #[test]
    fn the_order_of_clusters_does_not_matter(
        functions in functions(),
        normalization in normalizations(),
    ) {
        let backwards = |counts: &Vec<f64>| counts.iter().rev().copied().collect::<Vec<f64>>();
        let turned: Vec<_> = functions
            .iter()
            .map(|(before, after)| (backwards(before), after.clone()))
            .collect();
        let one = changes(&functions, normalization, false, 1.0);
        let other = changes(&turned, normalization, false, 1.0);
        for (one, other) in one.iter().zip(other) {
            if let (Some(p), Some(q)) = (one.permutation_p, other.permutation_p) {
                prop_assert!(is_near(p, q), "{one:?} {other:?}");
            }
        }
    }

    #[test]
    fn against_itself_nothing_changed(
        functions in functions(),
        normalization in normalizations(),
        is_paired in any::<bool>(),
    ) {
        let itself: Vec<_> = functions
            .iter()
            .map(|(before, _)| (before.clone(), before.clone()))
            .collect();
        for change in changes(&itself, normalization, is_paired, 1.0) {
            prop_assert_eq!(change.class, ChangeClass::Same);
            prop_assert!(change.p.is_none_or(|p| p > 0.99), "{change:?}");
            prop_assert!(change.ratio.is_none_or(|ratio| is_near(ratio, 1.0)), "{change:?}");
        }
    }
}

#[test]
fn what_is_no_sample_has_ratios_and_no_confidence() {
    let side = |value: f64| Side {
        all: Counts::of_samples(vec![value]),
        exposure: Vec::new(),
    };
    let pair = |before: f64, after: f64| Pair {
        before: Counts::of_samples(vec![before]),
        after: Counts::of_samples(vec![after]),
    };
    let comparison = Comparison {
        normalization: Normalization::Absolute,
        fdr: 0.05,
        before: side(1000.0),
        after: side(4000.0),
        is_paired: false,
        is_sampled: false,
        seed: 1,
    };
    let pairs = [
        pair(500.0, 500.0),
        pair(500.0, 3500.0),
        pair(0.0, 1.0),
        pair(1.0, 0.0),
    ];
    let compared = compare(&comparison, &pairs, &pairs);
    let classes: Vec<&str> = compared
        .functions
        .iter()
        .map(|it| it.own.class.name())
        .collect();
    assert_eq!(classes, ["same", "changed", "new", "gone"]);
    assert_eq!(compared.functions[1].own.ratio, Some(7.0));
    assert_eq!(compared.functions[2].own.ratio, None);
    assert_eq!(compared.tested, 0);
    let is_silent = |it: &Change| it.p.is_none() && it.q.is_none() && it.low.is_none();
    assert!(compared.functions.iter().all(|it| is_silent(&it.own)));
}

#[test]
fn a_new_function_with_many_samples_is_significant() {
    let mut functions = vec![(vec![1000.0; CLUSTERS], vec![1000.0; CLUSTERS]); 5];
    functions.push((vec![0.0; CLUSTERS], vec![20.0, 25.0, 22.0, 18.0]));
    functions.push((vec![1.0, 0.0, 0.0, 0.0], vec![0.0; CLUSTERS]));
    let changes = changes(&functions, Normalization::Share, false, 1.0);
    let new = changes[5];
    assert_eq!((new.class, new.is_significant), (ChangeClass::New, true));
    assert!(new.low > Some(5.0) && new.high.is_none(), "{new:?}");
    // One sample is no finding.
    let gone = changes[6];
    assert_eq!((gone.class, gone.p), (ChangeClass::Gone, None));
}

/// Differences of profiles have negative values; there is no number of samples in them.
#[test]
fn what_is_less_than_nothing_is_not_tested() {
    let difference = |value: f64| Counts {
        by_cluster: vec![value],
        squares: value.abs(),
    };
    let side = || Side {
        all: Counts::of_samples(vec![4e9]),
        exposure: Vec::new(),
    };
    let comparison = Comparison {
        normalization: Normalization::Share,
        fdr: 0.05,
        before: side(),
        after: side(),
        is_paired: false,
        is_sampled: true,
        seed: 1,
    };
    let pairs = [
        Pair {
            before: difference(-2e9),
            after: difference(2e9),
        },
        Pair {
            before: difference(2e9),
            after: difference(-2e9),
        },
    ];
    let compared = compare(&comparison, &pairs, &pairs);
    assert_eq!(compared.tested, 0);
    let classes: Vec<&str> = compared
        .functions
        .iter()
        .map(|it| it.own.class.name())
        .collect();
    assert_eq!(classes, ["new", "gone"]);
}

/// A burst in one instance is one event, and the samples of it are no independent witnesses.
#[test]
fn bursts_in_one_of_many_instances_are_no_finding() {
    const INSTANCES: usize = 10;
    let side = || Side {
        all: Counts::of_samples(vec![10_000.0; INSTANCES]),
        exposure: Vec::new(),
    };
    let mut burst = vec![0.0; INSTANCES];
    burst[3] = 20.0;
    let of = |counts: &[f64]| Counts::of_samples(counts.to_vec());
    let steady = Pair {
        before: of(&[1000.0; INSTANCES]),
        after: of(&[1000.0; INSTANCES]),
    };
    let new = Pair {
        before: of(&[0.0; INSTANCES]),
        after: of(&burst),
    };
    for is_paired in [false, true] {
        let comparison = Comparison {
            normalization: Normalization::Share,
            fdr: 0.05,
            before: side(),
            after: side(),
            is_paired,
            is_sampled: true,
            seed: 1,
        };
        let pairs = [steady.clone(), new.clone()];
        let compared = compare(&comparison, &pairs, &pairs);
        let change = compared.functions[1].own;
        assert!(!change.is_significant, "paired {is_paired}: {change:?}");
    }
}
