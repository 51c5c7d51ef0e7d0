//! The crash test at full length.

use crate::process::run_with;
use crate::process::say;

const DEFAULT_ROUNDS: &str = "200";

/// `crash [--rounds N] [--seed N]`: a death at every failpoint of the store, then rounds of `kill -9`
/// of a server under load, half of them at failpoints.
/// A run without `--seed` is another one each time; the seed is printed.
pub(crate) fn crash(arguments: &[String]) -> Result<(), String> {
    let mut rounds = DEFAULT_ROUNDS.to_owned();
    let mut seed = any_seed().to_string();
    let mut rest = arguments.iter();
    while let Some(flag) = rest.next() {
        let place = match flag.as_str() {
            "--rounds" => &mut rounds,
            "--seed" => &mut seed,
            other => return Err(format!("{other} is neither --rounds nor --seed")),
        };
        let value = rest.next().filter(|value| value.parse::<u64>().is_ok());
        *place = value
            .ok_or_else(|| format!("{flag} needs a number"))?
            .clone();
    }
    say(&format!(
        "again: cargo xtask crash --rounds {rounds} --seed {seed}"
    ));
    let line = [
        "test",
        "--quiet",
        "--package",
        "candela",
        "--package",
        "candela-store",
        "--features",
        "candela/failpoints",
        "--test",
        "it",
        "--",
        "--nocapture",
        "failpoints::",
        "kills::",
    ];
    let environment = [
        ("CANDELA_CRASH_ROUNDS", &*rounds),
        ("CANDELA_CRASH_SEED", &*seed),
    ];
    run_with(".", "cargo", &line, &environment)
}

/// The clock is random enough: nothing is kept secret with it.
fn any_seed() -> u32 {
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    now.map_or(1, |elapsed| elapsed.subsec_nanos())
}
