//! The `candela` command: arguments, configuration, output. Whatever could live in a library does.
#![forbid(unsafe_code)]

mod args;
mod binaries;
mod commands;
mod config;
mod errors;
mod logging;
mod output;
#[cfg(feature = "server")]
mod percent;
mod table;

use std::process::ExitCode;

use clap::Parser;

use crate::args::Command;
use crate::args::CommandLine;
use crate::errors::CliError;

/// A server allocates on many threads what others free: merges, queries, flushes. The C library keeps
/// what came back in the arena of each of them, and grew to twice this in twenty minutes of the same
/// load. How soon it is given back is set in `.cargo/config.toml`, where the build reads it.
#[cfg(feature = "server")]
#[global_allocator]
static ALLOCATOR: tikv_jemallocator::Jemalloc = tikv_jemallocator::Jemalloc;

fn main() -> ExitCode {
    let command_line = CommandLine::parse();
    logging::start(&command_line.global);
    match run(&command_line) {
        Ok(code) => code,
        Err(error) => {
            output::print_error(&error);
            error.status.into()
        }
    }
}

fn run(command_line: &CommandLine) -> Result<ExitCode, CliError> {
    let global = &command_line.global;
    match &command_line.command {
        #[cfg(all(feature = "agent", feature = "server"))]
        Command::Up(arguments) => commands::up::run(global, arguments),
        #[cfg(feature = "server")]
        Command::Server(arguments) => commands::server::run(global, arguments),
        #[cfg(feature = "agent")]
        Command::Agent(arguments) => commands::agent::run(global, arguments),
        #[cfg(feature = "agent")]
        Command::Record(arguments) => commands::record::run(global, arguments),
        #[cfg(feature = "agent")]
        Command::Top(arguments) => commands::top::run(global, arguments),
        #[cfg(feature = "agent")]
        Command::Dump(arguments) => commands::dump::run(global, arguments),
        #[cfg(feature = "agent")]
        Command::Preload { place } => commands::preload::run(global, place),
        Command::Convert(arguments) => commands::files::convert::run(global, arguments),
        Command::Push(arguments) => commands::files::push::run(global, arguments),
        #[cfg(feature = "server")]
        Command::Open(arguments) => commands::files::open::run(global, arguments),
        #[cfg(feature = "server")]
        Command::Demo(arguments) => commands::demo::run(arguments),
        Command::Diff(arguments) => commands::files::diff::run(global, arguments),
        Command::Query(command) => commands::query::run(global, command),
        #[cfg(feature = "server")]
        Command::Symbols(command) => commands::symbols::run(global, command),
        #[cfg(feature = "server")]
        Command::Infra(command) => commands::infra::run(global, command),
        #[cfg(feature = "server")]
        Command::Profiling(command) => commands::profiling::run(global, command),
        #[cfg(feature = "server")]
        Command::Store(command) => commands::store::run(global, command),
        Command::Doctor {
            json, agent: true, ..
        } => commands::doctor_agent::run(global, *json),
        #[cfg(feature = "agent")]
        Command::Doctor {
            json,
            pid: Some(pid),
            ..
        } => commands::frame_doctor::run(global, *pid, *json),
        #[cfg(feature = "agent")]
        Command::Doctor {
            json,
            frames: Some(frames),
            profile_type,
            ..
        } => commands::stored_frame_doctor::run(global, frames, profile_type.as_deref(), *json),
        Command::Doctor { json, .. } => commands::doctor::run(global, *json),
        Command::Config(command) => commands::config::run(global, command),
        Command::Formats { json } => commands::about::formats(*json),
        Command::Completions { shell } => commands::about::completions(*shell),
        Command::Man { folder } => commands::about::manual(folder),
        Command::Version { json } => commands::about::version(*json),
    }
}
