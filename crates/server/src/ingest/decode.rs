//! Decoding bodies: off the reactor, and only as many at a time as there are cores.
//!
//! A body of megabytes becomes a profile of several times its size, so that what bounds memory is
//! how many there are at once: a slot is taken before decoding starts and given back when the
//! profile is stored.

use std::sync::Arc;

use axum::http::StatusCode;
use tokio::sync::OwnedSemaphorePermit;

use crate::api_error::ApiError;
use crate::app::App;
use crate::app::SharedApp;
use crate::app::off_the_reactor;

/// What a body became. The slot stays taken as long as this lives.
pub(crate) struct Decoded<T> {
    pub(crate) value: T,
    pub(crate) slot: OwnedSemaphorePermit,
}

/// Decodes when there is a slot.
///
/// # Errors
/// 429 when there is none for too long, and those of `work`.
pub(crate) async fn decode<T, W>(app: &SharedApp, work: W) -> Result<Decoded<T>, ApiError>
where
    T: Send + 'static,
    W: FnOnce(&App) -> Result<T, ApiError> + Send + 'static,
{
    let slot = Arc::clone(&app.decode_slots).acquire_owned();
    let slot = tokio::time::timeout(app.limits.body_timeout, slot).await;
    let Ok(Ok(slot)) = slot else {
        let message = format!(
            "{} profiles are being decoded and this one waited {} s for its turn",
            app.limits.concurrent_decodes,
            app.limits.body_timeout.as_secs()
        );
        let error = ApiError::new(StatusCode::TOO_MANY_REQUESTS, "busy", message);
        return Err(error.hint("try again"));
    };
    let app = Arc::clone(app);
    off_the_reactor(move || {
        // The slot goes with the work: a client that goes away does not end it.
        let value = work(&app)?;
        Ok(Decoded { value, slot })
    })
    .await
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use candela_query::Engine;
    use candela_store::Store;
    use candela_store::StoreOptions;

    use super::*;
    use crate::options::Limits;
    use crate::options::ServerOptions;

    #[tokio::test]
    async fn no_more_bodies_are_decoded_than_there_are_slots() {
        let data_dir = tempfile::tempdir().expect("a temporary directory");
        let store = Store::open(StoreOptions::new(data_dir.path())).expect("a new store opens");
        let options = ServerOptions {
            limits: Limits {
                concurrent_decodes: 1,
                body_timeout: Duration::from_millis(1),
                ..Limits::default()
            },
            ..ServerOptions::new("127.0.0.1:0".parse().expect("an address"))
        };
        let app = App::new(&options, store.clone(), Engine::new(store)).expect("no accounts");
        let first = decode(&app, |_| Ok(())).await.expect("a free slot");
        let refused = decode(&app, |_| Ok(())).await.map(|decoded| decoded.value);
        let refused = refused.expect_err("the slot is taken until the first is stored");
        assert_eq!(refused.status, StatusCode::TOO_MANY_REQUESTS);
        drop(first);
        assert!(decode(&app, |_| Ok(())).await.is_ok());
    }
}
