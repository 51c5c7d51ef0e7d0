//! The Java agent `io.pyroscope:agent` of Maven Central.

use std::path::Path;
use std::path::PathBuf;
use std::process::Command;

use super::asked::CPU;
use super::asked::Service;
use super::asked::Shares;
use super::asked::share;
use super::cache::installed;
use super::cache::program;
use super::cache::succeed;
use super::client::Client;
use super::client::TestServer;
use super::pages::run_commands;
use crate::support;
use candela_testing::expect_within;
use candela_testing::more_than;

/// A folder with the agent and the program's classes.
fn build() -> PathBuf {
    let install = |folder: &Path| {
        let mut maven = Command::new("mvn");
        maven
            .args(["--batch-mode", "--quiet", "dependency:copy"])
            .current_dir(folder);
        succeed(&mut maven);
        let mut compiler = Command::new("javac");
        compiler
            .args(["-cp", "agent.jar", "-d", "."])
            .arg(program("java").join("Shop.java"))
            .current_dir(folder);
        succeed(&mut compiler);
    };
    installed("java", &["pom.xml", "Shop.java"], install)
}

#[test]
fn the_java_agent_is_found_by_query() {
    find_by_query("the_java_agent_is_found_by_query", Shares::Any);
}

pub(crate) fn find_by_query(test: &str, shares: Shares) {
    if !["mvn", "javac"]
        .iter()
        .all(|tool| support::has_tool(test, tool))
    {
        return;
    }
    let folder = build();
    let server = TestServer::start();
    let agent = folder.join("agent.jar").display().to_string();
    let mut java = Command::new("java");
    java.arg(format!("-javaagent:{agent}"))
        .args([Path::new("-cp"), &folder])
        .arg("Shop")
        .env("PYROSCOPE_SERVER_ADDRESS", server.address())
        .env("PYROSCOPE_APPLICATION_NAME", "shop.java")
        .env("PYROSCOPE_FORMAT", "jfr")
        .env("PYROSCOPE_LABELS", "region=eu")
        .env("PYROSCOPE_PROFILER_EVENT", "itimer")
        .env("PYROSCOPE_PROFILER_ALLOC", "512k")
        .env("PYROSCOPE_PROFILER_LOCK", "10ms")
        .env("PYROSCOPE_UPLOAD_INTERVAL", "2s");
    let mut client = Client::start(&mut java);
    let service = Service {
        server: &server,
        name: "shop.java",
    };
    let hot = [
        (CPU, "Shop.priceEverything"),
        (
            "memory:alloc_in_new_tlab_bytes:bytes:space:bytes",
            "Shop.fillBasket",
        ),
        (
            "memory:alloc_in_new_tlab_objects:count:space:bytes",
            "Shop.fillBasket",
        ),
        ("mutex:contentions:count:mutex:count", "Shop.takeFromStock"),
        ("mutex:delay:nanoseconds:mutex:count", "Shop.takeFromStock"),
    ];
    for (profile_type, function) in hot {
        client.until(&format!("{function} in {profile_type}"), || {
            service.total(profile_type, function)
        });
    }
    client.until("cpu time of both labels", || service.milk(CPU));
    drop(client);
    run_commands("java", &server);

    for (profile_type, function) in hot {
        let all = service.top(profile_type, "").unwrap();
        let share = share(&all, function);
        let what = format!("share of the hot function in {profile_type}");
        let least = more_than(shares.least(0.5));
        expect_within(&what, share, least, format_args!("{all:#}"));
    }
    assert_eq!(service.label_values("region"), ["eu"]);
    assert_eq!(service.label_values("aisle"), ["bread", "milk"]);
    assert_eq!(service.label_values("pyroscope_spy"), ["javaspy"]);
    let places = service.places(CPU, "Shop.priceEverything");
    assert!(
        places.iter().all(|place| (13..=20).contains(&place.line)),
        "{places:?}"
    );
}
