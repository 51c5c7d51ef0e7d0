//! Which statements are answered.

use std::ops::ControlFlow;

use datafusion::sql::parser::Statement;
use datafusion::sql::sqlparser::ast::Expr;
use datafusion::sql::sqlparser::ast::Statement as Ansi;
use datafusion::sql::sqlparser::ast::Visit;
use datafusion::sql::sqlparser::ast::Visitor;

use crate::error::SqlError;

/// How deep expressions may be. The time of planning grows with a power of the depth, and planning
/// cannot be interrupted: a sum of 8000 terms would hold a thread for minutes.
const MOST_DEPTH: usize = 200;

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
        Ansi::Query(query) => check_depth(query),
        Ansi::ShowTables { .. }
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

/// The depth of the expression that is visited, and the deepest so far.
#[derive(Default)]
struct Depth {
    now: usize,
    most: usize,
}

impl Visitor for Depth {
    type Break = ();

    fn pre_visit_expr(&mut self, _: &Expr) -> ControlFlow<()> {
        self.now += 1;
        self.most = self.most.max(self.now);
        ControlFlow::Continue(())
    }

    fn post_visit_expr(&mut self, _: &Expr) -> ControlFlow<()> {
        self.now -= 1;
        ControlFlow::Continue(())
    }
}

fn check_depth(statement: &impl Visit) -> Result<(), SqlError> {
    let mut depth = Depth::default();
    let _ = statement.visit(&mut depth);
    if depth.most <= MOST_DEPTH {
        return Ok(());
    }
    let deep = depth.most;
    Err(SqlError::Bad(format!(
        "an expression is {deep} operators deep, more than {MOST_DEPTH}; write a list as IN (…)"
    )))
}
