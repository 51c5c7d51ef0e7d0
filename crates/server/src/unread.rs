//! Requests that are answered before their body was read.
//!
//! A connection that ends while its client still writes is reset, and the client gets an error of its socket instead of the
//! answer that its body is too large, say. So what it still writes is read and dropped.

use std::pin::Pin;
use std::sync::Arc;
use std::sync::Mutex;
use std::sync::MutexGuard;
use std::sync::PoisonError;
use std::task::Context;
use std::task::Poll;
use std::task::ready;
use std::time::Duration;

use axum::body::Body;
use axum::body::Bytes;
use axum::extract::Request;
use axum::http::HeaderValue;
use axum::http::Version;
use axum::http::header::CONNECTION;
use axum::http::header::EXPECT;
use axum::middleware::Next;
use axum::response::Response;
use http_body::Body as HttpBody;
use http_body::Frame;
use http_body::SizeHint;
use http_body_util::BodyExt;

/// A rest that is not longer stands in nobody's way. After a longer one a new connection costs less.
const SHORT_REST: u64 = 64 << 10;
/// What is read of a body that nobody wants: twice as much as one may have by default.
const MOST_REST: u64 = 512 << 20;
/// How long its sender may take.
const LONGEST: Duration = Duration::from_secs(30);
/// How long nothing of it may come.
const LONGEST_PAUSE: Duration = Duration::from_secs(5);

/// A body of which something stays behind when its reader drops it.
struct Shared(Arc<Mutex<Progress>>);

struct Progress {
    body: Body,
    has_begun: bool,
    has_ended: bool,
}

/// Reads what was left of a body while its answer is sent, and says that the connection ends after a long one.
pub(crate) async fn finish_unread_bodies(request: Request, next: Next) -> Response {
    if request.body().is_end_stream() {
        return next.run(request).await;
    }
    // Streams of HTTP/2 do not stand in each other's way.
    let has_streams = request.version() > Version::HTTP_11;
    // Such a client writes nothing before it is told to, which asking for its body would do.
    let waits = !has_streams && request.headers().contains_key(EXPECT);
    let (parts, body) = request.into_parts();
    let progress = Arc::new(Mutex::new(Progress {
        body,
        has_begun: false,
        has_ended: false,
    }));
    let body = Body::new(Shared(Arc::clone(&progress)));
    let mut response = next.run(Request::from_parts(parts, body)).await;
    // Whoever still has the body reads it.
    let Some(progress) = Arc::into_inner(progress) else {
        return response;
    };
    let progress = progress
        .into_inner()
        .unwrap_or_else(PoisonError::into_inner);
    if progress.has_ended {
        return response;
    }
    let rest = progress.body.size_hint();
    if !has_streams && rest.upper().is_none_or(|rest| rest > SHORT_REST) {
        let close = HeaderValue::from_static("close");
        response.headers_mut().insert(CONNECTION, close);
    }
    if rest.lower() <= MOST_REST && (progress.has_begun || !waits) {
        tokio::spawn(tokio::time::timeout(LONGEST, drain(progress.body)));
    }
    response
}

async fn drain(mut body: Body) {
    let mut room = MOST_REST;
    while let Ok(Some(Ok(frame))) = tokio::time::timeout(LONGEST_PAUSE, body.frame()).await {
        let length = frame.data_ref().map_or(0, Bytes::len) as u64;
        let Some(left) = room.checked_sub(length) else {
            return;
        };
        room = left;
    }
}

impl Shared {
    fn progress(&self) -> MutexGuard<'_, Progress> {
        // No one panics while it is locked but the body itself.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl HttpBody for Shared {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        let mut progress = self.progress();
        progress.has_begun = true;
        let frame = ready!(Pin::new(&mut progress.body).poll_frame(context));
        // Readers that know the length do not ask for more than it.
        progress.has_ended = frame.is_none() || progress.body.is_end_stream();
        Poll::Ready(frame)
    }

    fn is_end_stream(&self) -> bool {
        self.progress().body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.progress().body.size_hint()
    }
}

#[cfg(test)]
mod tests {
    use axum::Router;
    use axum::middleware::from_fn;
    use axum::routing::post;
    use tower::ServiceExt;

    use super::*;

    #[test]
    fn connections_end_with_long_bodies_that_nobody_read() {
        let router = Router::new()
            .route("/read", post(async |_: Bytes| ()))
            .route("/unread", post(async || ()))
            .layer(from_fn(finish_unread_bodies));
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_time()
            .build()
            .expect("a runtime");
        let closes = |path: &str, body: Body, version: Version| {
            let request = Request::post(path).version(version).body(body);
            let answer = router.clone().oneshot(request.expect("a request"));
            let answer = runtime.block_on(answer).expect("an answer");
            answer.headers().contains_key(CONNECTION)
        };
        let long = || Body::from(vec![0; 100_000]);
        assert!(closes("/unread", long(), Version::HTTP_11));
        assert!(closes("/elsewhere", long(), Version::HTTP_11));
        assert!(!closes("/read", long(), Version::HTTP_11));
        assert!(!closes("/unread", long(), Version::HTTP_2));
        assert!(!closes("/unread", Body::from("short"), Version::HTTP_11));
        assert!(!closes("/unread", Body::empty(), Version::HTTP_11));
        let broken = futures::stream::iter([Err::<Bytes, _>(std::io::Error::other("gone"))]);
        let broken = Body::from_stream(broken);
        assert!(closes("/unread", broken, Version::HTTP_11));
    }
}
