//! `github.com/grafana/pyroscope-go`.

use std::ops::Bound;
use std::path::Path;
use std::path::PathBuf;
use std::process::Command;

use super::asked::CPU;
use super::asked::Service;
use super::asked::Shares;
use super::asked::ratio;
use super::asked::share;
use super::asked::value;
use super::cache::installed;
use super::cache::program;
use super::cache::succeed;
use super::client::Client;
use super::client::TestServer;
use super::pages::run_commands;
use crate::support;
use candela_testing::expect_within;
use candela_testing::more_than;

/// Whether there is a Go that can fetch the version that `go.mod` names, as those from 1.21 on.
pub(crate) fn has_go(test: &str) -> bool {
    if !support::has_tool(test, "go") {
        return false;
    }
    let version = succeed(Command::new("go").arg("version"));
    let minor = version.split("go1.").nth(1).and_then(|rest| {
        let digits = rest.split(|letter: char| !letter.is_ascii_digit());
        digits.into_iter().next()?.parse::<u32>().ok()
    });
    let is_new = minor.is_some_and(|minor| minor >= 21);
    if !is_new {
        println!("SKIP {test}: {} is older than 1.21", version.trim());
    }
    is_new
}

/// Builds a Go program of `tests/programs` with the modules of its `go.sum`.
pub(crate) fn build(client: &str) -> PathBuf {
    let build = |folder: &Path| {
        let mut command = Command::new("go");
        command
            .args(["build", "-mod=readonly", "-o"])
            .arg(folder.join("program"))
            .arg(".")
            // Distributions turn off what it does by itself: fetch the version that go.mod names.
            .env("GOTOOLCHAIN", "auto")
            .current_dir(program(client));
        succeed(&mut command);
    };
    let folder = installed(client, &["go.mod", "go.sum", "main.go"], build);
    folder.join("program")
}

#[test]
fn the_go_sdk_is_found_by_query() {
    find_by_query("the_go_sdk_is_found_by_query", Shares::Any);
}

pub(crate) fn find_by_query(test: &str, shares: Shares) {
    if !has_go(test) {
        return;
    }
    let shop = build("go");
    let server = TestServer::start();
    let mut client = Client::start(Command::new(shop).arg(server.address()));
    let service = Service {
        server: &server,
        name: "shop.go",
    };
    let hot = [
        (CPU, "main.priceEverything"),
        ("memory:alloc_space:bytes:space:bytes", "main.fillBasket"),
        ("memory:alloc_objects:count:space:bytes", "main.fillBasket"),
        ("memory:inuse_space:bytes:space:bytes", "main.fillWarehouse"),
        (
            "memory:inuse_objects:count:space:bytes",
            "main.fillWarehouse",
        ),
        (
            "mutex:delay:nanoseconds:contentions:count",
            "main.takeFromStock",
        ),
        (
            "mutex:contentions:count:contentions:count",
            "main.takeFromStock",
        ),
        (
            "block:delay:nanoseconds:contentions:count",
            "main.takeFromStock",
        ),
        (
            "block:contentions:count:contentions:count",
            "main.takeFromStock",
        ),
        (
            "goroutines:goroutine:count:goroutine:count",
            "main.takeFromStock",
        ),
    ];
    for (profile_type, function) in hot {
        client.until(&format!("{function} in {profile_type}"), || {
            service.total(profile_type, function)
        });
    }
    // Two uploads, so that both labels have had their turn.
    let milk = client.until("cpu time of both labels", || service.milk(CPU));
    drop(client);
    run_commands("go", &server);

    let mut expected = vec!["process_cpu:samples:count:cpu:nanoseconds"];
    expected.extend(hot.iter().map(|(profile_type, _)| *profile_type));
    expected.sort_unstable();
    assert_eq!(Vec::from_iter(service.types()), expected);

    if shares == Shares::AsWritten {
        let all = service.top(CPU, "").unwrap();
        let of_all = share(&all, "main.priceEverything");
        let details = format_args!("{all:#}");
        expect_within("share of the hot function", of_all, more_than(0.8), details);
        let of_milk = ratio(
            value(&milk, "main.priceEverything", "total").unwrap(),
            value(&all, "main.priceEverything", "total").unwrap(),
        );
        // It does a quarter of the work.
        let bound = (Bound::Excluded(0.05), Bound::Excluded(0.6));
        expect_within("share of it for milk", of_milk, bound, "");
    }
    let in_use = service
        .top("memory:inuse_space:bytes:space:bytes", "")
        .unwrap();
    assert!(share(&in_use, "main.fillWarehouse") > 0.5, "{in_use:#}");
    // About 64 MiB stay in use (of which Go samples), however many profiles have told it.
    let kept = value(&in_use, "main.fillWarehouse", "total").unwrap();
    assert!((30 << 20..100 << 20).contains(&kept), "{kept} bytes in use");

    assert_eq!(service.label_values("region"), ["eu"]);
    assert_eq!(service.label_values("aisle"), ["bread", "milk"]);
    assert_eq!(service.label_values("pyroscope_spy"), ["gospy"]);
    let places = service.places(CPU, "main.priceEverything");
    assert!(
        places
            .iter()
            .all(|place| place.file.ends_with("go/main.go") && (24..=32).contains(&place.line)),
        "{places:?}"
    );
}
