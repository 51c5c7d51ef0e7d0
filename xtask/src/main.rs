//! Everything CI does, as `cargo xtask` commands.

mod bench;
mod crash;
mod fuzz;
mod kernels;
mod kube;
mod lint;
mod nextest;
mod perfetto;
mod process;
mod report;
mod skips;
mod soak;
mod stages;
mod steps;
mod test_modules;
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

const COMMANDS: [Command; 17] = [
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
        "ci",
        "what must pass before a change lands: installs, lints, tests; the end of its log says what failed",
        stages::ci,
    ),
    (
        "gate",
        "format, lints, and tests that neither a busy machine nor another processor can fail",
        stages::gate,
    ),
    (
        "host",
        "tests with the live kernel, a browser, published clients, databases; in one run at a time",
        stages::host,
    ),
    (
        "test",
        "the tests of both, without lints; needs `scripts/install-deps test`",
        stages::test,
    ),
    (
        "acceptance",
        "tests that measure, with sharp bounds, on a quiet host",
        stages::acceptance,
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
        "kernels",
        "what is recorded on kernels of Debian's releases, in an emulator",
        kernels::kernels,
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
        process::say(&format!("  {name:<10} {summary}"));
    }
    ExitCode::from(2)
}
