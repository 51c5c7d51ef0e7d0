//! Connections: accepting them and ending them.

use std::io;
use std::io::Cursor;
use std::net::IpAddr;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::http::Request;
use hyper::body::Incoming;
use hyper_util::rt::TokioExecutor;
use hyper_util::rt::TokioIo;
use hyper_util::rt::TokioTimer;
use hyper_util::server::conn::auto::Builder;
use hyper_util::service::TowerToHyperService;
use socket2::SockRef;
use tokio::io::AsyncRead;
use tokio::io::AsyncReadExt;
use tokio::io::AsyncWrite;
use tokio::net::TcpListener;
use tokio::net::TcpStream;
use tokio::sync::Notify;
use tokio::sync::OwnedSemaphorePermit;
use tokio::sync::Semaphore;
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::Instant;
use tokio_rustls::TlsAcceptor;
use tower::ServiceExt;

use crate::write_timeout::WriteTimeout;

/// Pause after a failed accept: the usual cause is a lack of file descriptors, which only the end
/// of other connections cures.
const ACCEPT_RETRY: Duration = Duration::from_millis(50);

/// How often a client of HTTP/2 is asked whether it is still there, and how long it may take to say
/// so: connections of clients that vanished would stay for ever.
const KEEP_ALIVE_INTERVAL: Duration = Duration::from_secs(30);
const KEEP_ALIVE_TIMEOUT: Duration = Duration::from_secs(20);

/// Bytes that may wait in a socket to be sent. By default it is megabytes, and the socket takes more only when a third of them
/// is gone: a client on a slow line then looks like one that reads nothing.
const MOST_UNSENT: u32 = 32 << 10;

/// Bytes of an answer that hyper keeps for its socket, and of a request's head.
const MOST_BUFFERED: usize = 64 << 10;

/// How many requests a connection of HTTP/2 may have at a time, and what it buffers of each answer, bytes.
const MOST_STREAMS: u32 = 100;
const MOST_UNSENT_OF_STREAM: usize = 32 << 10;

/// At most so often a failed accept is logged: without file descriptors each one fails.
const LOG_INTERVAL: Duration = Duration::from_secs(1);

/// What a connection of HTTP/2 starts with (RFC 9113, 3.4).
const HTTP2_PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

/// What connections may take.
#[derive(Clone, Copy, Debug)]
pub struct ConnectionLimits {
    /// Connections at a time; others wait in the kernel's queue. None is as many as the system has
    /// file descriptors.
    pub most: Option<usize>,
    /// How long a client may take to send its headers, and may keep a connection without a request.
    pub header_timeout: Duration,
    /// How long sending to a client may make no progress before its connection is closed.
    pub write_timeout: Duration,
    /// How long requests in flight may go on once the port is to end.
    pub grace: Duration,
    /// Whether HTTP/2 is spoken beside HTTP/1.1. Its idle connections stay as long as their clients answer,
    /// so that a few clients could take all the room of a port that has little.
    pub http2: bool,
}

/// Where a request comes from: an extension of each.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ClientAddress(pub IpAddr);

/// The connection that a request came by: an extension of each.
#[derive(Clone, Debug, Default)]
pub struct ClientConnection {
    closing: Arc<Notify>,
}

/// Lets through one message an interval.
#[derive(Debug, Default)]
struct LogGate {
    last: Option<Instant>,
}

/// Serves HTTP/1.1, and HTTP/2 where the limits have it, on one port, over TLS if there is an acceptor
/// for it, until `ending` becomes true. Requests in flight then have the grace period to finish; what
/// is still open after it is cut.
pub async fn serve(
    listener: TcpListener,
    tls: Option<TlsAcceptor>,
    router: Router,
    limits: ConnectionLimits,
    mut ending: watch::Receiver<bool>,
) {
    let room = limits.most.map(|most| Arc::new(Semaphore::new(most)));
    let mut connections = JoinSet::new();
    let mut log_gate = LogGate::default();
    loop {
        tokio::select! {
            accepted = accept(&listener, room.as_ref()) => match accepted {
                Ok((stream, address, permit)) => {
                    let client = ClientAddress(address.ip().to_canonical());
                    let router = router.clone();
                    let connection =
                        connection(stream, client, tls.clone(), router, limits, ending.clone());
                    connections.spawn(async move {
                        connection.await;
                        drop(permit);
                    });
                }
                Err(error) => {
                    if log_gate.is_open(Instant::now()) {
                        tracing::warn!("connections cannot be accepted: {error}");
                    }
                    tokio::time::sleep(ACCEPT_RETRY).await;
                }
            },
            Some(_) = connections.join_next() => {}
            () = has_ended(&mut ending) => break,
        }
    }
    drop(listener);
    let all_ended = async { while connections.join_next().await.is_some() {} };
    if tokio::time::timeout(limits.grace, all_ended).await.is_err() {
        tracing::warn!(
            "{} connections were cut: their requests took longer than {} s after the shutdown signal",
            connections.len(),
            limits.grace.as_secs()
        );
        connections.shutdown().await;
    }
}

/// The next connection, once there is room for it.
async fn accept(
    listener: &TcpListener,
    room: Option<&Arc<Semaphore>>,
) -> io::Result<(TcpStream, SocketAddr, Option<OwnedSemaphorePermit>)> {
    let permit = match room {
        Some(room) => Some(
            Arc::clone(room)
                .acquire_owned()
                .await
                .map_err(io::Error::other)?,
        ),
        None => None,
    };
    let (stream, address) = listener.accept().await?;
    Ok((stream, address, permit))
}

