//! `candela symbols`: files that name what was stored as addresses.

mod find;
mod list;
mod sources;
mod upload;

use std::process::ExitCode;

use crate::args::GlobalArgs;
use crate::args::symbols::SymbolsCommand;
use crate::errors::CliError;

pub(crate) use self::sources::symbol_sources;

pub(crate) fn run(global: &GlobalArgs, command: &SymbolsCommand) -> Result<ExitCode, CliError> {
    match command {
        SymbolsCommand::Upload(arguments) => upload::upload(global, arguments),
        SymbolsCommand::List(arguments) => list::list(global, *arguments),
        SymbolsCommand::Find(arguments) => find::find(global, arguments),
    }
}
