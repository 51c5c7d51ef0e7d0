use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use axum::http::StatusCode;
use tokio::runtime::Builder;

use super::Asker;
use super::Turns;
use super::queue::Begun;
use super::queue::Queue;
use crate::auth::Caller;
use crate::auth::TenantName;

const SECOND: Duration = Duration::from_secs(1);
const LONG: Duration = Duration::from_secs(600);

/// A caller who may ask about any tenant.
fn caller(caller: &str, tenant: &str) -> Asker {
    Asker {
        tenant: TenantName::new(tenant).expect("a name"),
        caller: caller.into(),
        is_of_tenant: false,
    }
}

/// An account of a tenant.
fn account(tenant: &str, name: &str) -> Asker {
    Asker {
        is_of_tenant: true,
        ..caller(name, tenant)
    }
}

fn join(queue: &mut Queue, asker: &Asker, count: usize) {
    for _ in 0..count {
        queue.join(asker, 1).expect("there is room");
    }
}

/// Who takes turn after turn on one slot, as long as `took` says, by the last word of their names.
fn take_all(queue: &mut Queue, took: impl Fn(&Begun) -> Duration) -> String {
    let mut order = String::new();
    while let Some(begun) = queue.begin() {
        queue.end(&begun, Some(took(&begun)));
        order.push_str(&begun.asker().caller);
    }
    order
}

/// The turns that each gets of a thousand on so many slots when all always have more to ask.
fn shares<const N: usize>(slots: usize, askers: &[(Asker, u32); N]) -> [usize; N] {
    let mut queue = Queue::new(slots);
    for (asker, weight) in askers {
        for _ in 0..=slots {
            queue.join(asker, *weight).expect("there is room");
        }
    }
    let mut running = Vec::new();
    let mut counts = [0; N];
    for _ in 0..1000 {
        running.extend(std::iter::from_fn(|| queue.begin()));
        let begun = running.remove(0);
        queue.end(&begun, Some(SECOND));
        let ended = askers.iter().position(|(asker, _)| asker == begun.asker());
        let ended = ended.expect("one of them");
        counts[ended] += 1;
        let (asker, weight) = &askers[ended];
        queue.join(asker, *weight).expect("there is room");
    }
    counts
}

/// What a caller asks: turns of a length, so many at once.
struct Load {
    asker: Asker,
    took: Duration,
    at_once: usize,
}

/// The time of turns that each gets within an hour. Who has had a turn asks again when the slot is somebody's.
fn used_in_an_hour(slots: usize, loads: &[Load]) -> Vec<f64> {
    let mut queue = Queue::new(slots);
    for load in loads {
        join(&mut queue, &load.asker, load.at_once);
    }
    let mut now = Duration::ZERO;
    let mut running: Vec<(Duration, Begun)> = Vec::new();
    let mut used = vec![Duration::ZERO; loads.len()];
    let of = |begun: &Begun| loads.iter().position(|load| load.asker == *begun.asker());
    while now < Duration::from_secs(3600) {
        let begun = std::iter::from_fn(|| queue.begin());
        running.extend(begun.map(|begun| (now + loads[of(&begun).expect("known")].took, begun)));
        running.sort_by_key(|(end, _)| *end);
        let (end, begun) = running.remove(0);
        now = end;
        let load = of(&begun).expect("known");
        used[load] += loads[load].took;
        queue.end(&begun, Some(loads[load].took));
        let begun = std::iter::from_fn(|| queue.begin());
        running.extend(begun.map(|begun| (now + loads[of(&begun).expect("known")].took, begun)));
        join(&mut queue, &loads[load].asker, 1);
    }
    used.iter().map(Duration::as_secs_f64).collect()
}

fn block_on<T>(work: impl Future<Output = T>) -> T {
    let runtime = Builder::new_current_thread().enable_time().build();
    runtime.expect("a runtime").block_on(work)
}

#[test]
fn one_who_asks_for_much_does_not_hold_up_another() {
    let mut queue = Queue::new(1);
    join(&mut queue, &caller("h", "a"), 4);
    join(&mut queue, &caller("l", "a"), 2);
    assert_eq!(take_all(&mut queue, |_| SECOND), "hlhlhh");
}

#[test]
fn turns_are_shared_by_time_and_not_by_number() {
    let mut queue = Queue::new(1);
    join(&mut queue, &caller("L", "a"), 2);
    join(&mut queue, &caller("s", "a"), 4);
    let order = take_all(&mut queue, |begun| match &*begun.asker().caller {
        "L" => SECOND * 3,
        _ => SECOND,
    });
    assert_eq!(order, "LsssLs");
}

