//! `@pyroscope/nodejs` of npm.

use std::fs;
use std::path::Path;
use std::path::PathBuf;
use std::process::Command;

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

// V8 samples by the clock on the wall and knows how much of that was CPU time.
const WALL: &str = "wall:wall:nanoseconds:wall:nanoseconds";
const CPU: &str = "process_cpu:cpu:nanoseconds:wall:nanoseconds";
const MEMORY: &str = "memory:inuse_space:bytes:inuse_space:bytes";

/// A folder with the packages of a program's lock file, and the program.
pub(crate) fn installed_packages(client: &str, script: &str) -> PathBuf {
    let install = |folder: &Path| {
        let mut npm = Command::new("npm");
        npm.args(["ci", "--ignore-scripts", "--no-audit", "--no-fund"])
            .arg("--loglevel=error")
            .current_dir(folder);
        succeed(&mut npm);
    };
    let folder = installed(client, &["package.json", "package-lock.json"], install);
    // A module looks for packages beside itself.
    let path = folder.join(script);
    fs::copy(program(client).join(script), &path).unwrap();
    path
}

#[test]
fn the_node_sdk_is_found_by_query() {
    find_by_query("the_node_sdk_is_found_by_query", Shares::Any);
}

pub(crate) fn find_by_query(test: &str, shares: Shares) {
    if !support::has_tool(test, "npm") {
        return;
    }
    let shop = installed_packages("node", "shop.js");
    let server = TestServer::start();
    let mut client = Client::start(
        Command::new("node")
            .env("DEBUG", "pyroscope*")
            .arg(&shop)
            .arg(server.address()),
    );
    let service = Service {
        server: &server,
        name: "shop.node",
    };
    for (profile_type, function) in [
        (WALL, "priceEverything"),
        (CPU, "priceEverything"),
        (MEMORY, "fillWarehouse"),
    ] {
        client.until(&format!("{function} in {profile_type}"), || {
            named(&service, profile_type, function)
        });
    }
    client.until("time of both labels", || service.milk(WALL));
    drop(client);
    run_commands("node", &server);

    let expected = [
        "memory:inuse_objects:count:inuse_space:bytes",
        MEMORY,
        CPU,
        "wall:samples:count:wall:nanoseconds",
        WALL,
    ];
    assert_eq!(Vec::from_iter(service.types()), expected);
    for profile_type in [WALL, CPU] {
        let all = service.top(profile_type, "").unwrap();
        let hot = named(&service, profile_type, "priceEverything").unwrap();
        let share = share(&all, &hot);
        let what = format!("share of the hot function in {profile_type}");
        let least = more_than(shares.least(0.6));
        expect_within(&what, share, least, format_args!("{all:#}"));
    }
    assert_eq!(service.label_values("region"), ["eu"]);
    assert_eq!(service.label_values("aisle"), ["bread", "milk"]);
    let hot = named(&service, WALL, "priceEverything").unwrap();
    let places = service.places(WALL, &hot);
    assert!(
        places
            .iter()
            .all(|place| place.file.ends_with("/shop.js") && (17..=23).contains(&place.line)),
        "{places:?}"
    );
}

/// The name of a function as this SDK writes it, `FILE:FUNCTION:LINE`, where samples were in it.
fn named(service: &Service<'_>, profile_type: &str, function: &str) -> Option<String> {
    let top = service.top(profile_type, "")?;
    let names = top["functions"].as_array()?.iter();
    let mut names = names.filter_map(|row| row["name"].as_str());
    let name = names.find(|name| name.contains(&format!("shop.js:{function}:")))?;
    Some(name.to_owned())
}
