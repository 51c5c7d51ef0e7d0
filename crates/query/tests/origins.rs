//! Lines from an origin, over profiles and over their sums.

use crate::common::CPU;
use crate::common::NOON_NS;
use crate::common::block_on;
use crate::common::options;
use crate::common::profile;
use crate::common::query;
use candela_query::Engine;
use candela_query::PointValue;
use candela_query::SeriesOptions;
use candela_store::Store;
use candela_store::Tier;

const MINUTE_NS: i64 = 60_000_000_000;
const HOUR_NS: i64 = 60 * MINUTE_NS;
/// Six days of profiles, of which some start at full hours.
const PROFILES: i64 = 6 * 24 * 5;

#[test]
fn sums_stand_for_profiles_only_where_steps_begin_and_end_with_them() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let store = Store::open(options(directory.path())).expect("opens");
    block_on(async {
        let mut all = profile("a", CPU, 1);
        let first = all.series[0].clone();
        all.series = (0..PROFILES)
            .map(|number| {
                let mut series = first.clone();
                series.start_ns = NOON_NS + number * 12 * MINUTE_NS;
                series.samples[0].value = 1 + number;
                series
            })
            .collect();
        store.append("t", all).await.expect("appends");
        store.flush().await.expect("flushes");
    });
    let engine = Engine::new(store.clone());
    let lines = |origin_ns: Option<i64>| {
        let options = SeriesOptions {
            step_ns: Some(HOUR_NS),
            origin_ns,
            ..SeriesOptions::default()
        };
        let answer = engine.series(&query("{}", "cpu"), &options).expect("lines");
        assert_eq!(answer.partial, None);
        answer.value.series[0].points.clone()
    };
    let origins = [
        None,
        Some(NOON_NS),
        Some(NOON_NS - 1),
        Some(NOON_NS + 5 * MINUTE_NS),
        Some(NOON_NS + 100 * HOUR_NS),
    ];
    let before = origins.map(lines);
    // The first profile starts at the first point, the next five belong to the one after.
    let expected = [(NOON_NS, 1), (NOON_NS + HOUR_NS, 2 + 3 + 4 + 5 + 6)];
    let expected = expected.map(|(point_ns, value)| (point_ns, PointValue::Whole(value)));
    assert_eq!(before[1][..2], expected);
    assert_eq!(before[1], before[4], "an origin is any of the points");
    store.compact().expect("merges");
    assert!(store.status().tiers[Tier::Hourly as usize].blocks > 0);
    for (origin, before) in origins.into_iter().zip(before) {
        assert_eq!(lines(origin), before, "{origin:?}");
    }
}
