//! A body in chunks, from who makes it to the connection.

use std::io;
use std::pin::Pin;
use std::task::Context;
use std::task::Poll;
use std::task::ready;
use std::time::Duration;

use bytes::Buf;
use bytes::Bytes;
use candela_listen::ClientConnection;
use http_body::Body as HttpBody;
use http_body::Frame;
use http_body::SizeHint;
use tokio::sync::mpsc;
use tokio::sync::mpsc::error::SendTimeoutError;

use super::shares::Share;

/// Chunks that wait for the connection.
const WAITING: usize = 1;

/// Where chunks go in.
pub(super) struct PipeSender {
    pieces: mpsc::Sender<Piece>,
    timeout: Duration,
    connection: Option<ClientConnection>,
}

/// Where they come out: the body of an answer. It fails when its sender is gone before the end.
pub(super) struct PipeBody {
    pieces: mpsc::Receiver<Piece>,
    length: SizeHint,
    has_ended: bool,
    /// The memory of the chunks that the connection buffers.
    _share: Option<Share>,
}

enum Piece {
    Frame(Frame<Bytes>),
    End,
}

/// A pipe to a connection, and what is known of the length of what goes through it. When nothing of it is read for as long as
/// the timeout, sending fails and the connection is closed: it would keep what it has of a body, and over HTTP/2 not ask for
/// more of it, so that it would not learn either that the body has failed.
pub(super) fn pipe(
    timeout: Duration,
    connection: Option<ClientConnection>,
    length: SizeHint,
    share: Option<Share>,
) -> (PipeSender, PipeBody) {
    let (sender, receiver) = mpsc::channel(WAITING);
    let body = PipeBody {
        pieces: receiver,
        length,
        has_ended: false,
        _share: share,
    };
    let sender = PipeSender {
        pieces: sender,
        timeout,
        connection,
    };
    (sender, body)
}

impl PipeSender {
    pub(super) async fn send(&self, frame: Frame<Bytes>) -> io::Result<()> {
        self.put(Piece::Frame(frame)).await
    }

    /// Says that this is all. A connection that knows the length does not wait for it.
    pub(super) async fn finish(self) {
        let _ = self.put(Piece::End).await;
    }

    async fn put(&self, piece: Piece) -> io::Result<()> {
        match self.pieces.send_timeout(piece, self.timeout).await {
            Ok(()) => Ok(()),
            Err(SendTimeoutError::Timeout(_)) => {
                if let Some(connection) = &self.connection {
                    connection.close();
                }
                Err(io::ErrorKind::TimedOut.into())
            }
            Err(SendTimeoutError::Closed(_)) => Err(io::ErrorKind::BrokenPipe.into()),
        }
    }
}

impl HttpBody for PipeBody {
    type Data = Bytes;
    type Error = io::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<io::Result<Frame<Bytes>>>> {
        if self.has_ended {
            return Poll::Ready(None);
        }
        match ready!(self.pieces.poll_recv(context)) {
            Some(Piece::Frame(frame)) => {
                let length = frame.data_ref().map_or(0, Buf::remaining) as u64;
                if let Some(rest) = self.length.exact() {
                    self.length = SizeHint::with_exact(rest.saturating_sub(length));
                }
                Poll::Ready(Some(Ok(frame)))
            }
            Some(Piece::End) => {
                self.has_ended = true;
                Poll::Ready(None)
            }
            None => {
                self.has_ended = true;
                let error = io::Error::new(io::ErrorKind::UnexpectedEof, "the answer was cut");
                Poll::Ready(Some(Err(error)))
            }
        }
    }

    fn is_end_stream(&self) -> bool {
        self.has_ended || self.length.exact() == Some(0)
    }

    fn size_hint(&self) -> SizeHint {
        self.length
    }
}
