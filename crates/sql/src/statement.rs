//! Which statements are answered.

use datafusion::sql::parser::Statement;
use datafusion::sql::sqlparser::ast::Statement as Ansi;

use crate::error::SqlError;

/// Lets through what only reads. A list of what is good, so that what a later version of the parser
/// adds is refused.
pub(crate) fn check_reads_only(statement: &Statement) -> Result<(), SqlError> {
    let refused = |what: &str| Err(SqlError::NotReadOnly(format!("{what} is not allowed")));
    match statement {
        Statement::Statement(ansi) => check_ansi(ansi),
        Statement::Explain(explain) => check_reads_only(&explain.statement),
        Statement::CreateExternalTable(_) => refused("CREATE EXTERNAL TABLE"),
        Statement::CopyTo(_) => refused("COPY"),
        Statement::Reset(_) => refused("RESET"),
    }
}

fn check_ansi(statement: &Ansi) -> Result<(), SqlError> {
    match statement {
        Ansi::Query(_)
        | Ansi::ShowTables { .. }
        | Ansi::ShowColumns { .. }
        | Ansi::ShowVariable { .. }
        | Ansi::ShowFunctions { .. }
        | Ansi::ExplainTable { .. } => Ok(()),
        Ansi::Explain { statement, .. } => check_ansi(statement),
        other => {
            let text = other.to_string();
            let verb = text.split_whitespace().next().unwrap_or("this statement");
            Err(SqlError::NotReadOnly(format!("{verb} is not allowed")))
        }
    }
}
