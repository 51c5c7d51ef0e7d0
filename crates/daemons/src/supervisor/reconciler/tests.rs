//! What follows what.

use std::collections::BTreeSet;

use proptest::prelude::*;

use super::*;

const WAITS: RestartWaits = RestartWaits {
    first: Duration::from_secs(1),
    longest: Duration::from_secs(60),
};

fn moment(seconds: u64) -> Moment {
    Moment {
        monotonic: Duration::from_secs(seconds),
        unix_ms: 1_000_000 + seconds * 1000,
    }
}

fn element(folder: &str, hz: u32, keeps_running: bool) -> String {
    format!(
        r#"{{"keep_running_when_suspended": {keeps_running}, "perf_collector": {{"export_to": "s3://bucket",
            "bucket_subdirectory": "{folder}", "perf_polling_frequency_hz": {hz}}}}}"#
    )
}

fn document(elements: &[String], is_suspended: bool) -> FleetDocument {
    let elements = elements.join(",");
    let text = format!(r#"{{"suspended": {is_suspended}, "observability_daemons": [{elements}]}}"#);
    FleetDocument::read(&text).expect("a document").document
}

fn one_started(actions: &[Action]) -> (DaemonId, Generation) {
    match actions {
        [Action::Start { id, generation, .. }] => (id.clone(), *generation),
        others => panic!("not one start: {others:?}"),
    }
}

fn state(reconciler: &Reconciler) -> (DaemonState, u64) {
    let (_, entry) = reconciler.entries().next().expect("one daemon");
    (entry.state(), entry.since_ms)
}

fn broken() -> Result<(), DaemonError> {
    Err(DaemonError::SamplerEnded {
        reason: "a test".to_owned(),
    })
}

#[test]
fn a_changed_daemon_ends_before_it_begins_again() {
    let mut reconciler = Reconciler::new(WAITS, 0, None);
    let old = document(&[element("a", 99, false)], false);
    let (id, first) = one_started(&reconciler.follow(&old, moment(1)));
    assert_eq!(state(&reconciler), (DaemonState::Starting, 1_001_000));
    reconciler.started(&id, first, moment(2));
    assert_eq!(state(&reconciler), (DaemonState::Running, 1_002_000));
    assert_eq!(reconciler.follow(&old, moment(3)), [], "nothing is new");

    let new = document(&[element("a", 49, false)], false);
    let stop = Action::Stop {
        id: id.clone(),
        generation: first,
    };
    assert_eq!(reconciler.follow(&new, moment(4)), [stop]);
    assert_eq!(reconciler.tick(moment(5)), [], "once is enough");
    let (again, second) = one_started(&reconciler.ended(&id, first, Ok(()), moment(6)));
    assert_eq!(again, id);
    assert_ne!(first, second);
    let late = reconciler.ended(&id, first, broken(), moment(7));
    assert_eq!(late, [], "the first one's end is known");
    assert_eq!(state(&reconciler).0, DaemonState::Starting);
}

#[test]
fn one_that_fails_in_a_loop_waits_longer_each_time() {
    let mut reconciler = Reconciler::new(WAITS, 0, None);
    let document = document(&[element("a", 99, false)], false);
    let (id, mut generation) = one_started(&reconciler.follow(&document, moment(0)));
    let mut now = 0;
    for expected in [1, 2, 4, 8, 16, 32, 60, 60] {
        assert_eq!(reconciler.ended(&id, generation, broken(), moment(now)), []);
        assert_eq!(state(&reconciler).0, DaemonState::BackingOff);
        let deadline = reconciler.next_deadline().expect("a wait");
        assert_eq!(deadline, Duration::from_secs(now + expected));
        assert_eq!(reconciler.tick(moment(now + expected - 1)), []);
        now += expected;
        generation = one_started(&reconciler.tick(moment(now))).1;
    }
    let (_, entry) = reconciler.entries().next().expect("one");
    let error = entry.last_error.as_deref().unwrap_or_default();
    assert!(error.contains("a test"), "{error}");
    // It was well for an hour.
    reconciler.started(&id, generation, moment(now));
    now += 3600;
    reconciler.ended(&id, generation, broken(), moment(now));
    assert_eq!(
        reconciler.next_deadline(),
        Some(Duration::from_secs(now + 1))
    );
}

#[test]
fn what_never_works_waits_for_another_document() {
    let mut reconciler = Reconciler::new(WAITS, 0, None);
    let old = document(&[element("a", 99, false)], false);
    let (id, generation) = one_started(&reconciler.follow(&old, moment(0)));
    let never = Err(DaemonError::Impossible {
        reason: "not built in".to_owned(),
    });
    assert_eq!(reconciler.ended(&id, generation, never, moment(1)), []);
    assert_eq!(state(&reconciler), (DaemonState::Failed, 1_001_000));
    assert_eq!(reconciler.tick(moment(100_000)), []);
    assert_eq!(reconciler.follow(&old, moment(100_001)), []);
    let new = document(&[element("a", 49, false)], false);
    one_started(&reconciler.follow(&new, moment(100_002)));
}

#[test]
fn suspension_rests_all_but_those_that_keep_running() {
    let mut reconciler = Reconciler::new(WAITS, 0, None);
    let elements = [element("a", 99, false), element("b", 99, true)];
    let awake = document(&elements, false);
    let started = reconciler.follow(&awake, moment(0));
    assert_eq!(started.len(), 2);
    let asleep = document(&elements, true);
    let stopped = reconciler.follow(&asleep, moment(1));
    let [Action::Stop { id, generation }] = &stopped[..] else {
        panic!("{stopped:?}");
    };
    assert_eq!(reconciler.ended(id, *generation, Ok(()), moment(2)), []);
    let states: Vec<_> = reconciler
        .entries()
        .map(|(_, entry)| entry.state())
        .collect();
    assert!(states.contains(&DaemonState::Suspended), "{states:?}");
    assert!(states.contains(&DaemonState::Starting), "{states:?}");
    assert!(reconciler.knows(id.as_str()), "it is not gone");
    let (woken, _) = one_started(&reconciler.follow(&awake, moment(3)));
    assert_eq!(woken, *id);
}

#[test]
fn a_removed_daemon_is_forgotten_once_it_has_ended() {
    let mut reconciler = Reconciler::new(WAITS, 0, None);
    let document = document(&[element("a", 99, false)], false);
    let (id, generation) = one_started(&reconciler.follow(&document, moment(0)));
    assert_eq!(reconciler.stop_all(moment(1)).len(), 1);
    assert_eq!(state(&reconciler).0, DaemonState::Stopped);
    assert!(reconciler.is_busy());
    let forgotten = reconciler.ended(&id, generation, Ok(()), moment(2));
    assert_eq!(forgotten, [Action::Forget { id }]);
    assert!(!reconciler.is_busy());
}

/// One thing that may happen.
#[derive(Clone, Debug)]
enum Step {
    Document(Vec<(usize, u32)>, bool),
    End(usize, bool),
    Start(usize),
    Wait(u64),
}

fn step() -> impl Strategy<Value = Step> {
    let daemon = (0..3_usize, 0..3_u32);
    prop_oneof![
        (proptest::collection::vec(daemon, 0..4), any::<bool>())
            .prop_map(|(daemons, is_suspended)| Step::Document(daemons, is_suspended)),
        (0..4_usize, any::<bool>()).prop_map(|(index, is_well)| Step::End(index, is_well)),
        (0..4_usize).prop_map(Step::Start),
        (0..100_u64).prop_map(Step::Wait),
    ]
}

proptest! {
    /// Whatever happens in whatever order: no daemon runs twice, and once all have had their time exactly what the
    /// last document wants runs.
    #[test]
    fn what_is_wanted_runs_in_the_end(steps in proptest::collection::vec(step(), 1..60)) {
        let mut reconciler = Reconciler::new(WAITS, 0, None);
        let mut running: Vec<(DaemonId, Generation, Box<ObservabilityDaemon>)> = Vec::new();
        let mut stopping: BTreeSet<Generation> = BTreeSet::new();
        let mut last = document(&[], false);
        let mut now = 0;
        let tail = (0..40).map(|number| match number % 2 {
            0 => Step::Wait(100),
            _ => Step::Start(number / 2 % 4),
        });
        for step in steps.into_iter().chain(tail) {
            let actions = match step {
                Step::Document(mut daemons, is_suspended) => {
                    daemons.sort_unstable();
                    daemons.dedup_by_key(|(folder, _)| *folder);
                    let elements: Vec<String> = daemons
                        .iter()
                        .map(|(folder, hz)| element(&format!("f{folder}"), 10 + hz, *folder == 0))
                        .collect();
                    last = document(&elements, is_suspended);
                    reconciler.follow(&last, moment(now))
                }
                Step::Start(index) => {
                    if let Some((id, generation, _)) = running.get(index) {
                        reconciler.started(id, *generation, moment(now));
                    }
                    Vec::new()
                }
                Step::End(index, is_well) => {
                    if index >= running.len() {
                        continue;
                    }
                    let (id, generation, _) = running.remove(index);
                    stopping.remove(&generation);
                    let result = if is_well { Ok(()) } else { broken() };
                    reconciler.ended(&id, generation, result, moment(now))
                }
                Step::Wait(seconds) => {
                    now += seconds;
                    reconciler.tick(moment(now))
                }
            };
            let mut actions = std::collections::VecDeque::from(actions);
            while let Some(action) = actions.pop_front() {
                match action {
                    Action::Start { id, generation, daemon } => {
                        let is_twice = running.iter().any(|(other, _, _)| *other == id);
                        prop_assert!(!is_twice, "{id} runs twice");
                        running.push((id, generation, daemon));
                    }
                    // It obeys at once, half of the time.
                    Action::Stop { id, generation } if now % 2 == 0 => {
                        running.retain(|(_, other, _)| *other != generation);
                        actions.extend(reconciler.ended(&id, generation, Ok(()), moment(now)));
                    }
                    Action::Stop { generation, .. } => {
                        stopping.insert(generation);
                    }
                    Action::Forget { id } => {
                        prop_assert!(running.iter().all(|(other, _, _)| *other != id));
                    }
                }
            }
        }
        for generation in stopping {
            let position = running.iter().position(|(_, other, _)| *other == generation);
            let Some(position) = position else { continue };
            let (id, generation, _) = running.remove(position);
            for action in reconciler.ended(&id, generation, Ok(()), moment(now)) {
                if let Action::Start { id, generation, daemon } = action {
                    running.push((id, generation, daemon));
                }
            }
        }
        let wanted = wanted_daemons(&last);
        prop_assert_eq!(running.len(), wanted.len());
        for wanted in wanted {
            let found = running.iter().find(|(id, _, _)| *id == wanted.id);
            prop_assert_eq!(&**found.map(|(_, _, daemon)| daemon).expect("it runs"), wanted.daemon);
        }
    }
}

#[test]
fn one_daemon_alone_is_followed_and_keeps_its_name() {
    let both = document(&[element("a", 99, false), element("b", 49, false)], false);
    let second = wanted_daemons(&both)[1].id.clone();
    let mut reconciler = Reconciler::new(WAITS, 0, Some(second.to_string()));
    let (started, generation) = one_started(&reconciler.follow(&both, moment(1)));
    assert_eq!(started, second);
    let first_is_gone = document(&[element("b", 49, false)], false);
    assert_eq!(reconciler.follow(&first_is_gone, moment(2)), []);
    let none = document(&[], false);
    let stopped = reconciler.follow(&none, moment(3));
    let id = second;
    assert_eq!(stopped, [Action::Stop { id, generation }]);
}
