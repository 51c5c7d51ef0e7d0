//! The planted truths hold in the profiles, and nothing else changes.

use std::collections::BTreeMap;

use candela_demo::Demo;
use candela_demo::LEAK;
use candela_demo::MISSING_SYMBOLS;
use candela_demo::PERIOD_NS;
use candela_demo::PERTURBATION;
use candela_demo::REGRESSION;
use candela_demo::RENAME;
use candela_demo::SLOW_REGION;
use candela_model::FrameKind;
use candela_model::LocationId;
use candela_model::Profile;
use candela_model::ProfileSeries;

/// A full hour, so that an hour of the clock is an hour of the day.
const NOW_NS: i64 = 1_700_002_800_000_000_000;
const HOURS: usize = 24;
const MINUTE_NS: i64 = 60_000_000_000;

fn demo() -> Demo {
    Demo::new(1, NOW_NS)
}

/// The profile of one service in the hour that begins so many hours before the end.
fn hour(demo: &Demo, before_end: usize, service: &str) -> Profile {
    let mut profiles = demo.profiles_of_hour(HOURS - before_end).into_iter();
    let is_of_service =
        |profile: &Profile| profile.series[0].labels.get("service_name") == Some(service);
    profiles.find(is_of_service).unwrap()
}

fn of_type<'a>(profile: &'a Profile, name: &'a str) -> impl Iterator<Item = &'a ProfileSeries> {
    let series = profile.series.iter();
    series.filter(move |series| series.profile_type.sample_type == name)
}

fn name_of(profile: &Profile, location: LocationId) -> &str {
    let symbols = &profile.symbols;
    let line = symbols.lines(location).first();
    line.map_or("", |line| {
        symbols.strings.get(symbols.function(line.function).name)
    })
}

/// Own CPU time by function, of series that are wanted.
fn own_time(
    profile: &Profile,
    is_wanted: impl Fn(&ProfileSeries) -> bool,
) -> BTreeMap<String, f64> {
    let mut own = BTreeMap::new();
    for series in of_type(profile, "cpu").filter(|series| is_wanted(series)) {
        for sample in &series.samples {
            let leaf = profile.stacks.get(sample.stack)[0];
            *own.entry(name_of(profile, leaf).to_owned()).or_default() += sample.value as f64;
        }
    }
    own
}

/// Chance moves a ratio of so much time by less than this, but for once in ten thousand times.
fn tolerance(before: f64, after: f64) -> f64 {
    let samples = |value: f64| value / PERIOD_NS as f64;
    4.0 * (1.0 / samples(before) + 1.0 / samples(after)).sqrt() + 0.01
}

#[test]
fn the_same_seed_makes_the_same_day() {
    let series = |seed, now_ns, hour| -> Vec<ProfileSeries> {
        let profiles = Demo::new(seed, now_ns).profiles_of_hour(hour);
        profiles
            .into_iter()
            .flat_map(|profile| profile.series)
            .collect()
    };
    let once = series(1, NOW_NS, 23);
    assert_eq!(once, series(1, NOW_NS, 23));
    assert_ne!(once, series(2, NOW_NS, 23));
    // What happens so long before the end is the same whenever the end is.
    let shift_ns = 7 * 60 * MINUTE_NS;
    let mut later = series(1, NOW_NS + shift_ns + 1, 23);
    for series in &mut later {
        series.start_ns -= shift_ns;
        for sample in series
            .samples
            .iter_mut()
            .filter(|sample| sample.time_ns != 0)
        {
            sample.time_ns -= shift_ns;
        }
    }
    assert_eq!(once, later);
}

