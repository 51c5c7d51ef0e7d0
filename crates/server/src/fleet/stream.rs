//! `GET /api/v1/fleet/stream`: what a node is told, for as long as it listens.

use std::convert::Infallible;

use axum::body::Body;
use axum::extract::State;
use axum::http::HeaderMap;
use axum::http::HeaderName;
use axum::http::HeaderValue;
use axum::http::header::CACHE_CONTROL;
use axum::http::header::CONTENT_TYPE;
use axum::response::Response;
use bytes::Bytes;
use futures::stream;
use tokio::time::Instant;
use tokio::time::Interval;
use tokio::time::MissedTickBehavior;
use tokio::time::interval_at;

use super::hub::Feed;
use super::instance::Instance;
use super::lines::keep_alive_line;
use super::listener::Listener;
use super::versions::read_current;
use crate::api_error::ApiError;
use crate::app::SharedApp;
use crate::app::off_the_reactor;
use crate::auth::Caller;
use crate::auth::TenantName;
use crate::parameters::Parameters;

/// What proxies such as nginx are told by: they would collect an answer until it has some size.
const NO_BUFFERING: HeaderName = HeaderName::from_static("x-accel-buffering");

/// A stream that is open.
struct NodeStream {
    feed: Feed,
    keep_alive: Interval,
    keep_alive_line: Bytes,
    _closing: CloseOnDrop,
}

/// Takes the stream from its node, however it ends.
struct CloseOnDrop {
    app: SharedApp,
    tenant: TenantName,
    listener: Listener,
    number: u64,
}

/// The document, each new one, orders, and signs of life between them.
pub(crate) async fn stream(
    State(app): State<SharedApp>,
    caller: Caller,
    headers: HeaderMap,
    parameters: Parameters,
) -> Result<Response, ApiError> {
    let Some(node) = parameters.one("node") else {
        let message = "node is missing: which node is it that listens?";
        return Err(ApiError::bad_request("missing_parameter", message));
    };
    let listener = Listener::new(node, parameters.one("daemon"))
        .map_err(|message| ApiError::bad_request("bad_node", message))?;
    let instance = Instance::of(&headers)?;
    let tenant = caller.tenant.clone();
    // It listens before it reads, or a change in between would be nobody's.
    let now_ns = app.clock.now_ns();
    let opened = app
        .fleet
        .open(&tenant, &listener, instance.as_ref(), now_ns);
    let mut feed = opened?;
    let closing = CloseOnDrop {
        app: SharedApp::clone(&app),
        tenant: tenant.clone(),
        listener,
        number: feed.number,
    };
    let keep_alive = app.limits.fleet_keep_alive;
    off_the_reactor(move || {
        let current = read_current(&app.store, &tenant)?;
        app.fleet.publish(&tenant, &current)
    })
    .await?;
    feed.document.mark_changed();
    let mut keep_alive = interval_at(Instant::now() + keep_alive, keep_alive);
    keep_alive.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let stream = NodeStream {
        feed,
        keep_alive,
        keep_alive_line: keep_alive_line()?,
        _closing: closing,
    };
    let lines = stream::unfold(stream, |mut stream| async {
        let line = stream.next().await?;
        Some((Ok::<Bytes, Infallible>(line), stream))
    });
    let mut response = Response::new(Body::from_stream(lines));
    let headers = response.headers_mut();
    for (name, value) in [
        (CONTENT_TYPE, "application/x-ndjson"),
        (CACHE_CONTROL, "no-store"),
        (NO_BUFFERING, "no"),
    ] {
        headers.insert(name, HeaderValue::from_static(value));
    }
    Ok(response)
}

impl NodeStream {
    /// `None` when the server ends, or the node has begun another stream.
    async fn next(&mut self) -> Option<Bytes> {
        loop {
            tokio::select! {
                // The document goes first: an order may be about a daemon that is new in it.
                biased;
                changed = self.feed.document.changed() => {
                    changed.ok()?;
                    let known = self.feed.document.borrow_and_update();
                    if let Some(document) = known.as_ref() {
                        return Some(document.line.clone());
                    }
                }
                order = self.feed.orders.recv() => return order,
                _ = self.keep_alive.tick() => return Some(self.keep_alive_line.clone()),
            }
        }
    }
}

impl Drop for CloseOnDrop {
    fn drop(&mut self) {
        let now_ns = self.app.clock.now_ns();
        let fleet = &self.app.fleet;
        fleet.close(&self.tenant, &self.listener, self.number, now_ns);
    }
}
