//! What comparisons say of days that were made up: where nothing changed one function in twenty has a p
//! below 5 % and next to none is called significant, and what is planted is found with its size.

use std::collections::BTreeMap;
use std::collections::BTreeSet;

use candela_demo::Demo;
use candela_demo::PERIOD_NS;
use candela_demo::REGRESSION;
use candela_insight::Change;
use candela_insight::Comparison;
use candela_insight::Counts;
use candela_insight::Normalization;
use candela_insight::Pair;
use candela_insight::Side;
use candela_insight::compare;
use candela_model::LocationId;
use candela_model::Profile;

/// A full hour, so that an hour of the clock is an hour of the day.
const NOW_NS: i64 = 1_700_002_800_000_000_000;
const HOURS: usize = 24;
const ALPHA: f64 = 0.05;
/// Services with six replicas.
const SERVICES: [&str; 3] = ["gateway", "checkout", "payments"];

/// Samples of one service in an hour, by replica.
struct Hour {
    all: Vec<f64>,
    /// By function, those in which it ran itself.
    own: BTreeMap<String, Vec<f64>>,
}

/// How often something was called a change.
#[derive(Clone, Copy, Debug, Default)]
struct Calls {
    tested: u32,
    /// With a p below 5 %.
    unlikely: u32,
    significant: u32,
}

impl Hour {
    fn of(profile: &Profile) -> Self {
        let series = || {
            let series = profile.series.iter();
            series.filter(|series| series.profile_type.sample_type == "cpu")
        };
        let pods: BTreeSet<&str> = series().map(|it| it.labels.get("pod").unwrap()).collect();
        let nothing = vec![0.0; pods.len()];
        let mut hour = Self {
            all: nothing.clone(),
            own: BTreeMap::new(),
        };
        for series in series() {
            let pod = series.labels.get("pod").unwrap();
            let replica = pods.range(..pod).count();
            for sample in &series.samples {
                let leaf = profile.stacks.get(sample.stack)[0];
                let own = hour.own.entry(name_of(profile, leaf).to_owned());
                let samples = (sample.value / PERIOD_NS) as f64;
                own.or_insert_with(|| nothing.clone())[replica] += samples;
                hour.all[replica] += samples;
            }
        }
        hour
    }

    fn side(&self) -> Side {
        Side {
            all: Counts::of_samples(self.all.clone()),
            exposure: Vec::new(),
        }
    }

    fn counts(&self, function: &str) -> Counts {
        let nothing = || vec![0.0; self.all.len()];
        Counts::of_samples(self.own.get(function).cloned().unwrap_or_else(nothing))
    }

    /// All replicas as if they were one.
    fn pooled(&self) -> Self {
        let pool = |counts: &Vec<f64>| vec![counts.iter().sum::<f64>()];
        let own = self.own.iter();
        Self {
            all: pool(&self.all),
            own: own
                .map(|(name, counts)| (name.clone(), pool(counts)))
                .collect(),
        }
    }
}

impl Calls {
    fn add<'a>(&mut self, changes: impl Iterator<Item = &'a Change>) {
        for change in changes {
            let Some(p) = change.p else { continue };
            self.tested += 1;
            self.unlikely += u32::from(p < ALPHA);
            self.significant += u32::from(change.is_significant);
        }
    }

    fn unlikely_part(self) -> f64 {
        f64::from(self.unlikely) / f64::from(self.tested)
    }
}

fn name_of(profile: &Profile, location: LocationId) -> &str {
    let symbols = &profile.symbols;
    let line = symbols.lines(location).first();
    line.map_or("", |line| {
        symbols.strings.get(symbols.function(line.function).name)
    })
}

/// The services in the hour that begins so many hours before the end, in one order.
fn hours(seed: u64, before_end: usize, services: &[&str]) -> Vec<Hour> {
    let profiles = Demo::new(seed, NOW_NS).profiles_of_hour(HOURS - before_end);
    let is_wanted = |profile: &&Profile| {
        let service = profile.series[0].labels.get("service_name").unwrap();
        services.contains(&service)
    };
    profiles.iter().filter(is_wanted).map(Hour::of).collect()
}