#[test]
fn profiles_are_valid_deep_and_have_what_agents_send() {
    let demo = demo();
    let profiles = demo.profiles_of_hour(HOURS - 1);
    assert_eq!(profiles.len(), demo.services().count());
    let mut kinds = Vec::new();
    let mut traced = 0;
    let mut timed = 0;
    for profile in &profiles {
        assert_eq!(profile.validate(), Ok(()));
        let (mut samples, mut deep) = (0, 0);
        for series in of_type(profile, "cpu") {
            assert!(
                series.start_ns >= NOW_NS - 60 * MINUTE_NS,
                "{}",
                series.labels
            );
            assert!(series.start_ns + series.duration_ns <= NOW_NS);
            assert_eq!(series.duration_ns, 10_000_000_000, "{}", series.labels);
            for sample in &series.samples {
                samples += 1;
                deep += i64::from(profile.stacks.get(sample.stack).len() >= 15);
                traced += i64::from(sample.link.0 != 0);
                let is_within = (series.start_ns..series.start_ns + series.duration_ns)
                    .contains(&sample.time_ns);
                timed += i64::from(is_within);
                assert!(is_within || sample.time_ns == 0);
                assert!(!profile.label_sets.get(sample.label_set).is_empty());
            }
        }
        let service = &profile.series[0].labels;
        assert!(
            service.get("service_name") == Some("imaging") || deep * 2 > samples,
            "{service}"
        );
        let deepest = profile
            .stacks
            .iter()
            .map(<[LocationId]>::len)
            .max()
            .unwrap();
        assert!((10..=64).contains(&deepest), "{service}: {deepest}");
        kinds.extend(
            profile
                .symbols
                .locations()
                .iter()
                .map(|location| location.kind),
        );
    }
    assert!(
        traced > 100 && timed > 100,
        "{traced} traced, {timed} timed"
    );
    for kind in [
        FrameKind::Native,
        FrameKind::Kernel,
        FrameKind::Go,
        FrameKind::Rust,
        FrameKind::Jvm,
        FrameKind::Cpython,
    ] {
        assert!(kinds.contains(&kind), "{kind}");
    }
}

#[test]
fn one_function_costs_more_since_its_deploy_and_no_other() {
    let demo = demo();
    assert_eq!(REGRESSION.before_end.as_secs(), 6 * 3600);
    let any = |_: &ProfileSeries| true;
    let before = own_time(&hour(&demo, 7, REGRESSION.service), any);
    let after = own_time(&hour(&demo, 6, REGRESSION.service), any);
    for (name, &before) in &before {
        let after = after[name];
        let expected = if name == REGRESSION.function {
            REGRESSION.factor
        } else {
            1.0
        };
        let off_by = after / before / expected - 1.0;
        assert!(off_by.abs() < tolerance(before, after), "{name}: {off_by}");
    }
    let deploys = demo.deploys();
    let is_there = |service, before_end| {
        let mut deploys = deploys.iter();
        deploys.any(|deploy| deploy.service == service && deploy.time_ns == demo.at_ns(before_end))
    };
    assert!(is_there(REGRESSION.service, REGRESSION.before_end));
    assert!(is_there(RENAME.service, RENAME.before_end));
}

#[test]
fn versions_change_with_the_deploy() {
    let demo = demo();
    for (before_end, version) in [
        (7, REGRESSION.version_before),
        (6, REGRESSION.version_after),
    ] {
        let profile = hour(&demo, before_end, REGRESSION.service);
        let mut series = profile.series.iter();
        assert!(series.all(|series| series.labels.get("version") == Some(version)));
    }
}

#[test]
fn a_rename_moves_cost_and_keeps_the_sum() {
    let demo = demo();
    let any = |_: &ProfileSeries| true;
    let before = own_time(&hour(&demo, 19, RENAME.service), any);
    let after = own_time(&hour(&demo, 18, RENAME.service), any);
    assert_eq!(before.get(RENAME.to), None);
    assert_eq!(after.get(RENAME.from), None);
    let (from, to) = (before[RENAME.from], after[RENAME.to]);
    assert!(
        (to / from - 1.0).abs() < tolerance(from, to),
        "{from} to {to}"
    );
    let sums = [&before, &after].map(|own| own.values().sum::<f64>());
    assert!(
        (sums[1] / sums[0] - 1.0).abs() < tolerance(sums[0], sums[1]),
        "{sums:?}"
    );
}

