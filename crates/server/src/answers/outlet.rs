//! Where an answer is written, on a thread that may block: a short one becomes whole, a long one goes out as it is read.

use std::io;
use std::io::Write;

use axum::body::Body;
use bytes::Bytes;
use http_body::Frame;
use http_body::SizeHint;
use tokio::runtime::Handle;
use tokio::sync::OwnedSemaphorePermit;
use tokio::sync::oneshot;

use super::CHUNK;
use super::Reader;
use super::StreamShares;
use super::pipe::PipeSender;
use super::pipe::pipe;
use super::shares::Refused;
use super::shares::Share;
use crate::api_error::ApiError;
use crate::app::SharedApp;
use crate::reply::Headers;
use crate::reply::Reply;
use crate::turns::Party;
use crate::turns::Turn;

/// The length at which an answer is streamed if it can be, and after which it is looked again whether it may go on, bytes.
const STEP: usize = 1 << 20;

/// Where an answer is written.
pub(crate) struct Outlet {
    buffer: Vec<u8>,
    /// The length at which it is decided again how it goes on, as long as it is whole.
    next_decision: usize,
    state: State,
}

/// A request whose answer is still to be written.
pub(crate) struct Unanswered {
    pub(crate) app: SharedApp,
    pub(crate) party: Party,
    /// Who waits for the answer.
    pub(crate) client: oneshot::Sender<Result<Reply, ApiError>>,
    pub(crate) reader: Reader,
    /// What nobody else has while the answer is computed.
    pub(crate) turn: Turn,
    pub(crate) slot: Option<OwnedSemaphorePermit>,
}

enum State {
    Whole {
        unanswered: Box<Unanswered>,
        headers: Headers,
        source_bytes: usize,
        /// What it may take until it is decided again.
        share: Option<Share>,
    },
    Streamed {
        app: SharedApp,
        sender: PipeSender,
        source: Share,
    },
    /// The client is gone, or has an error.
    Ended,
}

impl Outlet {
    /// For an answer that is made of so many bytes.
    pub(crate) fn new(unanswered: Unanswered, headers: Headers, source_bytes: usize) -> Self {
        Self {
            buffer: Vec::new(),
            next_decision: STEP.min(unanswered.app.answers.bytes.most_of_one()),
            state: State::Whole {
                unanswered: Box::new(unanswered),
                headers,
                source_bytes,
                share: None,
            },
        }
    }

    /// Sends what is left.
    pub(crate) fn finish(mut self) {
        match self.state {
            State::Whole {
                unanswered,
                headers,
                ..
            } => {
                self.buffer.shrink_to_fit();
                let _ = unanswered
                    .client
                    .send(Ok(Reply::whole(headers, self.buffer)));
            }
            State::Streamed {
                app,
                sender,
                source,
            } => {
                let rest = Frame::data(Bytes::from(self.buffer));
                let sent = Handle::current().block_on(async {
                    sender.send(rest).await?;
                    // A client that has read the end may ask for more.
                    drop(source);
                    sender.finish().await;
                    Ok::<(), io::Error>(())
                });
                if sent.is_err() {
                    app.metrics.count_cut_answer();
                }
            }
            State::Ended => {}
        }
    }

    /// Ends an answer that could not be written.
    pub(crate) fn fail(self, error: impl std::fmt::Display) {
        match self.state {
            State::Whole { unanswered, .. } => {
                let _ = unanswered.client.send(Err(ApiError::unwritten(error)));
            }
            // Its body ends with an error, as its sender is gone before the end.
            State::Streamed { .. } => tracing::error!("an answer could not be written: {error}"),
            State::Ended => {}
        }
    }

    /// Streams the answer from here on if it can be. Else it stays whole, as long as it may: one that began to stream later
    /// would keep what it has by then.
    fn decide(&mut self) -> io::Result<()> {
        let State::Whole {
            unanswered,
            headers,
            source_bytes,
            share,
        } = std::mem::replace(&mut self.state, State::Ended)
        else {
            return Ok(());
        };
        // Nobody is left to write for.
        if unanswered.client.is_closed() {
            return Err(io::ErrorKind::BrokenPipe.into());
        }
        let (answers, party) = (&unanswered.app.answers, &unanswered.party);
        let can_stream = unanswered.reader.may_stream && answers.can_stream(source_bytes);
        let begins_to = can_stream && share.is_none();
        let shares = begins_to.then(|| answers.stream(party, source_bytes));
        let Some(shares) = shares.flatten() else {
            drop(share);
            let next = self.buffer.len() + STEP;
            let error = match answers.bytes.take(party, next) {
                Ok(share) => {
                    self.next_decision = next;
                    self.state = State::Whole {
                        unanswered,
                        headers,
                        source_bytes,
                        share: Some(share),
                    };
                    return Ok(());
                }
                Err(Refused::Always) if !can_stream => answers.too_large(),
                Err(_) => answers.busy(),
            };
            let _ = unanswered.client.send(Err(error));
            return Err(io::ErrorKind::ConnectionAborted.into());
        };
        let Unanswered {
            app,
            client,
            reader,
            turn,
            slot,
            ..
        } = *unanswered;
        let StreamShares { source, buffered } = shares;
        let timeout = app.answers.timeout;
        let length = SizeHint::default();
        let (sender, body) = pipe(timeout, reader.connection, length, Some(buffered));
        let reply = Reply::streamed(headers, Body::new(body));
        if client.send(Ok(reply)).is_err() {
            return Err(io::ErrorKind::BrokenPipe.into());
        }
        // Others do not wait for this client.
        drop((turn, slot));
        self.state = State::Streamed {
            app,
            sender,
            source,
        };
        Ok(())
    }

    /// Sends whole chunks.
    fn send_chunks(&mut self) -> io::Result<()> {
        let State::Streamed { app, sender, .. } = &self.state else {
            return Ok(());
        };
        let mut sent = 0;
        for chunk in self.buffer.chunks_exact(CHUNK) {
            // A copy: a part of the same memory would keep all of it.
            let frame = Frame::data(Bytes::copy_from_slice(chunk));
            if let Err(error) = Handle::current().block_on(sender.send(frame)) {
                app.metrics.count_cut_answer();
                self.state = State::Ended;
                return Err(error);
            }
            sent += CHUNK;
        }
        // What was whole until now takes more memory than a chunk.
        self.buffer = self.buffer.split_off(sent);
        Ok(())
    }
}

impl Write for Outlet {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        // What is written at once may be much more than what waits here.
        let bytes = &bytes[..bytes.len().min(CHUNK)];
        self.buffer.extend_from_slice(bytes);
        match self.state {
            State::Whole { .. } if self.buffer.len() > self.next_decision => {
                self.decide()?;
                self.send_chunks()?;
            }
            State::Streamed { .. } if self.buffer.len() >= CHUNK => self.send_chunks()?,
            State::Ended => return Err(io::ErrorKind::BrokenPipe.into()),
            State::Whole { .. } | State::Streamed { .. } => {}
        }
        Ok(bytes.len())
    }

    /// Chunks go out when they are full.
    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
