//! Fuzzing for as long as one likes: mutations of sound inputs, other ones in each run.

use crate::process::output;
use crate::process::root;
use crate::process::run;

const DEFAULT_SECONDS: &str = "60";
/// Optimized, and with the checks that turn a silent wrong number into a finding.
const PROGRAM: [&str; 7] = [
    "run",
    "--quiet",
    "--profile",
    "fuzz",
    "--package",
    "candela-fuzz",
    "--",
];

/// `fuzz [TARGET…] [--seconds N]`: each target, or those named, for so long.
pub(crate) fn fuzz(arguments: &[String]) -> Result<(), String> {
    let mut wanted: Vec<&str> = Vec::new();
    let mut seconds = DEFAULT_SECONDS;
    let mut rest = arguments.iter();
    while let Some(argument) = rest.next() {
        if argument == "--seconds" {
            let value = rest.next().filter(|value| value.parse::<u32>().is_ok());
            seconds = value.ok_or("--seconds needs a number")?;
        } else {
            wanted.push(argument);
        }
    }
    let known = output("cargo", &[&PROGRAM[..], &["targets"]].concat())?;
    if let Some(name) = wanted
        .iter()
        .find(|name| !known.lines().any(|it| it == **name))
    {
        let known: Vec<&str> = known.lines().collect();
        return Err(format!("no target {name}; there are {}", known.join(" ")));
    }
    let folder = root().join("fuzz/target");
    std::fs::create_dir_all(&folder).map_err(|error| format!("{}: {error}", folder.display()))?;
    let folder = folder.to_string_lossy();
    let is_wanted = |name: &&str| wanted.is_empty() || wanted.contains(name);
    for name in known.lines().filter(is_wanted) {
        let arguments = ["mutate", name, seconds, &folder];
        run(".", "cargo", &[&PROGRAM[..], &arguments].concat())?;
    }
    Ok(())
}
