//! Who listens, who gives way and who may not.

use super::*;

fn report(node: &str) -> NodeReport {
    NodeReport {
        node: node.to_owned(),
        ..NodeReport::default()
    }
}

#[test]
fn nodes_that_do_not_listen_give_way_and_others_do_not() {
    let fleet = Fleet::new(2);
    let (one, other) = (
        TenantName::anonymous(),
        TenantName::new("b").expect("a name"),
    );
    fleet
        .hear(&one, report("first"), None, 1)
        .expect("there is room");
    let _feed = fleet
        .open(&other, &Listener::of_node("second"), None, 2)
        .expect("there is room");
    let _third = fleet
        .open(&one, &Listener::of_node("third"), None, 3)
        .expect("the first gives way");
    let known: Vec<Listener> = fleet.nodes(&one).into_keys().collect();
    assert_eq!(known, [Listener::of_node("third")]);
    let error = fleet
        .hear(&one, report("fourth"), None, 4)
        .expect_err("all listen");
    assert_eq!(error.code, "too_many_nodes");
    let (now, counts) = fleet.counts();
    assert_eq!((now.nodes, now.streams, counts.refused), (2, 2, 1));
    fleet
        .hear(&other, report("second"), None, 5)
        .expect("it is known");
}

#[test]
fn who_makes_up_nodes_forgets_its_own() {
    let fleet = Fleet::new(3);
    let (quiet, loud) = (
        TenantName::anonymous(),
        TenantName::new("loud").expect("a name"),
    );
    fleet
        .hear(&quiet, report("old"), None, 1)
        .expect("there is room");
    for (time, name) in (2..).zip(["a", "b", "c", "d"]) {
        let heard = fleet.hear(&loud, report(name), None, time);
        heard.expect("one of its own gives way");
    }
    assert_eq!(fleet.nodes(&quiet).len(), 1);
    let known: Vec<Listener> = fleet.nodes(&loud).into_keys().collect();
    assert_eq!(known, [Listener::of_node("c"), Listener::of_node("d")]);
}

#[test]
fn a_new_stream_ends_the_one_before() {
    let fleet = Fleet::new(2);
    let tenant = TenantName::anonymous();
    let mut old = fleet
        .open(&tenant, &Listener::of_node("node"), None, 1)
        .expect("there is room");
    let mut new = fleet
        .open(&tenant, &Listener::of_node("node"), None, 2)
        .expect("it is known");
    assert_eq!(
        old.orders.try_recv(),
        Err(mpsc::error::TryRecvError::Disconnected)
    );
    assert_eq!(new.orders.try_recv(), Err(mpsc::error::TryRecvError::Empty));
    fleet.close(&tenant, &Listener::of_node("node"), old.number, 3);
    assert_eq!(fleet.counts().0.streams, 1, "the new one goes on");
    fleet.close(&tenant, &Listener::of_node("node"), new.number, 4);
    assert_eq!(fleet.counts().0.streams, 0);
}

#[test]
fn daemons_of_a_node_that_have_agents_of_their_own_listen_beside_each_other() {
    let fleet = Fleet::new(2);
    let tenant = TenantName::anonymous();
    let dumps = Listener::new("node", Some("perf-collector-1")).expect("names");
    let traces = Listener::new("node", Some("perfetto-daemon-1")).expect("names");
    let mut first = fleet.open(&tenant, &dumps, None, 1).expect("there is room");
    let _second = fleet
        .open(&tenant, &traces, None, 2)
        .expect("there is room");
    assert_eq!(
        first.orders.try_recv(),
        Err(mpsc::error::TryRecvError::Empty)
    );
    let of_dumps = NodeReport {
        daemon: dumps.daemon.clone(),
        ..report("node")
    };
    fleet.hear(&tenant, of_dumps, None, 3).expect("it is known");
    let known = fleet.nodes(&tenant);
    assert!(known[&dumps].report.is_some() && known[&traces].report.is_none());
}

#[test]
fn streams_hear_of_later_versions_only() {
    let fleet = Fleet::new(2);
    let tenant = TenantName::anonymous();
    let feed = fleet
        .open(&tenant, &Listener::of_node("node"), None, 1)
        .expect("there is room");
    let publish = |version| {
        let version = FleetVersion::test(version);
        fleet.publish(&tenant, &version).expect("it is written");
        let known = feed.document.borrow();
        known.as_ref().map(|line| line.version)
    };
    assert_eq!(publish(2), Some(2));
    assert_eq!(publish(1), Some(2));
    assert_eq!(publish(3), Some(3));
}

#[test]
fn nothing_begins_when_the_server_ends() {
    let fleet = Fleet::new(2);
    let tenant = TenantName::anonymous();
    let mut feed = fleet
        .open(&tenant, &Listener::of_node("node"), None, 1)
        .expect("there is room");
    fleet.end();
    assert_eq!(
        feed.orders.try_recv(),
        Err(mpsc::error::TryRecvError::Disconnected)
    );
    let error = fleet
        .open(&tenant, &Listener::of_node("node"), None, 2)
        .expect_err("it ends");
    assert_eq!(error.code, "ending");
}

#[test]
fn a_name_is_that_of_the_agent_that_has_it() {
    let fleet = Fleet::new(3);
    let tenant = TenantName::anonymous();
    let listener = Listener::of_node("node");
    let (one, other) = (Instance::test("one"), Instance::test("other"));
    let open = |instance, now_ns| fleet.open(&tenant, &listener, Some(instance), now_ns);
    let hear = |instance, now_ns| fleet.hear(&tenant, report("node"), Some(instance), now_ns);
    let code = |error: ApiError| error.code;
    let feed = open(&one, 1).expect("nobody has it");
    assert_eq!(open(&other, 2).map(drop).map_err(code), Err("name_taken"));
    assert_eq!(hear(&other, 3).map_err(code), Err("name_taken"));
    hear(&one, 4).expect("it is its own name");
    let again = open(&one, 5).expect("it was started anew");
    fleet.close(&tenant, &listener, feed.number, 6);
    assert_eq!(fleet.counts().1.namesakes, 2);

    // Where each daemon has an agent of its own, a node has several.
    let dumps = Listener::new("node", Some("perf-collector-1")).expect("names");
    fleet
        .open(&tenant, &dumps, Some(&other), 7)
        .expect("it is another's name");

    let just_before = 5 + SILENCE_NS - 1;
    let refused = open(&other, just_before).map(drop).map_err(code);
    assert_eq!(refused, Err("name_taken"));
    open(&other, just_before + 1).expect("the first has gone without a word");
    fleet.close(&tenant, &listener, again.number, just_before + 2);
    assert_eq!(hear(&one, just_before + 3).map_err(code), Err("name_taken"));
}

#[test]
fn a_name_whose_stream_has_ended_is_free() {
    let fleet = Fleet::new(1);
    let tenant = TenantName::anonymous();
    let listener = Listener::of_node("node");
    let (one, other) = (Instance::test("one"), Instance::test("other"));
    let feed = fleet
        .open(&tenant, &listener, Some(&one), 1)
        .expect("nobody has it");
    fleet.close(&tenant, &listener, feed.number, 2);
    fleet
        .open(&tenant, &listener, Some(&other), 3)
        .expect("it is free");
    // Agents that do not say who they are have the name of the last of them, as ever.
    fleet
        .open(&tenant, &listener, None, 4)
        .expect("it says nothing");
}
