//! Measuring the design targets.

use crate::process::run;

/// Runs the benchmark driver, which prints one row a target and writes `bench/results.json`.
pub(crate) fn bench(arguments: &[String]) -> Result<(), String> {
    build_and_run(arguments)
}

/// Runs the same driver, which prints what our agent and others cost on this host.
pub(crate) fn overhead(arguments: &[String]) -> Result<(), String> {
    let mut overhead = vec!["overhead".to_owned()];
    overhead.extend_from_slice(arguments);
    build_and_run(&overhead)
}

/// Builds what is measured and the driver, and runs the driver.
pub(crate) fn build_and_run(arguments: &[String]) -> Result<(), String> {
    run(
        ".",
        "cargo",
        &[
            "build",
            "--release",
            "--package",
            "candela",
            "--package",
            "candela-bench",
            "--package",
            "candela-bench-store",
        ],
    )?;
    let mut command = vec![
        "run",
        "--quiet",
        "--release",
        "--package",
        "candela-bench",
        "--",
    ];
    command.extend(arguments.iter().map(String::as_str));
    run(".", "cargo", &command)
}
