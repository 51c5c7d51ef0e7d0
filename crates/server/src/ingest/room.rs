//! Room for bodies: many clients at once must not take all memory.

use std::sync::Arc;

use axum::http::HeaderMap;
use axum::http::StatusCode;
use axum::http::header::CONTENT_LENGTH;
use tokio::sync::OwnedSemaphorePermit;
use tokio::sync::Semaphore;

use crate::api_error::ApiError;
use crate::options::Limits;

/// What a permit stands for, bytes: a semaphore counts 32 bits.
const GRAIN: usize = 1024;

/// Memory for bodies.
#[derive(Debug)]
pub(crate) struct BodyRoom {
    grains: Arc<Semaphore>,
}

impl BodyRoom {
    pub(crate) fn new(limits: &Limits) -> Self {
        // A single body of the largest size must always fit.
        let bytes = limits.bodies_bytes.max(limits.body_bytes);
        Self {
            grains: Arc::new(Semaphore::new(bytes.div_ceil(GRAIN))),
        }
    }

    /// Waits for room for the body that the headers announce, or the largest one when they say
    /// nothing. The room is taken until the permit is dropped.
    ///
    /// # Errors
    /// 429 when there is none for too long.
    pub(crate) async fn reserve(
        &self,
        limits: &Limits,
        headers: &HeaderMap,
    ) -> Result<OwnedSemaphorePermit, ApiError> {
        let bytes = announced_bytes(headers).map_or(limits.body_bytes, |announced| {
            usize::try_from(announced)
                .map_or(limits.body_bytes, |bytes| bytes.min(limits.body_bytes))
        });
        let grains = u32::try_from(bytes.div_ceil(GRAIN)).unwrap_or(u32::MAX);
        let permit = Arc::clone(&self.grains).acquire_many_owned(grains);
        match tokio::time::timeout(limits.body_timeout, permit).await {
            Ok(Ok(permit)) => Ok(permit),
            _ => {
                let message = format!(
                    "bodies of other requests take the {} bytes that may be",
                    limits.bodies_bytes
                );
                Err(ApiError::new(StatusCode::TOO_MANY_REQUESTS, "busy", message).hint("try again"))
            }
        }
    }
}

/// Content-Length, when there is one.
pub(crate) fn announced_bytes(headers: &HeaderMap) -> Option<u64> {
    headers.get(CONTENT_LENGTH)?.to_str().ok()?.parse().ok()
}
