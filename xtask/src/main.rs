//! Everything CI does, as `cargo xtask` commands.

mod advisories;
mod bench;
mod crash;
mod fuzz;
mod kernels;
mod kube;
mod lint;
mod nextest;
mod opens;
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

/// A command of this program.
struct Command {
    name: &'static str,
    /// What it does, and the arguments that it takes.
    summary: &'static str,
    run: Run,
}

/// Arguments are refused where none are taken: a mistyped flag must not start a run of several minutes.
enum Run {
    WithoutArguments(fn() -> Result<(), String>),
    WithArguments(fn(&[String]) -> Result<(), String>),
}

const COMMANDS: [Command; 18] = [
    Command {
        name: "fmt",
        summary: "format Rust code; --check only reports",
        run: Run::WithArguments(lint::format),
    },
    Command {
        name: "lint",
        summary: "clippy with warnings as errors, the window's lints, tidy, advisories",
        run: Run::WithoutArguments(lint::lint),
    },
    Command {
        name: "advisories",
        summary: "licences, bans and sources of crates, known flaws of crates and of the window's packages",
        run: Run::WithoutArguments(advisories::advisories),
    },
    Command {
        name: "tidy",
        summary: "file lengths, invariants that a text can show",
        run: Run::WithoutArguments(tidy::tidy),
    },
    Command {
        name: "ui",
        summary: "build the window into ui/dist when its sources changed",
        run: Run::WithoutArguments(ui::build),
    },
    Command {
        name: "ci",
        summary: "what must pass before a change lands: installs, lints, tests; the end of its log says what failed",
        run: Run::WithoutArguments(stages::ci),
    },
    Command {
        name: "gate",
        summary: "format, lints, and tests that neither a busy machine nor another processor can fail",
        run: Run::WithoutArguments(stages::gate),
    },
    Command {
        name: "host",
        summary: "tests with the live kernel, a browser, published clients, databases; in one run at a time",
        run: Run::WithoutArguments(stages::host),
    },
    Command {
        name: "test",
        summary: "the tests of both, without lints; needs `scripts/install-deps test`",
        run: Run::WithoutArguments(stages::test),
    },
    Command {
        name: "acceptance",
        summary: "tests that measure, with sharp bounds, on a quiet host",
        run: Run::WithoutArguments(stages::acceptance),
    },
    Command {
        name: "bench",
        summary: "measure design targets; names select rows, --peer PATH runs a peer",
        run: Run::WithArguments(bench::bench),
    },
    Command {
        name: "crash",
        summary: "kill -9 under load and at failpoints; --rounds N (200), --seed N",
        run: Run::WithArguments(crash::crash),
    },
    Command {
        name: "fuzz",
        summary: "mutations of sound inputs; names select targets, --seconds N each (60)",
        run: Run::WithArguments(fuzz::fuzz),
    },
    Command {
        name: "kernels",
        summary: "what is recorded on kernels of Debian's releases, in an emulator",
        run: Run::WithoutArguments(kernels::kernels),
    },
    Command {
        name: "kube",
        summary: "what builds with a client of Kubernetes have, against an API server that Go builds",
        run: Run::WithoutArguments(kube::kube),
    },
    Command {
        name: "overhead",
        summary: "what profilers cost here; --turns N (5), --only NAME, --peer COMMAND",
        run: Run::WithArguments(bench::overhead),
    },
    Command {
        name: "perfetto",
        summary: "what builds with Google's Perfetto library have, against Debian's traced",
        run: Run::WithoutArguments(perfetto::perfetto),
    },
    Command {
        name: "soak",
        summary: "the server under load for --minutes N (20); --agent: the agent beside a compiler (30)",
        run: Run::WithArguments(soak::soak),
    },
];

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match arguments.split_first() {
        Some((name, rest)) if !is_help(name) => run(name, rest),
        Some(_) => {
            usage();
            ExitCode::SUCCESS
        }
        None => {
            usage();
            ExitCode::from(2)
        }
    }
}

fn is_help(argument: &str) -> bool {
    ["help", "--help", "-h"].contains(&argument)
}

fn run(name: &str, arguments: &[String]) -> ExitCode {
    let Some(command) = COMMANDS.iter().find(|command| command.name == name) else {
        process::say(&format!("xtask: there is no command {name}"));
        usage();
        return ExitCode::from(2);
    };
    if arguments.iter().any(|argument| is_help(argument)) {
        process::say(&command.line());
        return ExitCode::SUCCESS;
    }
    if let Err(message) = command.accepts(arguments) {
        process::say(&format!("xtask {name}: {message}"));
        return ExitCode::from(2);
    }
    let result = match command.run {
        Run::WithoutArguments(command) => command(),
        Run::WithArguments(command) => command(arguments),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(message) => {
            process::say(&format!("xtask {name}: {message}"));
            ExitCode::FAILURE
        }
    }
}

fn usage() {
    process::say("usage: cargo xtask COMMAND [ARGUMENT…]");
    for command in COMMANDS {
        process::say(&command.line());
    }
}

impl Command {
    fn accepts(&self, arguments: &[String]) -> Result<(), String> {
        match (&self.run, arguments.first()) {
            (Run::WithoutArguments(_), Some(argument)) => {
                Err(format!("takes no arguments, but got {argument}"))
            }
            _ => Ok(()),
        }
    }

    fn line(&self) -> String {
        format!("  {:<10} {}", self.name, self.summary)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_without_arguments_refuse_them() {
        let command = |name| COMMANDS.iter().find(|command| command.name == name);
        let accepts =
            |name, argument: &str| command(name).map(|it| it.accepts(&[argument.to_owned()]));
        let refusal = "takes no arguments, but got --quick".to_owned();
        assert_eq!(accepts("acceptance", "--quick"), Some(Err(refusal)));
        assert_eq!(accepts("fuzz", "pprof"), Some(Ok(())));
    }
}