async fn connection(
    stream: TcpStream,
    client: ClientAddress,
    tls: Option<TlsAcceptor>,
    router: Router,
    limits: ConnectionLimits,
    mut ending: watch::Receiver<bool>,
) {
    // Answers are written in large parts; waiting for more bytes would only delay them.
    if let Err(error) = stream.set_nodelay(true) {
        tracing::debug!("no TCP_NODELAY: {error}");
    }
    if let Err(error) = SockRef::from(&stream).set_tcp_notsent_lowat(MOST_UNSENT) {
        tracing::debug!("no TCP_NOTSENT_LOWAT: {error}");
    }
    let Some(tls) = tls else {
        let (reader, writer) = stream.into_split();
        return converse(reader, writer, client, router, limits, ending).await;
    };
    let accepted = tokio::select! {
        accepted = tokio::time::timeout(limits.header_timeout, tls.accept(stream)) => accepted,
        () = has_ended(&mut ending) => return,
    };
    match accepted {
        Ok(Ok(stream)) => {
            let (reader, writer) = tokio::io::split(stream);
            converse(reader, writer, client, router, limits, ending).await;
        }
        // Clients that do not trust us, or speak plain HTTP: their log says what is wrong.
        Ok(Err(error)) => tracing::debug!("a connection without TLS was closed: {error}"),
        Err(_) => tracing::debug!("a connection without a handshake was closed"),
    }
}

async fn converse<R, W>(
    mut reader: R,
    writer: W,
    client: ClientAddress,
    router: Router,
    limits: ConnectionLimits,
    mut ending: watch::Receiver<bool>,
) where
    R: AsyncRead + Send + Unpin + 'static,
    W: AsyncWrite + Send + Unpin + 'static,
{
    let opening = tokio::select! {
        opening = tokio::time::timeout(limits.header_timeout, read_opening(&mut reader)) => opening,
        () = has_ended(&mut ending) => return,
    };
    let Ok(Ok(opening)) = opening else {
        tracing::debug!("a connection without a request was closed");
        return;
    };
    let mut builder = Builder::new(TokioExecutor::new());
    builder
        .http1()
        .timer(TokioTimer::new())
        .max_buf_size(MOST_BUFFERED)
        .header_read_timeout(limits.header_timeout);
    builder
        .http2()
        .timer(TokioTimer::new())
        .max_concurrent_streams(MOST_STREAMS)
        .max_header_list_size(MOST_BUFFERED as u32)
        .max_send_buf_size(MOST_UNSENT_OF_STREAM)
        .keep_alive_interval(KEEP_ALIVE_INTERVAL)
        .keep_alive_timeout(KEEP_ALIVE_TIMEOUT);
    let builder = match limits.http2 {
        true => builder,
        false => builder.http1_only(),
    };
    let by = ClientConnection::default();
    let closing = Arc::clone(&by.closing);
    let service = router.map_request(move |mut request: Request<Incoming>| {
        request.extensions_mut().insert(client);
        request.extensions_mut().insert(by.clone());
        request
    });
    let service = TowerToHyperService::new(service);
    let writer = WriteTimeout::new(writer, limits.write_timeout);
    let whole = tokio::io::join(Cursor::new(opening).chain(reader), writer);
    let connection = builder.serve_connection(TokioIo::new(whole), service);
    let mut connection = std::pin::pin!(connection);
    let result = tokio::select! {
        result = connection.as_mut() => result,
        () = closing.notified() => return,
        () = has_ended(&mut ending) => {
            connection.as_mut().graceful_shutdown();
            tokio::select! {
                result = connection => result,
                () = closing.notified() => return,
            }
        }
    };
    if let Err(error) = result {
        // Clients that go away and bytes that are not HTTP: their business, not ours.
        tracing::debug!("a connection ended early: {error}");
    }
}

/// The first bytes of a connection: as many as tell its protocol, which hyper would await for ever.
async fn read_opening(stream: &mut (impl AsyncRead + Unpin)) -> io::Result<Vec<u8>> {
    let mut opening = Vec::with_capacity(HTTP2_PREFACE.len());
    while opening.len() < HTTP2_PREFACE.len() && HTTP2_PREFACE.starts_with(&opening) {
        let missing = (HTTP2_PREFACE.len() - opening.len()) as u64;
        if stream.take(missing).read_buf(&mut opening).await? == 0 {
            break;
        }
    }
    Ok(opening)
}

/// Completes once the value is true. A sender that is gone means the same.
async fn has_ended(ending: &mut watch::Receiver<bool>) {
    let _ = ending.wait_for(|is_ending| *is_ending).await;
}

impl ClientConnection {
    /// Closes it at once, with everything that is under way.
    pub fn close(&self) {
        self.closing.notify_one();
    }
}

impl LogGate {
    fn is_open(&mut self, now: Instant) -> bool {
        let is_open = self
            .last
            .is_none_or(|last| now.duration_since(last) >= LOG_INTERVAL);
        if is_open {
            self.last = Some(now);
        }
        is_open
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_message_an_interval_passes() {
        let mut gate = LogGate::default();
        let start = Instant::now();
        let passed = [0, 50, 999, 1000, 1050, 2500].map(|ms| {
            let now = start + Duration::from_millis(ms);
            gate.is_open(now)
        });
        assert_eq!(passed, [true, false, false, true, false, true]);
    }
}
