//! Connections: accepting a few and ending them.

use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use hyper_util::rt::TokioExecutor;
use hyper_util::rt::TokioIo;
use hyper_util::rt::TokioTimer;
use hyper_util::server::conn::auto::Builder;
use hyper_util::service::TowerToHyperService;
use tokio::net::TcpListener;
use tokio::net::TcpStream;
use tokio::sync::OwnedSemaphorePermit;
use tokio::sync::Semaphore;
use tokio::sync::watch;
use tokio::task::JoinSet;

/// One takes a profile, the others look: this is plenty, and bounds what strangers can make us hold.
const MOST_CONNECTIONS: usize = 32;

/// How long a client may take to say what it wants.
const HEADER_TIMEOUT: Duration = Duration::from_secs(10);

/// Pause after a failed accept: the usual cause is a lack of file descriptors, which only the end
/// of other connections cures.
const ACCEPT_RETRY: Duration = Duration::from_millis(50);

/// How long answers may take once the process ends.
const GRACE: Duration = Duration::from_secs(5);

/// Serves HTTP/1.1 until `ending` becomes true, and then what was asked before.
pub(crate) async fn serve(
    listener: TcpListener,
    router: Router,
    mut ending: watch::Receiver<bool>,
) {
    let room = Arc::new(Semaphore::new(MOST_CONNECTIONS));
    let mut connections = JoinSet::new();
    loop {
        tokio::select! {
            accepted = accept(&listener, &room) => match accepted {
                Ok((stream, permit)) => {
                    connections.spawn(converse(stream, router.clone(), ending.clone(), permit));
                }
                Err(error) => {
                    tracing::debug!("connections cannot be accepted: {error}");
                    tokio::time::sleep(ACCEPT_RETRY).await;
                }
            },
            Some(_) = connections.join_next() => {}
            () = has_ended(&mut ending) => break,
        }
    }
    drop(listener);
    let all_ended = async { while connections.join_next().await.is_some() {} };
    if tokio::time::timeout(GRACE, all_ended).await.is_err() {
        connections.shutdown().await;
    }
}

async fn accept(
    listener: &TcpListener,
    room: &Arc<Semaphore>,
) -> std::io::Result<(TcpStream, OwnedSemaphorePermit)> {
    let permit = Arc::clone(room).acquire_owned().await;
    let permit = permit.map_err(std::io::Error::other)?;
    let (stream, _) = listener.accept().await?;
    Ok((stream, permit))
}

async fn converse(
    stream: TcpStream,
    router: Router,
    mut ending: watch::Receiver<bool>,
    permit: OwnedSemaphorePermit,
) {
    let mut builder = Builder::new(TokioExecutor::new()).http1_only();
    builder
        .http1()
        .timer(TokioTimer::new())
        .header_read_timeout(HEADER_TIMEOUT);
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
    drop(permit);
}

/// Completes once the value is true. A sender that is gone means the same.
async fn has_ended(ending: &mut watch::Receiver<bool>) {
    let _ = ending.wait_for(|is_ending| *is_ending).await;
}
