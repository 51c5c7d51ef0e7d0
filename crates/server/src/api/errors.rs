//! The engine's errors as clients see them.

use axum::http::StatusCode;
use candela_query::QueryError;

use crate::api_error::ApiError;

/// The code of a query that was ended because its client went away.
pub(crate) const CANCELLED: &str = "cancelled";

#[expect(clippy::needless_pass_by_value, reason = "made for map_err")]
pub(crate) fn query_error(error: QueryError) -> ApiError {
    let message = error.to_string();
    match error {
        QueryError::BadRequest(_) => ApiError::bad_request("bad_query", message),
        QueryError::BudgetExceeded { .. } => {
            ApiError::new(StatusCode::UNPROCESSABLE_ENTITY, "over_budget", message)
        }
        // Nobody is there to read it.
        QueryError::Cancelled => ApiError::new(StatusCode::SERVICE_UNAVAILABLE, CANCELLED, message),
        QueryError::Store(_) => {
            tracing::error!("a query failed: {message}");
            ApiError::internal("stored data could not be read")
        }
    }
}
