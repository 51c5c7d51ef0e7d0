//! `candela query`: a server, or profile files, asked the same questions.

mod callers;
mod code_text;
mod listing;
mod of_files;
mod remarks;
mod selection;
mod source;
mod sql;

use std::process::ExitCode;

#[cfg(feature = "server")]
pub(crate) use self::listing::rfc3339;

use crate::args::GlobalArgs;
use crate::args::query::QueryCommand;
use crate::errors::CliError;

pub(crate) fn run(global: &GlobalArgs, command: &QueryCommand) -> Result<ExitCode, CliError> {
    match command {
        QueryCommand::Top(selection) => selection::top(global, selection),
        QueryCommand::Tree(selection) => selection::tree(global, selection),
        QueryCommand::Profile(selection) => selection::profile(global, selection),
        QueryCommand::Callers(arguments) => callers::callers(global, arguments),
        QueryCommand::Source(arguments) => source::source(global, arguments),
        QueryCommand::Disassembly(arguments) => source::disassembly(global, arguments),
        QueryCommand::Series(arguments) => listing::series(global, arguments),
        QueryCommand::Labels(arguments) => listing::labels(global, arguments),
        QueryCommand::Types(arguments) => listing::types(global, arguments),
        QueryCommand::Sql(arguments) => sql::sql(global, arguments),
    }
}