#[test]
fn many_callers_of_a_tenant_get_as_much_as_one_of_another() {
    let many = ["1", "2", "3"].map(|name| (account("many", name), 1));
    let [one, two, three] = many;
    let counts = shares(1, &[one, two, three, (account("one", "1"), 1)]);
    assert!(
        counts[..3].iter().all(|count| (160..=173).contains(count)),
        "{counts:?}"
    );
    assert!((495..=505).contains(&counts[3]), "{counts:?}");
}

#[test]
fn who_names_many_tenants_gets_no_more_than_who_names_one() {
    let many = ["1", "2", "3"].map(|tenant| (caller("many", tenant), 1));
    let [one, two, three] = many;
    let counts = shares(1, &[one, two, three, (caller("one", "prod"), 1)]);
    assert!((495..=505).contains(&counts[3]), "{counts:?}");
}

#[test]
fn a_tenant_of_three_times_the_weight_gets_three_turns_for_one() {
    for slots in [1, 2, 3, 4] {
        let of_accounts = [(account("plain", "1"), 1), (account("weighty", "1"), 3)];
        let of_one_caller = [
            (caller("proxy", "plain"), 1),
            (caller("proxy", "weighty"), 3),
        ];
        for askers in [of_accounts, of_one_caller] {
            let [plain, weighty] = shares(slots, &askers);
            let ratio = weighty as f64 / plain as f64;
            assert!(
                (2.9..3.1).contains(&ratio),
                "{slots} slots: {plain} and {weighty}"
            );
        }
    }
}

#[test]
fn who_was_away_has_saved_no_turns() {
    let mut queue = Queue::new(1);
    join(&mut queue, &account("a", "s"), 103);
    for _ in 0..100 {
        let begun = queue.begin().expect("a slot is free");
        queue.end(&begun, Some(SECOND));
    }
    // Others have used nothing yet.
    join(&mut queue, &account("b", "o"), 1);
    join(&mut queue, &account("a", "l"), 3);
    let order = take_all(&mut queue, |_| SECOND);
    assert_eq!(order.replace('o', ""), "lslsls");
}

#[test]
fn long_turns_one_after_the_other_take_no_more_than_many_short_ones() {
    let load = |name: &str, seconds: u64, at_once: usize| Load {
        asker: caller(name, "a"),
        took: SECOND * seconds as u32,
        at_once,
    };
    for slots in [1, 2] {
        let mut loads = vec![load("long", 30, 1), load("longer", 60, 1)];
        loads.extend(["1", "2", "3", "4"].map(|name| load(name, 1, 3)));
        let used = used_in_an_hour(slots, &loads);
        let fair = used.iter().sum::<f64>() / used.len() as f64;
        assert!(
            used.iter().all(|used| (0.85..1.2).contains(&(used / fair))),
            "{slots} slots: {used:?}"
        );
    }
}

#[test]
fn who_joins_while_a_long_turn_goes_on_alternates_with_the_others() {
    let mut queue = Queue::new(2);
    join(&mut queue, &caller("x", "a"), 1);
    join(&mut queue, &caller("s", "a"), 80);
    let _long = queue.begin().expect("a slot is free");
    for _ in 0..60 {
        let begun = queue.begin().expect("a slot is free");
        queue.end(&begun, Some(SECOND));
    }
    join(&mut queue, &caller("n", "a"), 10);
    assert_eq!(take_all(&mut queue, |_| SECOND)[..8], *"nsnsnsns");
}

#[test]
fn a_place_says_how_many_turns_begin_before() {
    let mut queue = Queue::new(2);
    let [many, few] = [caller("many", "a"), caller("few", "a")];
    join(&mut queue, &many, 6);
    let begun = [queue.begin(), queue.begin()];
    let tickets = [(); 3].map(|()| queue.join(&few, 1).expect("there is room"));
    let last = queue.join(&many, 1).expect("there is room");
    let places = tickets.map(|ticket| queue.position(&few, ticket));
    assert_eq!(places, [1, 3, 5]);
    assert_eq!(queue.position(&many, last), 8);
    for begun in begun.into_iter().flatten() {
        queue.end(&begun, Some(SECOND));
    }
    let order = std::iter::from_fn(|| {
        let begun = queue.begin()?;
        queue.end(&begun, Some(SECOND));
        Some(begun.ticket)
    });
    assert_eq!(order.count(), 8);
}

