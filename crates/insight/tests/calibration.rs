//! How often a comparison calls wolf where nothing changed, and how often it sees what did: the table that
//! the method was chosen by, and what it does not have.

use crate::support::Fleet;
use crate::support::Random;
use candela_insight::Change;
use candela_insight::Comparison;
use candela_insight::Confirmation;
use candela_insight::Counts;
use candela_insight::Pair;
use candela_insight::compare;

const ALPHA: f64 = 0.05;

/// Part of the functions whose p is below 5 %, of one comparison of them all.
fn rejected(comparison: &Comparison, functions: &[Pair]) -> f64 {
    let compared = compare(comparison, functions, functions);
    let changes: Vec<Change> = compared.functions.iter().map(|it| it.own).collect();
    part_of(&changes)
}

/// The same, each compared alone: there are no neighbours to learn from.
fn rejected_alone(comparison: &Comparison, functions: &[Pair]) -> f64 {
    let changes: Vec<Change> = functions
        .iter()
        .map(|pair| {
            let pair = std::slice::from_ref(pair);
            compare(comparison, pair, pair).functions[0].own
        })
        .collect();
    part_of(&changes)
}

/// Part of the functions that exchanging clusters confirms, whatever the other test says of them: each by
/// itself, as nothing is learned from neighbours.
fn confirmed(comparison: &Comparison, functions: &[Pair]) -> f64 {
    let comparison = Comparison {
        fdr: 1.0,
        ..comparison.clone()
    };
    let nothing = vec![Pair::default(); functions.len()];
    let compared = compare(&comparison, functions, &nothing);
    let confirmations = compared.functions.iter().map(|it| it.own.confirmation);
    let confirmed = confirmations.filter(|it| *it == Some(Confirmation::Confirmed));
    confirmed.count() as f64 / functions.len() as f64
}

fn part_of(changes: &[Change]) -> f64 {
    let is_rejected = |change: &&Change| change.p.expect("tested") < ALPHA;
    changes.iter().filter(is_rejected).count() as f64 / changes.len() as f64
}

fn functions(fleet: Fleet, count: usize, seed: u64) -> Vec<Pair> {
    let mut random = Random::new(seed);
    (0..count).map(|_| fleet.pair(&mut random)).collect()
}

/// Everything of a side in one cluster: what is left where instances are not told apart.
fn pooled(pair: &Pair) -> Pair {
    let pool = |counts: &Counts| Counts::of_samples(vec![counts.sum()]);
    Pair {
        before: pool(&pair.before),
        after: pool(&pair.after),
    }
}

fn pooled_sides(fleet: Fleet) -> Comparison {
    let mut comparison = fleet.comparison(false);
    for side in [&mut comparison.before, &mut comparison.after] {
        side.all = Counts::of_samples(vec![side.all.sum()]);
    }
    comparison
}

fn same(instances: usize, share: f64, instance_noise: f64) -> Fleet {
    Fleet {
        instances,
        share,
        instance_noise,
        change: 1.0,
    }
}

/// A row of the table: what was found when the method was chosen, by pooled samples, by instances, and by
/// exchanging instances.
struct Row {
    fleet: Fleet,
    comparisons: usize,
    pooled: f64,
    by_instances: f64,
    by_permutation: f64,
}

/// How many comparisons each figure of the table is of.
const COMPARISONS_OF_THE_TABLE: f64 = 2000.0;

/// What two simulations of so many comparisons may differ by, but for once in a few hundred times.
fn simulation_error(expected: f64, comparisons: usize) -> f64 {
    let variance = expected * (1.0 - expected);
    // A figure of 100 % says no more than that it is above 99.
    let variance = variance.max(0.01 * 0.99);
    3.0 * (variance * (1.0 / COMPARISONS_OF_THE_TABLE + 1.0 / comparisons as f64)).sqrt()
}

