//! Why there is no answer.

use std::time::Duration;

use candela_store::StoreError;
use datafusion::common::DataFusionError;

/// The longest message that is passed on, characters: some of DataFusion's have whole plans in them.
const MESSAGE_CHARACTERS: usize = 400;

/// Why there is no answer.
#[derive(Debug, thiserror::Error)]
pub enum SqlError {
    /// The text is no SQL, or asks for what is not there or does not fit together.
    #[error("{0}")]
    Bad(String),
    /// It would change something, or reach what queries may not reach.
    #[error("{0}; only SELECT, EXPLAIN, SHOW and DESCRIBE are answered")]
    NotReadOnly(String),
    /// It is longer than a query may be.
    #[error("the query has {bytes} bytes, more than {limit}; shorten it")]
    TextTooLong {
        /// Its length, bytes.
        bytes: usize,
        /// The longest, bytes.
        limit: usize,
    },
    /// It needs more memory than one query may have.
    #[error(
        "the query needs more than {limit} bytes of memory (server.sql_memory): {reason}; filter by time or service, or select fewer columns"
    )]
    Memory {
        /// What one query may have, bytes.
        limit: usize,
        /// What asked for more.
        reason: String,
    },
    /// It ran for too long.
    #[error(
        "the query ran longer than {} s (server.sql_timeout) and was stopped; filter by time or service",
        limit.as_secs_f64()
    )]
    Time {
        /// How long one query may run.
        limit: Duration,
    },
    /// The answer has too many rows.
    #[error("the answer has more than {limit} rows (server.sql_rows); aggregate, or add a LIMIT")]
    Rows {
        /// The most rows.
        limit: usize,
    },
    /// The answer is too large.
    #[error("the answer has more than {limit} bytes; select fewer columns, or add a LIMIT")]
    AnswerBytes {
        /// The most bytes.
        limit: usize,
    },
    /// Others run, and none of them ended in time.
    #[error("{running} SQL queries are running and this one waited {} s for its turn", wait.as_secs())]
    Busy {
        /// How many run at the same time.
        running: usize,
        /// How long a query waits.
        wait: Duration,
    },
    /// A block cannot be read.
    #[error("a block cannot be read: {0}")]
    Unreadable(String),
    /// The store cannot say what it has.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The threads that run queries cannot be started.
    #[error("cannot start threads for SQL: {0}")]
    Threads(#[from] std::io::Error),
    /// A bug of ours or of DataFusion's.
    #[error("the query hit a bug: {0}")]
    Bug(String),
}

impl SqlError {
    /// What DataFusion says, by what the client can do about it.
    pub(crate) fn from_engine(error: &DataFusionError, memory_limit: usize) -> Self {
        let root = error.find_root();
        let message = shortened(&root.strip_backtrace());
        match root {
            DataFusionError::ResourcesExhausted(reason) => Self::Memory {
                limit: memory_limit,
                reason: shortened(reason),
            },
            DataFusionError::ParquetError(_)
            | DataFusionError::ObjectStore(_)
            | DataFusionError::IoError(_) => Self::Unreadable(message),
            // It is external only where this crate hands one through.
            DataFusionError::External(_) | DataFusionError::ExecutionJoin(_) => Self::Bug(message),
            // Internal errors too: each that was ever seen came of a query that makes no sense.
            _ => Self::Bad(message),
        }
    }
}

/// One line of bounded length.
fn shortened(message: &str) -> String {
    let line = message.lines().next().unwrap_or_default();
    let mut characters = line.chars();
    let mut short: String = characters.by_ref().take(MESSAGE_CHARACTERS).collect();
    if characters.next().is_some() {
        short.push('…');
    }
    short
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_are_one_short_line() {
        let plan = format!("no such column {}\nValid fields are a, b", "x".repeat(500));
        let error = SqlError::from_engine(&DataFusionError::Plan(plan), 1);
        let message = error.to_string();
        assert!(
            message.starts_with("Error during planning: no such column xxx"),
            "{message}"
        );
        assert!(
            message.ends_with('…') && !message.contains('\n'),
            "{message}"
        );
        assert!(message.chars().count() <= MESSAGE_CHARACTERS + 1);
    }
}