#[test]
fn a_place_is_behind_the_time_that_others_have_not_had() {
    let mut queue = Queue::new(1);
    let had = caller("had", "a");
    join(&mut queue, &had, 1);
    let next = queue.join(&had, 1).expect("there is room");
    let begun = queue.begin().expect("a slot is free");
    join(&mut queue, &caller("late", "a"), 40);
    queue.end(&begun, Some(SECOND * 80));
    // An eighth of it is how long turns usually take, as far as is known.
    assert_eq!(queue.position(&had, next), 1 + 8);
}

#[test]
fn nothing_is_kept_of_those_who_are_gone() {
    let mut queue = Queue::new(1);
    let askers = ["1", "2", "3"].map(|name| caller(name, "a"));
    let tickets = askers
        .each_ref()
        .map(|asker| queue.join(asker, 1).expect("there is room"));
    let begun = queue.begin().expect("a slot is free");
    queue.leave(&askers[0], tickets[0]);
    assert_eq!(queue.lines().count(), 3, "who runs does not leave");
    queue.leave(&askers[2], tickets[2]);
    queue.leave(&askers[1], tickets[1]);
    assert!(queue.begin().is_none());
    queue.end(&begun, None);
    assert!(queue.begin().is_none());
    assert_eq!(queue.lines().count(), 0);
    assert!(queue.has_no_parties());
}

#[test]
fn a_party_has_room_for_so_many_and_others_are_not_refused() {
    let mut queue = Queue::new(1);
    let many = caller("many", "a");
    join(&mut queue, &many, 1024);
    assert!(queue.join(&many, 1).is_none());
    assert!(queue.join(&caller("other", "a"), 1).is_some());
    assert!(queue.begin().is_some());
    assert!(queue.join(&many, 1).is_some());
}

#[test]
fn when_to_come_back_follows_from_how_long_turns_take() {
    let mut queue = Queue::new(2);
    for took in [Some(SECOND * 4), None].repeat(100) {
        join(&mut queue, &caller("1", "a"), 1);
        let begun = queue.begin().expect("a slot is free");
        queue.end(&begun, took);
    }
    let estimate = queue.estimate(3).as_secs_f64();
    assert!((7.9..=8.0).contains(&estimate), "two rounds: {estimate}");
}

#[test]
fn a_turn_ends_when_it_is_dropped_and_the_next_begins() {
    block_on(async {
        let turns = Turns::new("queries", 1, LONG);
        let first = turns.take(&caller("1", "a"), 1).await.expect("it is free");
        let wait_as = |name: &'static str| {
            let turns = Arc::clone(&turns);
            tokio::spawn(async move { turns.take(&caller(name, "a"), 1).await.is_ok() })
        };
        let status = || turns.status_json(&Caller::anonymous());
        let waiting = wait_as("2");
        let gone = wait_as("3");
        // Both run until they wait.
        tokio::task::yield_now().await;
        assert_eq!(
            (&status()["running"], &status()["waiting"]),
            (&1.into(), &2.into())
        );
        gone.abort();
        assert!(gone.await.is_err());
        assert_eq!(status()["waiting"], 1);
        let askers = &status()["askers"];
        let of_waiting = askers
            .as_array()
            .into_iter()
            .flatten()
            .find(|it| it["caller"] == "2");
        assert_eq!(of_waiting.expect("it waits")["position"], 1);
        drop(first);
        assert!(waiting.await.expect("no panic"));
        assert_eq!(
            (&status()["running"], &status()["waiting"]),
            (&0.into(), &0.into())
        );
    });
}

#[test]
fn who_waits_too_long_is_told_its_place_and_when_to_come_back() {
    block_on(async {
        let turns = Turns::new("queries", 1, Duration::from_millis(1));
        let first = turns.take(&caller("1", "a"), 1).await.expect("it is free");
        let Err(error) = turns.take(&caller("2", "a"), 1).await else {
            panic!("there is one slot");
        };
        assert_eq!(
            (error.status, error.code),
            (StatusCode::TOO_MANY_REQUESTS, "busy")
        );
        let details = error.details.as_ref().expect("it has some");
        assert_eq!(details["position"], 1);
        assert_eq!(error.retry_after, Some(SECOND));
        drop(first);
        assert!(turns.take(&caller("2", "a"), 1).await.is_ok());
    });
}
