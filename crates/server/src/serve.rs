//! Connections: accepting them and ending them.

use std::time::Duration;

use axum::Router;
use hyper_util::rt::TokioExecutor;
use hyper_util::rt::TokioIo;
use hyper_util::rt::TokioTimer;
use hyper_util::server::conn::auto::Builder;
use hyper_util::service::TowerToHyperService;
use tokio::net::TcpListener;
use tokio::net::TcpStream;
use tokio::sync::watch;
use tokio::task::JoinSet;

use crate::options::Limits;

/// Pause after a failed accept: the usual cause is a lack of file descriptors, which only the end
/// of other connections cures.
const ACCEPT_RETRY: Duration = Duration::from_millis(50);

/// Serves HTTP/1.1 and HTTP/2 without TLS on one port until `ending` becomes true. Requests in
/// flight then have the grace period to finish; what is still open after it is cut.
pub(crate) async fn serve(
    listener: TcpListener,
    router: Router,
    limits: Limits,
    mut ending: watch::Receiver<bool>,
) {
    let mut connections = JoinSet::new();
    loop {
        tokio::select! {
            accepted = listener.accept() => match accepted {
                Ok((stream, _)) => {
                    connections.spawn(connection(stream, router.clone(), limits, ending.clone()));
                }
                Err(error) => {
                    tracing::warn!("a connection could not be accepted: {error}");
                    tokio::time::sleep(ACCEPT_RETRY).await;
                }
            },
            Some(_) = connections.join_next() => {}
            () = has_ended(&mut ending) => break,
        }
    }
    drop(listener);
    let all_ended = async { while connections.join_next().await.is_some() {} };
    if tokio::time::timeout(limits.shutdown_grace, all_ended)
        .await
        .is_err()
    {
        tracing::warn!(
            "{} connections were cut: their requests took longer than {} s after the shutdown signal",
            connections.len(),
            limits.shutdown_grace.as_secs()
        );
        connections.shutdown().await;
    }
}

async fn connection(
    stream: TcpStream,
    router: Router,
    limits: Limits,
    mut ending: watch::Receiver<bool>,
) {
    // Answers are written whole; waiting for more bytes would only delay them.
    if let Err(error) = stream.set_nodelay(true) {
        tracing::debug!("no TCP_NODELAY: {error}");
    }
    let mut builder = Builder::new(TokioExecutor::new());
    builder
        .http1()
        .timer(TokioTimer::new())
        .header_read_timeout(limits.header_timeout);
    builder.http2().timer(TokioTimer::new());
    let service = TowerToHyperService::new(router);
    let connection = builder.serve_connection(TokioIo::new(stream), service);
    let mut connection = std::pin::pin!(connection);
    let result = tokio::select! {
        result = connection.as_mut() => result,
        () = has_ended(&mut ending) => {
            connection.as_mut().graceful_shutdown();
            connection.await
        }
    };
    if let Err(error) = result {
        // Clients that go away and bytes that are not HTTP: their business, not ours.
        tracing::debug!("a connection ended early: {error}");
    }
}

/// Completes once the value is true. A sender that is gone means the same.
async fn has_ended(ending: &mut watch::Receiver<bool>) {
    let _ = ending.wait_for(|is_ending| *is_ending).await;
}
