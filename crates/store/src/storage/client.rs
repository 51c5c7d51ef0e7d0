//! How long requests to buckets take at most, and how often they are tried.

use std::time::Duration;

use object_store::BackoffConfig;
use object_store::ClientOptions;
use object_store::RetryConfig;

/// One try of a request, with its answer. At most a part of an upload is moved by one.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(30);
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);
/// No new try is begun after this. A flush is tried again anyway, and a query has somebody waiting.
const RETRY_TIMEOUT: Duration = Duration::from_secs(20);
const MAX_RETRIES: usize = 6;

pub(super) fn options() -> ClientOptions {
    let agent = concat!("candela/", env!("CARGO_PKG_VERSION"));
    ClientOptions::new()
        .with_timeout(REQUEST_TIMEOUT)
        .with_connect_timeout(CONNECT_TIMEOUT)
        .with_user_agent(object_store::HeaderValue::from_static(agent))
}

/// About five seconds of tries when each fails at once.
pub(super) fn retries() -> RetryConfig {
    RetryConfig {
        backoff: BackoffConfig {
            init_backoff: Duration::from_millis(100),
            max_backoff: Duration::from_secs(2),
            base: 2.0,
        },
        max_retries: MAX_RETRIES,
        retry_timeout: RETRY_TIMEOUT,
    }
}
