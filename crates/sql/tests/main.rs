//! SQL over stored profiles.

mod common;
mod sql_answers;
mod sql_documents;
mod sql_growth;
mod sql_limits;
mod sql_native;
