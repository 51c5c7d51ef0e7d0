//! `candela top`: what runs and what waits, now.
//!
//! ```text
//! agent of this process ─ profiles ─► history ─┐
//!                                              ├─► snapshot ─► app ◄─ keys
//! server ─ answers ────────────────────────────┘                │
//!                                                               └─► draw ─► terminal
//! ```
//!
//! `App` and `draw` are pure: tests drive the one by keys and compare what the other draws.

mod app;
mod draw;
mod frame_key;
mod history;
mod kind;
mod live;
mod local;
mod look;
mod marks;
mod place;
mod remote;
mod report;
mod sandwich;
mod screen;
mod search;
mod selection;
mod snapshot;
mod source;
mod source_view;
#[cfg(test)]
mod tests;

use std::io;
use std::io::IsTerminal;
use std::process::ExitCode;
use std::time::Duration;

use self::app::App;
use self::local::LocalSource;
use self::look::Look;
use self::remote::Asker;
use self::remote::RemoteSource;
use self::source::Source;
use crate::args::GlobalArgs;
use crate::args::top::TopArgs;
use crate::errors::CliError;

/// What is shown of this host, unless told otherwise.
const LOCAL_WINDOW: Duration = Duration::from_secs(10);

/// What is shown of a server, to which agents send every ten seconds.
const REMOTE_WINDOW: Duration = Duration::from_secs(60);

pub(crate) fn run(global: &GlobalArgs, arguments: &TopArgs) -> Result<ExitCode, CliError> {
    let environment = super::environment();
    let is_dumb = environment.get("TERM").is_none_or(|term| term == "dumb");
    let is_live = io::stdout().is_terminal() && !is_dumb;
    let Some(server) = &global.server else {
        if arguments.query.is_some() {
            return Err(CliError::usage(
                "--query selects profiles of a server: add --server URL, or choose processes of this host with -p PID",
            ));
        }
        if !is_live {
            return report::of_host(global, arguments);
        }
        let window = arguments.window.unwrap_or(LOCAL_WINDOW);
        let source = LocalSource::start(global, arguments, window)?;
        let app = App::new(title_of(&arguments.pids, "this host"), "PID");
        let look = Look::of(global.color, &environment);
        return live::run(app, Box::new(source), look);
    };
    let window = arguments.window.unwrap_or(REMOTE_WINDOW);
    let asker = Asker::new(global, arguments, window)?;
    if !is_live {
        return report::of_server(global, &asker);
    }
    let shown = super::credentials::without_user(server);
    let source: Box<dyn Source> = Box::new(RemoteSource::start(asker, &shown)?);
    let app = App::new(title_of(&arguments.pids, &shown), "SERVICE");
    live::run(app, source, Look::of(global.color, &environment))
}

fn title_of(pids: &[u32], otherwise: &str) -> String {
    let names: Vec<String> = pids.iter().map(ToString::to_string).collect();
    match names.as_slice() {
        [] => otherwise.to_owned(),
        [pid] => format!("process {pid}"),
        _ => format!("processes {}", names.join(", ")),
    }
}