/// What became of the functions of either side.
fn changes(
    before: &Hour,
    after: &Hour,
    is_paired: bool,
    normalization: Normalization,
) -> BTreeMap<String, Change> {
    let comparison = Comparison {
        normalization,
        fdr: ALPHA,
        before: before.side(),
        after: after.side(),
        is_paired,
        is_sampled: true,
        seed: 1,
    };
    let names: BTreeSet<&String> = before.own.keys().chain(after.own.keys()).collect();
    let pairs: Vec<Pair> = names
        .iter()
        .map(|name| Pair {
            before: before.counts(name),
            after: after.counts(name),
        })
        .collect();
    let compared = compare(&comparison, &pairs, &pairs);
    let changes = compared.functions.into_iter().map(|it| it.own);
    names.into_iter().cloned().zip(changes).collect()
}

/// Days of two seeds are of other machines, which differ in what the same work costs them.
#[test]
fn other_machines_are_no_change_and_pooled_samples_take_them_for_one() {
    let (mut by_replicas, mut pooled) = (Calls::default(), Calls::default());
    for pair in 0..10 {
        let [before, after] = [2 * pair + 1, 2 * pair + 2].map(|seed| hours(seed, 12, &SERVICES));
        for (before, after) in before.iter().zip(&after) {
            let share = Normalization::Share;
            by_replicas.add(changes(before, after, false, share).values());
            let (before, after) = (before.pooled(), after.pooled());
            pooled.add(changes(&before, &after, false, share).values());
        }
    }
    println!("by replicas {by_replicas:?}, pooled {pooled:?}");
    assert!(by_replicas.tested > 500, "{by_replicas:?}");
    let part = by_replicas.unlikely_part();
    assert!((0.01..0.07).contains(&part), "{by_replicas:?}");
    assert!(
        by_replicas.significant * 100 <= by_replicas.tested,
        "{by_replicas:?}"
    );
    assert!(pooled.unlikely_part() > 2.0 * part, "{pooled:?}");
}

#[test]
fn an_hour_and_the_next_one_are_the_same() {
    let mut calls = Calls::default();
    for seed in 1..7 {
        let [before, after] = [4, 3].map(|before_end| hours(seed, before_end, &SERVICES));
        for (before, after) in before.iter().zip(&after) {
            calls.add(changes(before, after, true, Normalization::Share).values());
        }
    }
    println!("{calls:?}");
    assert!(calls.tested > 300, "{calls:?}");
    // Replicas differ by sampling alone here, of which φ makes no less: fewer than one in twenty.
    assert!(calls.unlikely_part() < 0.06, "{calls:?}");
    assert!(calls.significant * 100 <= calls.tested, "{calls:?}");
}

#[test]
fn the_regression_is_found_with_its_size_and_alone() {
    const SEEDS: u64 = 8;
    let (mut found, mut held) = (0, 0);
    let mut others = Calls::default();
    for seed in 1..=SEEDS {
        let [before, after] =
            [7, 6].map(|before_end| hours(seed, before_end, &[REGRESSION.service]));
        let mut changes = changes(&before[0], &after[0], false, Normalization::Robust);
        let regression = changes.remove(REGRESSION.function).unwrap();
        let (low, high) = (regression.low.unwrap(), regression.high.unwrap());
        println!("seed {seed}: {low:.3} to {high:.3}, q {:?}", regression.q);
        found += u32::from(regression.is_significant);
        held += u32::from((low..high).contains(&REGRESSION.factor));
        others.add(changes.values());
    }
    println!("others: {others:?}");
    assert!(found >= 7 && held >= 7, "found {found}, held {held}");
    assert!(others.significant * 50 <= others.tested, "{others:?}");
}