#[test]
fn a_perturbation_is_in_the_distribution_and_not_in_the_sum() {
    let demo = demo();
    let profile = hour(&demo, 1, PERTURBATION.service);
    let mut windows: BTreeMap<i64, Vec<f64>> = BTreeMap::new();
    for series in of_type(&profile, "cpu") {
        windows
            .entry(series.start_ns)
            .or_default()
            .push(series.total() as f64);
    }
    let from_ns = demo.at_ns(PERTURBATION.before_end);
    let to_ns = demo.at_ns(PERTURBATION.before_end - PERTURBATION.duration);
    let usual = windows.values().flatten().sum::<f64>() / windows.len() as f64;
    let mut perturbed = 0;
    for (start_ns, replicas) in &windows {
        let sum: f64 = replicas.iter().sum();
        assert!((sum / usual - 1.0).abs() < 0.35, "{sum} of {usual}");
        let highest = replicas
            .iter()
            .fold(0.0, |highest, &value| f64::max(highest, value));
        let is_perturbed = (from_ns..to_ns).contains(start_ns);
        assert_eq!(highest > sum * 0.7, is_perturbed, "{replicas:?}");
        perturbed += i64::from(is_perturbed);
    }
    assert_eq!(perturbed, 3);
}

#[test]
fn one_region_is_slower_in_one_function() {
    let demo = demo();
    let profile = hour(&demo, 12, SLOW_REGION.service);
    let of = |region: &str| {
        own_time(&profile, |series| {
            series.labels.get("region") == Some(region)
        })
    };
    let slow = of(SLOW_REGION.region);
    let other = of("us-east-1");
    for (name, &other) in other
        .iter()
        .filter(|&(_, &value)| value > 300.0 * PERIOD_NS as f64)
    {
        let expected = if name == SLOW_REGION.function {
            SLOW_REGION.factor
        } else {
            1.0
        };
        let off_by = slow[name] / other / expected - 1.0;
        // Machines differ by themselves.
        assert!(
            off_by.abs() < tolerance(other, slow[name]) + 0.1,
            "{name}: {off_by}"
        );
    }
}

#[test]
fn memory_grows_at_one_place() {
    let demo = demo();
    let held = |before_end| {
        let profile = hour(&demo, before_end, LEAK.service);
        let series: Vec<&ProfileSeries> = of_type(&profile, "inuse_space").collect();
        let windows = series.len() as f64;
        let (mut leak, mut rest) = (0.0, 0.0);
        for sample in series.iter().flat_map(|series| &series.samples) {
            let stack = profile.stacks.get(sample.stack);
            let is_leak = stack
                .iter()
                .any(|&location| name_of(&profile, location) == LEAK.function);
            *(if is_leak { &mut leak } else { &mut rest }) += sample.value as f64 / windows;
        }
        (leak, rest)
    };
    let (early, early_rest) = held(20);
    let (late, late_rest) = held(2);
    let by_hour = (late - early) / 18.0;
    assert!(
        (by_hour / LEAK.bytes_per_hour as f64 - 1.0).abs() < 0.01,
        "{by_hour}"
    );
    assert!(
        (late_rest / early_rest - 1.0).abs() < 0.01,
        "{early_rest} to {late_rest}"
    );
}

#[test]
fn one_library_has_addresses_only() {
    let profile = hour(&demo(), 1, MISSING_SYMBOLS.service);
    let symbols = &profile.symbols;
    let mut nameless = 0;
    for (index, location) in symbols.locations().iter().enumerate() {
        let binary = symbols.strings.get(symbols.mapping(location.mapping).file);
        let has_name = !symbols.lines(LocationId::from_index(index)).is_empty();
        assert_eq!(has_name, binary != MISSING_SYMBOLS.binary, "{binary}");
        nameless += i64::from(!has_name);
    }
    assert!(nameless >= 4, "{nameless}");
}
