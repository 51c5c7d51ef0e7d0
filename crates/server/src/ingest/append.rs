//! The last step of every way in: durable, then counted.

use axum::http::StatusCode;
use candela_model::Profile;
use candela_store::AppendError;

use crate::api_error::ApiError;
use crate::app::App;
use crate::app::DEFAULT_TENANT;
use crate::metrics::Ingested;

/// Stores a profile; when this returns, it is durable.
///
/// # Errors
/// The store's reason with a status that tells the client whether to try again.
pub(crate) async fn append(
    app: &App,
    way: &'static str,
    profile: Profile,
    bytes: u64,
) -> Result<Ingested, ApiError> {
    let ingested = Ingested {
        profiles: profile.series.len() as u64,
        samples: profile.sample_count() as u64,
        bytes,
    };
    let result = app.store.append(DEFAULT_TENANT, profile).await;
    if let Err(error) = result {
        let error = append_error(&error);
        app.metrics
            .count_refused(error.code, ingested.profiles.max(1));
        return Err(error);
    }
    app.metrics.count_ingested(way, ingested);
    Ok(ingested)
}

fn append_error(error: &AppendError) -> ApiError {
    let message = error.to_string();
    let (status, code) = match error {
        AppendError::Invalid(_) => (StatusCode::BAD_REQUEST, "invalid_profile"),
        AppendError::Tenant { .. } => (StatusCode::BAD_REQUEST, "bad_tenant"),
        AppendError::TooOld { .. } => (StatusCode::UNPROCESSABLE_ENTITY, "too_old"),
        AppendError::TooLarge { .. } => (StatusCode::PAYLOAD_TOO_LARGE, "too_large"),
        AppendError::Overloaded { .. } => (StatusCode::TOO_MANY_REQUESTS, "overloaded"),
        AppendError::DiskFull { .. } => (StatusCode::SERVICE_UNAVAILABLE, "disk_full"),
        AppendError::Log { .. } => (StatusCode::SERVICE_UNAVAILABLE, "log_failed"),
        AppendError::Closed => (StatusCode::SERVICE_UNAVAILABLE, "ending"),
    };
    if status.is_server_error() {
        tracing::error!("a profile was not stored: {message}");
    }
    ApiError::new(status, code, message)
}
