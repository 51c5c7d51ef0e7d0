//! Everything CI does, as `cargo xtask` commands.

mod bench;
mod crash;
mod fuzz;
mod gate;
mod kube;
mod lint;
mod perfetto;
mod process;
mod skips;
mod soak;
mod test;
mod tidy;
mod ui;
mod walks;

use std::process::ExitCode;

/// A command of this program: its name, what it does, and the function that does it.
type Command = (
    &'static str,
    &'static str,
    fn(&[String]) -> Result<(), String>,
);

const COMMANDS: [Command; 13] = [
    (
        "fmt",
        "format Rust code; --check only reports",
        lint::format,
    ),
    (
        "lint",
        "clippy with warnings as errors, the window's lints, tidy",
        lint::lint,
    ),
    (
        "tidy",
        "licences, file lengths, invariants that a text can show",
        tidy::tidy,
    ),
    (
        "ui",
        "build the window into ui/dist when its sources changed",
        ui::build,
    ),
    (
        "gate",
        "tests that no busy machine can fail: what CI runs",
        gate::gate,
    ),
    (
        "test",
        "every test of the project; needs `scripts/install-deps test`",
        test::test,
    ),
    (
        "bench",
        "measure design targets; names select rows, --peer PATH runs a peer",
        bench::bench,
    ),
    (
        "crash",
        "kill -9 under load and at failpoints; --rounds N (200), --seed N",
        crash::crash,
    ),
    (
        "fuzz",
        "mutations of sound inputs; names select targets, --seconds N each (60)",
        fuzz::fuzz,
    ),
    (
        "kube",
        "what builds with a client of Kubernetes have, against an API server that Go builds",
        kube::kube,
    ),
    (
        "overhead",
        "what profilers cost here; --turns N (5), --only NAME, --peer COMMAND",
        bench::overhead,
    ),
    (
        "perfetto",
        "what builds with Google's Perfetto library have, against Debian's traced",
        perfetto::perfetto,
    ),
    (
        "soak",
        "the server under load for --minutes N (20); --agent: the agent beside a compiler (30)",
        soak::soak,
    ),
];

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let Some((name, rest)) = arguments.split_first() else {
        return usage();
    };
    let Some((_, _, run)) = COMMANDS.iter().find(|(command, _, _)| command == name) else {
        return usage();
    };
    match run(rest) {
        Ok(()) => ExitCode::SUCCESS,
        Err(message) => {
            process::say(&format!("xtask {name}: {message}"));
            ExitCode::FAILURE
        }
    }
}

fn usage() -> ExitCode {
    process::say("usage: cargo xtask COMMAND [ARGUMENT…]");
    for (name, summary, _) in COMMANDS {
        process::say(&format!("  {name:<8} {summary}"));
    }
    ExitCode::from(2)
}
