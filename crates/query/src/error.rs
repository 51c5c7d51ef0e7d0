//! Why a query has no answer.

use candela_store::BlockError;
use candela_store::StoreError;

/// A query that cannot be answered. That nothing matches is an answer and no error.
#[derive(Debug, thiserror::Error)]
pub enum QueryError {
    /// The question makes no sense; the text says why.
    #[error("{0}")]
    BadRequest(String),
    /// The answer costs more than the query may.
    #[error(
        "the query needs {needed} {unit}, its limit is {allowed}; ask for a shorter range or fewer series"
    )]
    BudgetExceeded {
        /// What is limited: `bytes read`, `bytes of memory` or `nanoseconds`.
        unit: &'static str,
        /// How much is allowed.
        allowed: u64,
        /// How much it would take, or took so far.
        needed: u64,
    },
    /// Nobody waits for the answer any more.
    #[error("the query was cancelled: nobody waits for its answer")]
    Cancelled,
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// Why part of an answer could not be computed.
#[derive(Debug)]
pub(crate) enum Failure {
    /// The block goes to quarantine and the rest answers.
    Block(BlockError),
    /// There is no answer.
    Query(QueryError),
}

impl From<BlockError> for Failure {
    fn from(error: BlockError) -> Self {
        Self::Block(error)
    }
}

impl From<QueryError> for Failure {
    fn from(error: QueryError) -> Self {
        Self::Query(error)
    }
}