fn rows() -> [Row; 8] {
    let row = |fleet, comparisons, pooled, by_instances, by_permutation| Row {
        fleet,
        comparisons,
        pooled,
        by_instances,
        by_permutation,
    };
    let changed = |instances, change| Fleet {
        change,
        ..same(instances, 0.05, 0.05)
    };
    [
        row(same(10, 0.01, 0.0), 3000, 0.059, 0.031, 0.055),
        row(same(10, 0.01, 0.05), 3000, 0.114, 0.044, 0.047),
        row(same(10, 0.05, 0.05), 3000, 0.330, 0.048, 0.048),
        // Of eight instances there are 70 arrangements, and an exact p is a multiple of 1/35: one in 35 is
        // below 5 %. The table has 7.7 %, of a test that did not count the arrangement of the data.
        row(same(4, 0.05, 0.05), 3000, 0.314, 0.053, 1.0 / 35.0),
        row(same(50, 0.05, 0.05), 1200, 0.310, 0.053, 0.053),
        row(changed(10, 1.05), 3000, 0.78, 0.38, 0.37),
        row(changed(10, 1.10), 3000, 1.00, 0.89, 0.89),
        row(changed(50, 1.05), 1000, 1.00, 0.97, 0.97),
    ]
}

/// By instances one in twenty is rejected where nothing changed, and pooled samples call wolf one time in
/// three: why an answer without clusters says that it has none.
#[test]
fn every_row_of_the_table_is_found_again() {
    for (seed, row) in (1..).zip(rows()) {
        let Row {
            fleet, comparisons, ..
        } = row;
        let functions = functions(fleet, comparisons, seed);
        let by_instances = rejected_alone(&fleet.comparison(false), &functions);
        let pools: Vec<Pair> = functions.iter().map(pooled).collect();
        let pooled = rejected(&pooled_sides(fleet), &pools);
        println!("{fleet:?}: {pooled:.3} pooled, {by_instances:.3} by instances");
        for (found, expected) in [(pooled, row.pooled), (by_instances, row.by_instances)] {
            let error = simulation_error(expected, comparisons);
            assert!(
                (found - expected).abs() < error,
                "{fleet:?}: {found} and not {expected} ± {error:.3}"
            );
        }
    }
}

/// Without a model as often as with one: what is called a change is not what the model makes of it.
#[test]
fn exchanging_instances_says_what_the_table_has() {
    for (seed, row) in (1..).zip(rows()) {
        let Row { fleet, .. } = row;
        // A thousand arrangements of a hundred instances take their time.
        let comparisons = row.comparisons * 10 / (10 + fleet.instances);
        let functions = functions(fleet, comparisons, seed);
        let found = confirmed(&fleet.comparison(false), &functions);
        println!("{fleet:?}: {found:.3} by permutation");
        let error = simulation_error(row.by_permutation, comparisons);
        assert!(
            (found - row.by_permutation).abs() < error,
            "{fleet:?}: {found} and not {} ± {error:.3}",
            row.by_permutation
        );
    }
}

/// Loads of instances differ, and so do arrangements: a large instance brings more of its own to its side.
#[test]
fn instances_of_unlike_sizes_are_not_confirmed_more_often() {
    for (seed, (instances, is_paired)) in (71..).zip([(10, false), (10, true)]) {
        let mut random = Random::new(seed);
        let fleet = same(instances, 0.05, 0.10);
        let found: Vec<f64> = (0..12)
            .map(|_| {
                let sizes = fleet.sizes(1.0, &mut random);
                let functions: Vec<Pair> = (0..100)
                    .map(|_| fleet.pair_of_sizes(&sizes, is_paired, &mut random))
                    .collect();
                confirmed(&fleet.comparison_of_sizes(&sizes, is_paired), &functions)
            })
            .collect();
        let mean = found.iter().sum::<f64>() / found.len() as f64;
        println!("{instances} instances, paired {is_paired}: {mean:.3}");
        assert!((0.01..0.09).contains(&mean), "{instances}: {mean}");
    }
}

/// What is significant after all functions are looked at has a p so small that exchanging says the same.
#[test]
fn most_of_what_changed_is_confirmed() {
    let (mut significant, mut confirmed) = (0, 0);
    for is_paired in [false, true] {
        let fleet = Fleet {
            change: 1.15,
            ..same(10, 0.05, 0.05)
        };
        let functions = functions(fleet, 300, 81);
        let compared = compare(&fleet.comparison(is_paired), &functions, &functions);
        for function in &compared.functions {
            let change = &function.own;
            assert_eq!(change.confirmation.is_some(), change.is_significant);
            significant += u32::from(change.is_significant);
            confirmed += u32::from(change.confirmation == Some(Confirmation::Confirmed));
        }
    }
    println!("{confirmed} of {significant} are confirmed");
    assert!(significant > 500, "{significant}");
    assert!(
        confirmed * 100 >= significant * 98,
        "{confirmed} of {significant}"
    );
}

