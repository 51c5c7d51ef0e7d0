//! Room for bodies: many clients at once must not take all memory.

use std::sync::Arc;

use axum::http::HeaderMap;
use axum::http::StatusCode;
use axum::http::header::CONTENT_ENCODING;
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
        let bytes = limits.bodies_bytes.max(largest(limits));
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
        // What a compressed body announces says nothing of what it becomes.
        if headers.contains_key(CONTENT_ENCODING) {
            return self.reserve_largest(limits).await;
        }
        let bytes = announced_bytes(headers).map_or(limits.body_bytes, |announced| {
            usize::try_from(announced)
                .map_or(limits.body_bytes, |bytes| bytes.min(limits.body_bytes))
        });
        self.reserve_bytes(limits, bytes).await
    }

    /// Waits for room for the largest body that may be, as [`reserve`](Self::reserve) does.
    pub(crate) async fn reserve_largest(
        &self,
        limits: &Limits,
    ) -> Result<OwnedSemaphorePermit, ApiError> {
        self.reserve_bytes(limits, largest(limits)).await
    }

    async fn reserve_bytes(
        &self,
        limits: &Limits,
        bytes: usize,
    ) -> Result<OwnedSemaphorePermit, ApiError> {
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

/// The most that one body may take, compressed or not.
fn largest(limits: &Limits) -> usize {
    limits.body_bytes.max(limits.profile_bytes)
}

/// Content-Length, when there is one.
pub(crate) fn announced_bytes(headers: &HeaderMap) -> Option<u64> {
    headers.get(CONTENT_LENGTH)?.to_str().ok()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use axum::http::HeaderName;
    use axum::http::HeaderValue;

    use super::*;

    fn headers(pairs: &[(HeaderName, &'static str)]) -> HeaderMap {
        let pairs = pairs.iter();
        pairs
            .map(|(name, value)| (name.clone(), HeaderValue::from_static(value)))
            .collect()
    }

    #[tokio::test]
    async fn a_compressed_body_takes_the_room_of_what_it_may_become() {
        let limits = Limits {
            bodies_bytes: 64 << 20,
            body_timeout: Duration::from_millis(1),
            ..Limits::default()
        };
        let room = BodyRoom::new(&limits);
        let small = headers(&[(CONTENT_LENGTH, "10")]);
        let compressed = headers(&[(CONTENT_LENGTH, "10"), (CONTENT_ENCODING, "gzip")]);
        let held = room.reserve(&limits, &small).await.expect("room");
        assert!(room.reserve(&limits, &small).await.is_ok());
        assert!(room.reserve(&limits, &compressed).await.is_err());
        drop(held);
        let _held = room.reserve(&limits, &compressed).await.expect("room");
        assert!(room.reserve(&limits, &small).await.is_err());
        assert!(room.reserve_largest(&limits).await.is_err());
    }
}
