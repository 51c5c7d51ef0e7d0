//! What is pushed next is what a request waits for.

use std::net::SocketAddr;
use std::process::Command;
use std::thread::JoinHandle;
use std::time::Instant;

use candela_formats::ReadOptions;
use candela_formats::read_pprof;

use crate::support;
use crate::support::Answer;
use crate::support::PATIENCE;
use crate::support::START_NS;
use crate::support::TestServer;
use crate::support::demo_profile;
use crate::support::pprof_bytes;

/// The selection of `checkout`, encoded for a URL.
const CHECKOUT: &str = "query=%7Bservice_name%3D%22checkout%22%7D";

fn ask(address: SocketAddr, parameters: &str) -> JoinHandle<Answer> {
    let path = format!("/api/v1/profile?{parameters}");
    std::thread::spawn(move || support::request(address, "GET", &path, &[], b""))
}

/// Pushes one profile after the other, each of its own time, until the work is done.
fn push_until<T>(server: &TestServer, work: JoinHandle<T>, services: &[&str]) -> T {
    let started = Instant::now();
    let mut number = 0;
    while !work.is_finished() {
        number += 1;
        let mut profile = demo_profile();
        profile.series[0].start_ns = START_NS + number * 1_000_000;
        let bytes = pprof_bytes(&profile);
        for service in services {
            let answer = server.post(&format!("/api/v1/ingest?service={service}"), &bytes);
            assert_eq!(answer.status, 200, "{}", answer.text());
        }
        let is_late = started.elapsed() > PATIENCE;
        assert!(!is_late, "nobody takes what is pushed");
    }
    work.join().expect("no panic")
}

#[test]
fn the_next_push_of_the_selection_is_the_answer() {
    let server = TestServer::with_demo_profile();
    let asked = ask(server.address, &format!("{CHECKOUT}&seconds=60"));
    let answer = push_until(&server, asked, &["other", "checkout"]);
    assert_eq!(answer.status, 200, "{}", answer.text());
    let content_type = answer.header("content-type");
    assert_eq!(content_type, Some("application/vnd.google.protobuf+gzip"));
    let read = read_pprof(answer.body.as_slice(), &ReadOptions::default());
    let (profile, _) = read.expect("a profile");
    let cpu = profile
        .series
        .iter()
        .find(|series| series.profile_type.sample_type == "cpu");
    assert_eq!(
        cpu.expect("of cpu").total(),
        100,
        "of one push, though another came before"
    );
}

#[test]
fn filters_and_types_hold_for_what_comes() {
    let server = TestServer::start();
    let asked = ask(server.address, "type=cpu&focus=fn%3Aburn&seconds=60");
    let answer = push_until(&server, asked, &["checkout"]);
    assert_eq!(answer.status, 200, "{}", answer.text());
    let read = read_pprof(answer.body.as_slice(), &ReadOptions::default());
    let (profile, _) = read.expect("a profile");
    assert_eq!(profile.series[0].total(), 70);
}

#[test]
fn the_agent_of_the_same_process_is_heard_too() {
    let server = TestServer::start();
    let asked = ask(server.address, "seconds=60");
    let started = Instant::now();
    let mut number = 0;
    while !asked.is_finished() {
        number += 1;
        let mut profile = demo_profile();
        profile.series[0].start_ns = START_NS + number * 1_000_000;
        let append = server.local_ingest.append(profile);
        server.runtime.block_on(append).expect("it is stored");
        let is_late = started.elapsed() > PATIENCE;
        assert!(!is_late, "nobody takes what is stored");
    }
    let answer = asked.join().expect("no panic");
    assert_eq!(answer.status, 200, "{}", answer.text());
}

#[test]
fn nothing_that_comes_is_told() {
    let server = TestServer::with_demo_profile();
    let answer = server.get(&format!("/api/v1/profile?{CHECKOUT}&seconds=1"));
    assert_eq!(answer.status, 404, "{}", answer.text());
    assert_eq!(answer.json()["code"], "nothing_came");
    for parameters in ["", "?seconds=0", "?seconds=301", "?seconds=x"] {
        let answer = server.get(&format!("/api/v1/profile{parameters}"));
        assert_eq!(answer.status, 400, "{parameters}: {}", answer.text());
    }
}

mod host {
    use super::*;

    #[test]
    fn pprof_waits_for_it() {
        let has_go = Command::new("go").arg("version").output().is_ok();
        if !has_go {
            eprintln!("skipped: go is not installed");
            return;
        }
        let server = TestServer::start();
        let address = server.address;
        let fetched = std::thread::spawn(move || {
            let url = format!("http://{address}/api/v1/profile?{CHECKOUT}&seconds=60");
            let mut pprof = Command::new("go");
            pprof.args(["tool", "pprof", "-top", "-symbolize=none", &url]);
            pprof.output().expect("go runs")
        });
        let output = push_until(&server, fetched, &["checkout"]);
        let text = String::from_utf8_lossy(&output.stdout);
        assert!(output.status.success(), "{output:?}");
        assert!(text.contains("burn"), "{text}");
    }
}
