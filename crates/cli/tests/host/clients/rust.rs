//! The crate `pyroscope` of crates.io.

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

/// Builds the program. It is a package of its own, with its own lock file.
fn build() -> PathBuf {
    let build = |folder: &Path| {
        let mut cargo = Command::new("cargo");
        cargo
            .args(["build", "--quiet", "--locked", "--target-dir"])
            .arg(folder)
            .arg("--manifest-path")
            .arg(program("rust").join("Cargo.toml"))
            .env("CARGO_INCREMENTAL", "0");
        succeed(&mut cargo);
    };
    let folder = installed("rust", &["Cargo.toml", "Cargo.lock"], build);
    // The program itself may have changed; cargo knows.
    build(&folder);
    folder.join("debug/shop")
}

#[test]
fn the_rust_sdk_is_found_by_query() {
    find_by_query("the_rust_sdk_is_found_by_query", Shares::Any);
}

pub(crate) fn find_by_query(test: &str, shares: Shares) {
    if !support::has_tool(test, "cargo") {
        return;
    }
    let shop = build();
    let server = TestServer::start();
    let mut client = Client::start(Command::new(shop).arg(server.address()));
    let service = Service {
        server: &server,
        name: "shop.rust",
    };
    client.until("cpu time of both labels", || service.milk(CPU));
    drop(client);
    run_commands("rust", &server);
    let expected = [CPU, "process_cpu:samples:count:cpu:nanoseconds"];
    assert_eq!(Vec::from_iter(service.types()), expected);
    let all = service.top(CPU, "").unwrap();
    let share = share(&all, "price_everything");
    let least = more_than(shares.least(0.8));
    expect_within(
        "share of the hot function",
        share,
        least,
        format_args!("{all:#}"),
    );
    assert_eq!(service.label_values("region"), ["eu"]);
    assert_eq!(service.label_values("aisle"), ["bread", "milk"]);
    let places = service.places(CPU, "price_everything");
    assert!(
        places
            .iter()
            .all(|place| place.file == "main.rs" && (13..=20).contains(&place.line)),
        "{places:?}"
    );
}
