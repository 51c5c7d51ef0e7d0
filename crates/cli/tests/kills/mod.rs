//! `kill -9` under load, at random moments and at the store's failpoints (cargo feature
//! `failpoints`): everything acknowledged is there after the restart, once, totals exact.
//!
//! `CANDELA_CRASH_ROUNDS` and `CANDELA_CRASH_SEED` choose how many rounds and which;
//! `cargo xtask crash` sets them.

mod check;
mod load;
mod plan;

use std::path::Path;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering;
use std::time::Instant;

use crate::support;
use crate::support::Running;
use check::check;
use load::Ledger;
use plan::Death;
use plan::Place;
use plan::Random;
use plan::Round;

const DEFAULT_ROUNDS: usize = 20;
const DEFAULT_SEED: u64 = 1;
const PUSHERS: usize = 4;
/// After so many rounds a new directory begins, or the checks would take longer than the rounds.
const ROUNDS_OF_A_DIRECTORY: usize = 20;

fn variable<T: std::str::FromStr>(name: &str, default: T) -> T {
    let Ok(text) = std::env::var(name) else {
        return default;
    };
    let parsed = text.parse();
    parsed.unwrap_or_else(|_| panic!("{name}={text} is no number"))
}

#[test]
fn what_was_acknowledged_survives_every_kill() {
    let count = variable("CANDELA_CRASH_ROUNDS", DEFAULT_ROUNDS);
    let seed = variable("CANDELA_CRASH_SEED", DEFAULT_SEED);
    println!("{count} rounds of seed {seed}");
    let rounds = plan::rounds(count, &mut Random(seed));
    for (chapter, rounds) in rounds.chunks(ROUNDS_OF_A_DIRECTORY).enumerate() {
        let folder = tempfile::tempdir().unwrap();
        let ledger = Ledger::default();
        for (number, round) in rounds.iter().enumerate() {
            let number = chapter * ROUNDS_OF_A_DIRECTORY + number + 1;
            let context = format!("seed {seed}, round {number}, {round:?}");
            let started = Instant::now();
            live_and_die(folder.path(), &ledger, round, &context);
            let candela = start(folder.path(), None).unwrap();
            check(&candela, &ledger, &context);
            candela.kill();
            let milliseconds = started.elapsed().as_millis();
            let acknowledged = ledger.acknowledged.lock().unwrap().len();
            println!("{context}: {acknowledged} acknowledged in all, {milliseconds} ms");
        }
    }
}

/// The server on its directory, which flushes at each look, four times a second.
fn start(data_dir: &Path, place: Option<Place>) -> Result<Running, String> {
    let data_dir = data_dir.to_str().unwrap();
    let arguments = ["server", "--listen", "127.0.0.1:0", "--data-dir", data_dir];
    let failpoint = place.map_or_else(String::new, Place::variable);
    let environment = [
        ("CANDELA_STORE__FLUSH_SIZE", "16KiB"),
        ("CANDELA_FAILPOINT", &failpoint),
    ];
    Running::try_start(&arguments, &environment)
}

fn live_and_die(data_dir: &Path, ledger: &Ledger, round: &Round, context: &str) {
    let place = match round.death {
        Death::At(place) => Some(place),
        Death::After(_) => None,
    };
    // A place of the start itself may end it before it says where it is.
    let started = start(data_dir, place);
    assert!(place.is_some() || started.is_ok(), "{context}: {started:?}");
    if let Ok(mut candela) = started {
        let is_over = AtomicBool::new(false);
        let url = candela.url("/api/v1/top?type=cpu&from=now-3d");
        std::thread::scope(|scope| {
            let running = &candela;
            for _ in 0..PUSHERS {
                scope.spawn(|| ledger.push_until_gone(running));
            }
            // Whoever reads while blocks come and go gets an answer.
            scope.spawn(|| {
                while !is_over.load(Ordering::SeqCst) {
                    let Some((status, body)) = support::try_get(&url) else {
                        return;
                    };
                    assert_eq!(status, 200, "{context}: {}", String::from_utf8_lossy(&body));
                }
            });
            match round.death {
                Death::After(duration) => {
                    let start = Instant::now();
                    while let Some(rest) = duration.checked_sub(start.elapsed()) {
                        std::thread::park_timeout(rest);
                    }
                    support::signal(running.pid(), "KILL");
                }
                Death::At(_) => {
                    support::eventually(context, || {
                        support::is_zombie(running.pid()).then_some(())
                    });
                }
            }
            is_over.store(true, Ordering::SeqCst);
        });
        support::eventually(context, || candela.has_ended().then_some(()));
    }
    if let Some(place) = round.death_at_start {
        assert!(
            start(data_dir, Some(place)).is_err(),
            "{context}: it must not come to serve"
        );
    }
}
