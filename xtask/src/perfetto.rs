//! What only builds with Google's Perfetto library have, against a real `traced` of Debian sid.

use std::fs;
use std::path::PathBuf;

use crate::process::output;
use crate::process::root;
use crate::process::run;
use crate::skips::run_tests;

const BUILD: [&str; 4] = [
    "--package",
    "candela-daemons",
    "--features",
    "candela-daemons/perfetto",
];

/// Lints, the unit tests of the engine, and the engine beside a `traced`, which is fetched once.
pub(crate) fn perfetto(_: &[String]) -> Result<(), String> {
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
    let arguments = |before: &[&'static str], after: &[&'static str]| {
        let all = [before, &BUILD[..], after];
        all.concat()
    };
    let clippy = ["clippy", "--all-targets", "--quiet"];
    run(".", "cargo", &arguments(&clippy, &["--", "-D", "warnings"]))?;
    let test = ["test", "--quiet", "--no-fail-fast"];
    let which = [
        "--lib",
        "--test",
        "traced",
        "--test",
        "traced_failures",
        "--",
    ];
    // The library finds its socket by the environment, which a program cannot safely change once it runs.
    let producers = format!("{sockets}/producers");
    let consumers = format!("{sockets}/consumers");
    let environment: [(&str, &str); 3] = [
        ("CANDELA_TEST_PERFETTO", programs),
        ("PERFETTO_PRODUCER_SOCK_NAME", &producers),
        ("PERFETTO_CONSUMER_SOCK_NAME", &consumers),
    ];
    run_tests(&arguments(&test, &which), &environment)
}

/// Where cargo builds, and scripts put what tests need.
fn target() -> Result<PathBuf, String> {
    if let Some(folder) = std::env::var_os("CARGO_TARGET_DIR") {
        return Ok(root().join(folder));
    }
    Ok(output("scripts/target-dir", &[])?.trim().into())
}
