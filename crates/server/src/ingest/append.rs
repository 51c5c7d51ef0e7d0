//! The last step of every way in: durable, then counted.

use std::path::Path;

use axum::http::StatusCode;
use candela_model::Profile;
use candela_store::AppendError;
use candela_store::Appended;
use twox_hash::XxHash3_128;

use crate::api_error::ApiError;
use crate::app::App;
use crate::metrics::Ingested;

/// What the client sent, as a number: what it sends again gives the same one. Hashed before anything
/// is filled in, such as the time of a profile without one.
pub(crate) fn received_hash(way: &str, said: &[&str], body: &[u8]) -> u128 {
    let mut hasher = XxHash3_128::new();
    for text in std::iter::once(&way).chain(said) {
        hasher.write(text.as_bytes());
        hasher.write(&[0]);
    }
    hasher.write(body);
    hasher.finish_128()
}

/// Stores a profile; when this returns, it is durable. `received` is its [`received_hash`]: one
/// that came before is not stored again.
///
/// # Errors
/// The store's reason with a status that tells the client whether to try again.
pub(crate) async fn append(
    app: &App,
    tenant: &str,
    way: &'static str,
    profile: Profile,
    received: u128,
    bytes: u64,
) -> Result<(Ingested, Appended), ApiError> {
    let ingested = Ingested {
        profiles: profile.series.len() as u64,
        samples: profile.sample_count() as u64,
        bytes,
    };
    let announcement = app.arrivals.announcement(tenant, &profile);
    let store = &app.store;
    match store.append_once(tenant, received, profile).await {
        Ok(appended) => {
            if appended == Appended::Stored {
                app.metrics.count_ingested(tenant, way, ingested);
                app.tenants
                    .count_stored(tenant, ingested.profiles, ingested.samples);
                app.arrivals.tell(announcement);
            }
            Ok((ingested, appended))
        }
        Err(error) => {
            let error = append_error(&error);
            app.metrics
                .count_refused(tenant, error.code, ingested.profiles.max(1));
            Err(error)
        }
    }
}

fn append_error(error: &AppendError) -> ApiError {
    let (status, code) = match error {
        AppendError::Invalid(_) => (StatusCode::BAD_REQUEST, "invalid_profile"),
        AppendError::Tenant { .. } => (StatusCode::BAD_REQUEST, "bad_tenant"),
        AppendError::TooOld { .. } => (StatusCode::UNPROCESSABLE_ENTITY, "too_old"),
        AppendError::TooLarge { .. } => (StatusCode::PAYLOAD_TOO_LARGE, "too_large"),
        AppendError::Overloaded { .. } => (StatusCode::TOO_MANY_REQUESTS, "overloaded"),
        AppendError::DiskFull { .. } => (StatusCode::SERVICE_UNAVAILABLE, "disk_full"),
        AppendError::Log { .. } => (StatusCode::SERVICE_UNAVAILABLE, "log_failed"),
        AppendError::Fenced { .. } => (StatusCode::SERVICE_UNAVAILABLE, "fenced"),
        AppendError::Closed => (StatusCode::SERVICE_UNAVAILABLE, "ending"),
    };
    if status.is_server_error() {
        let place = error.place().unwrap_or(Path::new("")).display();
        tracing::error!(%place, "a profile was not stored: {error}");
    }
    match error {
        // The reason may name a file or a bucket.
        AppendError::Log { .. } => ApiError::new(status, code, "cannot write the durable log")
            .hint("send it again later; the server's log has the reason"),
        _ => ApiError::new(status, code, error.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use super::*;

    #[test]
    fn clients_learn_no_paths() {
        let path = || PathBuf::from("/secret/wal");
        let errors = [
            AppendError::DiskFull {
                path: path(),
                free_bytes: 1,
                needed_bytes: 2,
            },
            AppendError::Log {
                path: path(),
                reason: "/secret/wal/1: Input/output error".to_owned(),
            },
            AppendError::Fenced { segment: path() },
        ];
        for error in errors {
            let answer = append_error(&error);
            assert_eq!(answer.status, StatusCode::SERVICE_UNAVAILABLE);
            let told = format!("{} {}", answer.message, answer.hint);
            assert!(!told.contains("secret"), "{told}");
            assert_eq!(error.place(), Some(path().as_path()));
        }
    }
}