/// What neighbours tell must not make more of what is nothing, nor less of what changed.
#[test]
fn many_functions_together_are_judged_like_each_alone() {
    for (seed, row) in (1..).zip(rows()) {
        let functions = functions(row.fleet, row.comparisons, seed);
        let together = rejected(&row.fleet.comparison(false), &functions);
        println!("{:?}: {together:.3} together", row.fleet);
        if row.fleet.change == 1.0 {
            // Less often where clusters do not differ, as φ is at least 1.
            assert!((0.015..0.065).contains(&together), "{together}");
        } else {
            assert!(together > row.by_instances - 0.05, "{together}");
        }
    }
}

/// Loads of instances differ, and large ones decide a ratio.
#[test]
fn instances_of_unlike_sizes_call_wolf_no_more_often() {
    for (seed, (instances, is_paired)) in (61..).zip([(10, false), (32, false), (10, true)]) {
        let mut random = Random::new(seed);
        let fleet = same(instances, 0.05, 0.10);
        let found: Vec<f64> = (0..15)
            .map(|_| {
                let sizes = fleet.sizes(1.0, &mut random);
                let functions: Vec<Pair> = (0..200)
                    .map(|_| fleet.pair_of_sizes(&sizes, is_paired, &mut random))
                    .collect();
                rejected_alone(&fleet.comparison_of_sizes(&sizes, is_paired), &functions)
            })
            .collect();
        let mean = found.iter().sum::<f64>() / found.len() as f64;
        println!("{instances} instances, paired {is_paired}: {mean:.3}");
        assert!((0.01..0.09).contains(&mean), "{instances}: {mean}");
    }
}

#[test]
fn the_same_instances_before_and_after_are_compared_each_with_itself() {
    let rates = |change: f64, seed: u64| {
        let fleet = Fleet {
            change,
            ..same(10, 0.05, 0.20)
        };
        let mut random = Random::new(seed);
        let functions: Vec<Pair> = (0..2000)
            .map(|_| fleet.pair_of_same_instances(&mut random))
            .collect();
        [true, false].map(|is_paired| {
            let comparison = fleet.comparison(is_paired);
            let rates = (
                rejected(&comparison, &functions),
                rejected_alone(&comparison, &functions),
            );
            println!("change {change}, paired {is_paired}: {rates:?}");
            rates
        })
    };
    let [(together, alone), _] = rates(1.0, 31);
    assert!((0.015..0.065).contains(&together), "{together}");
    assert!((0.020..0.070).contains(&alone), "{alone}");
    let [(paired, _), (unpaired, _)] = rates(1.05, 32);
    assert!(paired > 0.65 && unpaired < 0.05, "{paired} {unpaired}");
}

#[test]
fn intervals_hold_the_truth_nineteen_times_in_twenty() {
    let fleet = Fleet {
        change: 1.10,
        ..same(10, 0.05, 0.05)
    };
    let functions = functions(fleet, 3000, 41);
    let compared = compare(&fleet.comparison(false), &functions, &functions);
    let holds = compared.functions.iter().filter(|function| {
        let (low, high) = (function.own.low, function.own.high);
        low.expect("an interval") <= 1.10 && 1.10 <= high.expect("an interval")
    });
    let part = holds.count() as f64 / functions.len() as f64;
    assert!((0.935..0.985).contains(&part), "{part}");
}

#[test]
fn of_what_is_called_significant_few_are_chance() {
    let (mut found, mut wrong, mut missed) = (0, 0, 0);
    for seed in 51..57 {
        let mut random = Random::new(seed);
        let functions: Vec<Pair> = (0..300)
            .map(|number| {
                let change = if number % 10 == 0 { 1.3 } else { 1.0 };
                let fleet = Fleet {
                    change,
                    ..same(10, 0.02, 0.05)
                };
                fleet.pair(&mut random)
            })
            .collect();
        let comparison = same(10, 0.02, 0.05).comparison(false);
        let compared = compare(&comparison, &functions, &functions);
        for (number, function) in compared.functions.iter().enumerate() {
            let is_changed = number % 10 == 0;
            found += usize::from(function.own.is_significant);
            wrong += usize::from(function.own.is_significant && !is_changed);
            missed += usize::from(!function.own.is_significant && is_changed);
        }
    }
    assert!(wrong * 100 <= found * 8, "{wrong} of {found} are wrong");
    assert!(missed <= 2, "{missed} missed");
}
