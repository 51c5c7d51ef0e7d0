//! Room for bodies: many clients at once must not take all memory.

use std::sync::Arc;

use axum::http::HeaderMap;
use axum::http::StatusCode;
use axum::http::header::CONTENT_LENGTH;
use tokio::sync::OwnedSemaphorePermit;
use tokio::sync::Semaphore;

use crate::api_error::ApiError;
use crate::app::App;
use crate::ingest::body::BodyBounds;
use crate::ingest::body::Encoding;
use crate::options::Limits;

/// What a permit stands for, bytes: a semaphore counts 32 bits.
const GRAIN: usize = 1024;

/// The most that deflate can save: 258 bytes in two bits, and the rounding of small streams.
const GZIP_MAX_RATIO: usize = 1040;

/// Memory for bodies.
#[derive(Debug)]
pub(crate) struct BodyRoom {
    grains: Arc<Semaphore>,
    /// All there is.
    bytes: usize,
}

impl BodyRoom {
    pub(crate) fn new(limits: &Limits) -> Self {
        Self {
            grains: Arc::new(Semaphore::new(limits.bodies_bytes.div_ceil(GRAIN))),
            bytes: limits.bodies_bytes,
        }
    }

    /// Waits for room for a body and for what it may become. `sent` is its size when that is known.
    /// The room is taken until the permit is dropped. A body that may be larger than all the room
    /// there is takes all: it is served, and alone.
    ///
    /// # Errors
    /// 429 when there is none for too long.
    pub(crate) async fn reserve(
        &self,
        limits: &Limits,
        bounds: BodyBounds,
        encoding: Encoding,
        sent: Option<usize>,
    ) -> Result<OwnedSemaphorePermit, ApiError> {
        let sent = sent.unwrap_or(bounds.sent).min(bounds.sent);
        // What a compressed body announces says little of what it becomes.
        let inflated = match encoding {
            Encoding::Identity => 0,
            Encoding::Gzip => sent.saturating_mul(GZIP_MAX_RATIO).min(bounds.inflated),
            Encoding::Zstd => bounds.inflated,
        };
        let bytes = sent.saturating_add(inflated).min(self.bytes);
        let grains = u32::try_from(bytes.div_ceil(GRAIN)).unwrap_or(u32::MAX);
        let permit = Arc::clone(&self.grains).acquire_many_owned(grains);
        match tokio::time::timeout(limits.body_timeout, permit).await {
            Ok(Ok(permit)) => Ok(permit),
            _ => {
                let message = format!(
                    "bodies of other requests take the {} bytes that may be",
                    self.bytes
                );
                Err(ApiError::new(StatusCode::TOO_MANY_REQUESTS, "busy", message).hint("try again"))
            }
        }
    }
}

/// Room for the body that the headers of a request announce.
///
/// # Errors
/// As [`BodyRoom::reserve`], and 415 for an encoding that is not known.
pub(crate) async fn reserve(
    app: &App,
    bounds: BodyBounds,
    headers: &HeaderMap,
) -> Result<OwnedSemaphorePermit, ApiError> {
    let encoding = Encoding::of(headers)?;
    let sent = announced_bytes(headers);
    let sent = sent.map(|bytes| usize::try_from(bytes).unwrap_or(usize::MAX));
    app.room.reserve(&app.limits, bounds, encoding, sent).await
}

/// Content-Length, when there is one.
pub(crate) fn announced_bytes(headers: &HeaderMap) -> Option<u64> {
    headers.get(CONTENT_LENGTH)?.to_str().ok()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::tenant_limits::TenantLimits;

    #[tokio::test]
    async fn a_compressed_body_takes_the_room_of_what_it_may_become() {
        let limits = Limits {
            bodies_bytes: 64 << 20,
            body_timeout: Duration::from_millis(1),
            ..Limits::default()
        };
        let room = BodyRoom::new(&limits);
        let bounds = BodyBounds::profile(&TenantLimits::default());
        let reserve = |encoding, sent| room.reserve(&limits, bounds, encoding, sent);
        let held = reserve(Encoding::Identity, Some(10)).await.expect("room");
        assert!(reserve(Encoding::Identity, Some(10)).await.is_ok());
        assert!(reserve(Encoding::Gzip, Some(10)).await.is_ok());
        assert!(reserve(Encoding::Gzip, Some(1 << 20)).await.is_err());
        assert!(reserve(Encoding::Zstd, Some(10)).await.is_err());
        assert!(reserve(Encoding::Identity, None).await.is_err());
        drop(held);
        let _held = reserve(Encoding::Zstd, Some(10)).await.expect("room");
        assert!(reserve(Encoding::Identity, Some(10)).await.is_err());
    }

    #[tokio::test]
    async fn the_largest_body_is_served_however_little_room_there_is() {
        let limits = Limits {
            bodies_bytes: 1 << 20,
            ..Limits::default()
        };
        let room = BodyRoom::new(&limits);
        let bounds = BodyBounds::request(&TenantLimits::default());
        assert!(
            room.reserve(&limits, bounds, Encoding::Zstd, None)
                .await
                .is_ok()
        );
    }

    #[test]
    fn deflate_saves_no_more_than_is_reserved_for() {
        use std::io::Write;
        for length in [1_usize << 10, 1 << 16, 1 << 20, 1 << 24] {
            let compression = flate2::Compression::best();
            let mut encoder = flate2::write::GzEncoder::new(Vec::new(), compression);
            encoder
                .write_all(&vec![0; length])
                .expect("memory takes everything");
            let packed = encoder.finish().expect("memory takes everything");
            assert!(packed.len() * GZIP_MAX_RATIO >= length, "{}", packed.len());
        }
    }
}
