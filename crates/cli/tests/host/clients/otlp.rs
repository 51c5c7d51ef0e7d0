//! The collector's own library for profiles: `go.opentelemetry.io/collector/pdata`.

use std::process::Command;

use super::asked::CPU;
use super::asked::Place;
use super::asked::Service;
use super::asked::value;
use super::cache::succeed;
use super::client::TestServer;
use super::go::build;
use super::go::has_go;
use super::pages::run_commands;
use crate::support;

/// What CPU time is derived from.
const SAMPLES: &str = "process_cpu:samples:count:cpu:nanoseconds";

#[test]
fn the_collectors_exports_are_found_by_query() {
    let test = "the_collectors_exports_are_found_by_query";
    if !has_go(test) {
        return;
    }
    let exporter = build("otlp");
    let server = TestServer::start();
    let everything = server.address().replace("http://", "");
    let ports = support::listening_ports(server.running.pid()).into_iter();
    let mut addresses: Vec<String> = ports.map(|port| format!("127.0.0.1:{port}")).collect();
    addresses.retain(|address| *address != everything);
    // The two for OTLP, which one is whose does not matter: each takes both.
    assert_eq!(addresses.len(), 2, "{addresses:?}");
    succeed(Command::new(&exporter).args(&addresses));
    // The port of everything takes both as well; the same profile twice counts once.
    succeed(Command::new(&exporter).args([&everything, &everything]));

    for name in ["shop.otlp.grpc", "shop.otlp.http", "shop.otlp.json"] {
        let service = Service {
            server: &server,
            name,
        };
        let types = Vec::from_iter(service.types());
        assert_eq!(types, [CPU, SAMPLES], "{name}");
        let top = service.top(CPU, "").unwrap();
        // 30 and 10 samples of 20 ms each, exported twice at different times.
        let hot = value(&top, "main.priceEverything", "self");
        assert_eq!(hot, Some(2 * 30 * 20_000_000), "{name}: {top:#}");
        assert_eq!(value(&top, "main.fillBasket", "self"), Some(400_000_000));
        assert_eq!(top["total"], 1_600_000_000);
        let places = service.places(CPU, "main.priceEverything");
        let place = Place {
            file: "/src/shop/main.go".to_owned(),
            line: 34,
        };
        assert_eq!(places.into_iter().collect::<Vec<_>>(), [place]);
        assert_eq!(
            service.label_values("deployment.environment.name"),
            ["test"]
        );
        assert_eq!(service.label_values("thread_name"), ["clerk"]);
    }
    run_commands("otlp", &server);
}
