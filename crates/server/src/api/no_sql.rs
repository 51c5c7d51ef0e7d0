//! `POST /api/v1/sql` in builds without SQL.

use axum::http::StatusCode;

use crate::api_error::ApiError;

pub(crate) async fn sql() -> ApiError {
    let message = "this build has no SQL: DataFusion is left out to keep it small";
    ApiError::new(StatusCode::NOT_IMPLEMENTED, "no_sql", message).hint(
        "use a release, or build with `cargo build -p candela --features full`; \
         DuckDB reads the blocks too, as docs/storage.md shows",
    )
}
