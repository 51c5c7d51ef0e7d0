//! A table as a command prints it.

use crate::args::GlobalArgs;
use crate::errors::CliError;
use crate::output::note;
use crate::output::print_text;
use crate::table::Table;

/// Prints the first rows of a table, as many as there are to be, and says how many more there are.
pub(crate) fn print_table(mut table: Table, global: &GlobalArgs) -> Result<(), CliError> {
    let count = table.truncate(global.limit);
    print_text(&table.to_text())?;
    if table.len() < count && !global.quiet {
        let shown = table.len();
        note(&format!("{shown} of {count}; --limit 0 prints all"));
    }
    Ok(())
}
