//! How much of PostgreSQL's time a profile on demand finds below its main function.

use crate::host::on_demand::Endpoint;
use crate::host::on_demand::cumulated_percent;
use crate::host::on_demand::place;
use crate::host::on_demand::postgres::Postgres;
use crate::host::on_demand::pprof;
use candela_testing::expect_within;
use candela_testing::more_than;

#[test]
fn nearly_all_of_postgres_is_below_its_main_function() {
    let test = "nearly_all_of_postgres_is_below_its_main_function";
    let Some(folder) = place(test, &["go"]) else {
        return;
    };
    let Some(_postgres) = Postgres::start(test) else {
        return;
    };
    let endpoint = Endpoint::start(folder.path());
    for request in [
        r#"{"profiler": {"BccProfile": null}, "sampling_frequency": 99, "timeout_seconds": 5, "archive": false}"#,
        r#"{"profiler": {"Perf": null}, "timeout_seconds": 1, "archive": true}"#,
    ] {
        let answer = endpoint.post(request).wait();
        assert_eq!(answer.code, 200, "{request}: {answer:?}");
        let top = pprof(&["-top", "-cum"], &endpoint.body);
        let percent = cumulated_percent(&top, "PostgresMain");
        expect_within("percent below PostgresMain", percent, more_than(80.0), &top);
    }
    endpoint.terminate();
}
