//! `candela query`: a server, or profile files, asked the same questions.

mod listing;
mod remarks;
mod selection;

use std::process::ExitCode;

use crate::args::GlobalArgs;
use crate::args::query::QueryCommand;
use crate::errors::CliError;

pub(crate) fn run(global: &GlobalArgs, command: &QueryCommand) -> Result<ExitCode, CliError> {
    match command {
        QueryCommand::Top(selection) => selection::top(global, selection),
        QueryCommand::Tree(selection) => selection::tree(global, selection),
        QueryCommand::Profile(selection) => selection::profile(global, selection),
        QueryCommand::Series(arguments) => listing::series(global, arguments),
        QueryCommand::Labels(arguments) => listing::labels(global, arguments),
        QueryCommand::Types(range) => listing::types(global, range),
    }
}
