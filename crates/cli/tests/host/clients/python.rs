//! `pyroscope-io` of PyPI.

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

const MEMORY: &str = "memory:inuse_space:bytes:space:bytes";

/// The interpreter of an environment with what `requirements.txt` names.
fn interpreter() -> PathBuf {
    let install = |folder: &Path| {
        succeed(Command::new("python3").args(["-m", "venv"]).arg(folder));
        let mut pip = Command::new(folder.join("bin/python"));
        pip.args(["-m", "pip", "install", "--quiet"])
            .args(["--disable-pip-version-check", "--only-binary", ":all:"])
            .args(["--require-hashes", "-r"])
            .arg(folder.join("requirements.txt"));
        succeed(&mut pip);
    };
    installed("python", &["requirements.txt"], install).join("bin/python")
}

#[test]
fn the_python_sdk_is_found_by_query() {
    find_by_query("the_python_sdk_is_found_by_query", Shares::Any);
}

pub(crate) fn find_by_query(test: &str, shares: Shares) {
    if !support::has_tool(test, "python3") {
        return;
    }
    let python = interpreter();
    let server = TestServer::start();
    let shop = program("python").join("shop.py");
    let mut client = Client::start(Command::new(python).arg(&shop).arg(server.address()));
    let service = Service {
        server: &server,
        name: "shop.python",
    };
    client.until("cpu time", || service.total(CPU, "price_everything"));
    client.until("memory", || service.total(MEMORY, "fill_warehouse"));
    let milk = client.until("cpu time of both labels", || service.milk(CPU));
    drop(client);

    run_commands("python", &server);

    let expected = [
        "memory:alloc_objects:count:space:bytes",
        "memory:alloc_space:bytes:space:bytes",
        "memory:inuse_objects:count:space:bytes",
        MEMORY,
        CPU,
        "process_cpu:samples:count:cpu:nanoseconds",
    ];
    assert_eq!(Vec::from_iter(service.types()), expected);
    if shares == Shares::AsWritten {
        let all = service.top(CPU, "").unwrap();
        let of_all = share(&all, "price_everything");
        let details = format_args!("{all:#}");
        expect_within("share of the hot function", of_all, more_than(0.9), details);
        let of_milk = ratio(
            value(&milk, "price_everything", "total").unwrap(),
            value(&all, "price_everything", "total").unwrap(),
        );
        let bound = (Bound::Excluded(0.05), Bound::Excluded(0.6));
        expect_within("share of it for milk", of_milk, bound, "");
    }
    assert_eq!(service.label_values("region"), ["eu"]);
    assert_eq!(service.label_values("aisle"), ["bread", "milk"]);
    let places = service.places(CPU, "price_everything");
    assert!(
        places
            .iter()
            .all(|place| place.file.ends_with("python/shop.py") && (21..=25).contains(&place.line)),
        "{places:?}"
    );
    let in_use = service.top(MEMORY, "").unwrap();
    assert!(share(&in_use, "fill_warehouse") > 0.5, "{in_use:#}");
}
