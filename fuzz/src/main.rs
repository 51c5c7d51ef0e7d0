//! `candela-fuzz targets` lists what there is, `candela-fuzz mutate TARGET SECONDS DIRECTORY` runs
//! mutations of sound inputs for so long, `candela-fuzz run TARGET FILE…` runs inputs.
#![forbid(unsafe_code)]

use std::io::Write;
use std::panic;
use std::path::Path;
use std::process::ExitCode;
use std::time::Duration;
use std::time::SystemTime;

use candela_fuzz::Target;
use candela_fuzz::mutate::Random;
use candela_fuzz::mutate::mutated;
use rustix::time::ClockId;
use rustix::time::clock_gettime;

/// What takes longer is a finding.
const SLOW: Duration = Duration::from_secs(10);

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match run(&arguments) {
        Ok(()) => ExitCode::SUCCESS,
        Err(message) => {
            // A closed stderr is no reason to fail in another way.
            let _ = writeln!(std::io::stderr(), "candela-fuzz: {message}");
            ExitCode::from(2)
        }
    }
}

fn run(arguments: &[String]) -> Result<(), String> {
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let find = |name: &str| {
        candela_fuzz::target(name).ok_or_else(|| format!("no target {name}; see `targets`"))
    };
    match &arguments[..] {
        ["targets"] => {
            for target in candela_fuzz::TARGETS {
                say(target.name)?;
            }
            Ok(())
        }
        ["mutate", name, seconds, directory] => {
            let seconds = seconds.parse().map_err(|_| "SECONDS is a number")?;
            mutate(
                find(name)?,
                Duration::from_secs(seconds),
                Path::new(directory),
            )
        }
        ["run", name, files @ ..] => {
            let target = find(name)?;
            for file in files {
                let input = std::fs::read(file).map_err(|error| format!("{file}: {error}"))?;
                (target.run)(&input);
            }
            Ok(())
        }
        _ => Err("usage: targets | mutate TARGET SECONDS DIRECTORY | run TARGET FILE…".to_owned()),
    }
}

/// Time of the processor, of all threads, and not of the clock: a stopped run goes on where it was, and what
/// else is running makes no input slow.
fn time_used() -> Duration {
    let used = clock_gettime(ClockId::ProcessCPUTime);
    used.try_into()
        .expect("a process has used no less than nothing")
}

/// Other mutations in each run: the short form in `cargo test` has those that are always the same.
fn mutate(target: &Target, time: Duration, directory: &Path) -> Result<(), String> {
    let since_epoch = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
    let first = since_epoch.map_or(0, |elapsed| elapsed.as_secs()) << 32;
    let seeds = (target.seeds)();
    let start = time_used();
    let mut number = 0;
    while time_used() - start < time {
        let input = mutated(&seeds, &mut Random::new(first + number));
        number += 1;
        let began = time_used();
        let outcome = panic::catch_unwind(|| (target.run)(&input));
        let is_slow = time_used() - began > SLOW;
        if outcome.is_ok() && !is_slow {
            continue;
        }
        let path = directory.join(format!("{}-failure", target.name));
        std::fs::write(&path, &input).map_err(|error| format!("{}: {error}", path.display()))?;
        let what = if is_slow {
            "is slow with"
        } else {
            "fails with"
        };
        return Err(format!(
            "target {} {what} {}: mend the reader, and keep the input in fuzz/regressions/{}",
            target.name,
            path.display(),
            target.name
        ));
    }
    say(&format!("{}: {number} inputs", target.name))
}

fn say(line: &str) -> Result<(), String> {
    writeln!(std::io::stdout(), "{line}").map_err(|error| error.to_string())
}
