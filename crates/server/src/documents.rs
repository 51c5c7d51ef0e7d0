//! What goes wrong with documents, as clients see it.

use std::sync::MutexGuard;
use std::sync::PoisonError;

use axum::http::StatusCode;
use candela_store::DocumentError;

use crate::api_error::ApiError;
use crate::app::App;

/// Until this is dropped nobody else changes documents. What a panic left of a change is a document
/// as a whole or none.
pub(crate) fn lock_documents(app: &App) -> MutexGuard<'_, ()> {
    let locked = app.changing_documents.lock();
    locked.unwrap_or_else(PoisonError::into_inner)
}

/// Bad names are the client's fault; a disk or a bucket that fails may be whole again soon.
pub(crate) fn document_error(error: &DocumentError) -> ApiError {
    let message = error.to_string();
    match error {
        DocumentError::Name { .. } => ApiError::bad_request("bad_name", message),
        DocumentError::NoRoom { .. } => {
            ApiError::new(StatusCode::SERVICE_UNAVAILABLE, "disk_full", message)
        }
        DocumentError::Unreadable { .. } | DocumentError::Store(_) => {
            tracing::error!("a document was not read or written: {message}");
            let status = StatusCode::SERVICE_UNAVAILABLE;
            let message = "the document could not be read or written";
            ApiError::new(status, "documents_unavailable", message)
                .hint("the server's log has the details")
        }
    }
}
