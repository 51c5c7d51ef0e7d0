//! What only builds with Google's Perfetto library have, against a real `traced` of Debian sid.

use std::fs;

use crate::nextest::Tests;
use crate::process::run;
use crate::process::target;
use crate::steps::Steps;

const BUILD: [&str; 4] = [
    "--package",
    "candela-daemons",
    "--features",
    "candela-daemons/perfetto",
];

/// Lints, the unit tests of the engine, and the engine beside a `traced`, which is fetched once.
pub(crate) fn perfetto() -> Result<(), String> {
    run(".", "scripts/fetch-perfetto", &[])?;
    let programs = target()?.join("test-perfetto");
    // Short: names of sockets have room for a hundred characters.
    let sockets = std::env::temp_dir().join(format!("candela-perfetto-{}", std::process::id()));
    fs::create_dir_all(&sockets).map_err(|error| format!("{}: {error}", sockets.display()))?;
    let tested = test(&programs.to_string_lossy(), &sockets.to_string_lossy());
    // What is left of it is empty but for sockets.
    let _ = fs::remove_dir_all(&sockets);
    tested
}

fn test(programs: &str, sockets: &str) -> Result<(), String> {
    let mut steps = Steps::new(None);
    let clippy = ["cargo", "clippy", "--all-targets", "--quiet"];
    let strict = ["--", "-D", "warnings"];
    steps.run("clippy", ".", &[&clippy[..], &BUILD, &strict].concat());
    // The library finds its socket by the environment, which a program cannot safely change once it runs.
    let producers = format!("{sockets}/producers");
    let consumers = format!("{sockets}/consumers");
    let tests = Tests {
        profile: "default",
        filter: Some("kind(lib) | test(/^host::traced/)"),
        environment: &[
            ("CANDELA_TEST_PERFETTO", programs),
            ("PERFETTO_PRODUCER_SOCK_NAME", &producers),
            ("PERFETTO_CONSUMER_SOCK_NAME", &consumers),
        ],
        prints_figures: false,
    };
    tests.run(&mut steps, &BUILD);
    steps.finish()
}
