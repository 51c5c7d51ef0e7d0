//! Log lines: to standard error, as text or JSON.

use std::io;
use std::io::IsTerminal;

use tracing_subscriber::EnvFilter;

use crate::args::ColorChoice;
use crate::args::GlobalArgs;
use crate::args::LogFormat;

/// Starts logging. `CANDELA_LOG` takes a filter such as `candela_agent=debug` and wins over flags.
pub(crate) fn start(global: &GlobalArgs) {
    set_color(global.color);
    let level = match (global.quiet, global.verbose) {
        (true, _) => "error",
        (false, 0) => "warn,candela=info",
        (false, 1) => "info",
        (false, 2) => {
            "info,candela=debug,candela_agent=debug,candela_store=debug,candela_server=debug"
        }
        (false, _) => "debug",
    };
    let filter = EnvFilter::try_from_env("CANDELA_LOG").unwrap_or_else(|_| EnvFilter::new(level));
    let builder = tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(io::stderr);
    match global.log_format {
        LogFormat::Json => builder.json().init(),
        LogFormat::Text => builder
            .with_ansi(uses_color(global.color))
            .with_target(false)
            .compact()
            .init(),
    }
}

fn set_color(choice: ColorChoice) {
    let choice = match choice {
        ColorChoice::Auto => anstream::ColorChoice::Auto,
        ColorChoice::Always => anstream::ColorChoice::Always,
        ColorChoice::Never => anstream::ColorChoice::Never,
    };
    choice.write_global();
}

fn uses_color(choice: ColorChoice) -> bool {
    match choice {
        ColorChoice::Always => true,
        ColorChoice::Never => false,
        ColorChoice::Auto => io::stderr().is_terminal() && std::env::var_os("NO_COLOR").is_none(),
    }
}
