//! Running programs and saying so.

use std::io::Write;
use std::path::PathBuf;
use std::process::Command;

/// The checkout that cargo runs this program for: it may have been built from another one.
pub(crate) fn root() -> PathBuf {
    let manifest = std::env::var_os("CARGO_MANIFEST_DIR");
    let manifest = manifest.map_or_else(|| env!("CARGO_MANIFEST_DIR").into(), PathBuf::from);
    manifest
        .parent()
        .expect("xtask is a folder of the checkout")
        .to_path_buf()
}

/// Where cargo has built this program, and builds the rest; scripts put there what tests need.
pub(crate) fn target() -> Result<PathBuf, String> {
    let this = std::env::current_exe().map_err(|error| format!("this program: {error}"))?;
    let target = this.ancestors().nth(2);
    let target = target.ok_or("this program is in no target directory")?;
    Ok(target.to_path_buf())
}

/// A program, without what cargo has told this one about its package. ring's build script depends on some of it: after
/// each change between `cargo test` and `cargo xtask test` all that stands on ring, DataFusion too, would be built anew.
pub(crate) fn command(program: &str) -> Command {
    let mut command = Command::new(program);
    for (name, _) in std::env::vars_os() {
        let is_of_package = name.to_str().is_some_and(|name| {
            name.starts_with("CARGO_PKG_") || name.starts_with("CARGO_MANIFEST_")
        });
        if is_of_package {
            command.env_remove(name);
        }
    }
    command
}

/// One line to the person who runs this.
pub(crate) fn say(line: &str) {
    // A closed stderr is no reason to stop.
    let _ = writeln!(std::io::stderr(), "{line}");
}

/// Runs a program in a folder of the checkout and waits for it.
pub(crate) fn run(folder: &str, program: &str, arguments: &[&str]) -> Result<(), String> {
    run_with(folder, program, arguments, &[])
}

/// The same with environment variables.
pub(crate) fn run_with(
    folder: &str,
    program: &str,
    arguments: &[&str],
    environment: &[(&str, &str)],
) -> Result<(), String> {
    say(&format!("+ {program} {}", arguments.join(" ")));
    let status = command(program)
        .args(arguments)
        .envs(environment.iter().copied())
        .current_dir(root().join(folder))
        .status()
        .map_err(|error| format!("{program} does not start: {error}; is it installed?"))?;
    if status.success() {
        return Ok(());
    }
    Err(format!(
        "{program} {} ended with {status}",
        arguments.join(" ")
    ))
}

/// The standard output of a program.
pub(crate) fn output(program: &str, arguments: &[&str]) -> Result<String, String> {
    let output = command(program)
        .args(arguments)
        .current_dir(root())
        .output()
        .map_err(|error| format!("{program} does not start: {error}; is it installed?"))?;
    if !output.status.success() {
        let message = String::from_utf8_lossy(&output.stderr);
        return Err(format!("{program} {}: {message}", arguments.join(" ")));
    }
    String::from_utf8(output.stdout).map_err(|_| format!("{program} printed no UTF-8"))
}
