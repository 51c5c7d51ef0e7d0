//! Answers that are whole when they are sent: their memory counts until their clients have read them.

use std::io;

use axum::body::Body;
use axum::extract::Request;
use axum::extract::State;
use axum::middleware::Next;
use axum::response::IntoResponse;
use axum::response::Response;
use bytes::Buf;
use bytes::Bytes;
use candela_listen::ClientAddress;
use candela_listen::ClientConnection;
use http_body::Body as HttpBody;
use http_body::Frame;
use http_body_util::BodyExt;

use super::BUFFERED;
use super::CHUNK;
use super::pipe::PipeSender;
use super::pipe::pipe;
use super::shares::Share;
use crate::app::SharedApp;
use crate::auth::Caller;
use crate::auth::Right;
use crate::auth::network_of;
use crate::rpc;
use crate::rpc::Dialect;
use crate::turns::Party;

/// The length of a body that does not say it itself, since trailers follow: an extension of its response.
#[derive(Clone, Copy, Debug)]
pub(crate) struct BodyLength(pub(crate) usize);

/// Takes memory for an answer, and gives it back as soon as it is sent, or not read for too long.
pub(crate) async fn hold_answers(
    State((app, right)): State<(SharedApp, Right)>,
    request: Request,
    next: Next,
) -> Response {
    let Some(party) = party_of(&request) else {
        return next.run(request).await;
    };
    let dialect = Dialect::of_call(&request);
    let connection = request.extensions().get::<ClientConnection>().cloned();
    let only_reads = matches!(right, Right::Read | Right::Anyone) || request.method().is_safe();
    let response = next.run(request).await;
    let length = length_of(&response);
    // Short bodies are not counted. Streamed ones have no length that is known, and are counted where they are written.
    if length <= CHUNK {
        return response;
    }
    let share = match app.answers.hold(&party, length) {
        Ok(share) => Some(share),
        // What was done cannot be refused any more.
        Err(_) if !only_reads => None,
        Err(error) => {
            return match dialect {
                Some(dialect) => rpc::failure(dialect, &error),
                None => error.into_response(),
            };
        }
    };
    response.map(|body| in_chunks(app, connection, body, share))
}

/// Whose memory it is: of the caller, or of the address where nobody has to say who they are.
fn party_of(request: &Request) -> Option<Party> {
    let extensions = request.extensions();
    if let Some(caller) = extensions.get::<Caller>() {
        return Some(caller.asker().party());
    }
    let client = extensions.get::<ClientAddress>();
    client.map(|client| Party::Caller(network_of(client.0)))
}

fn length_of(response: &Response) -> usize {
    let stated = response.extensions().get::<BodyLength>();
    let stated = stated.map(|&BodyLength(length)| length);
    let exact = response.body().size_hint().exact();
    let exact = exact.map(|length| usize::try_from(length).unwrap_or(usize::MAX));
    stated.or(exact).unwrap_or(0)
}

/// The same body, of which the connection gets one chunk after the other. Whole, it would stay with a connection of HTTP/2 for
/// as long as its client reads nothing of it.
fn in_chunks(
    app: SharedApp,
    connection: Option<ClientConnection>,
    body: Body,
    mut share: Option<Share>,
) -> Body {
    let buffered = share.as_mut().map(|share| share.split(BUFFERED));
    let (sender, chunks) = pipe(app.answers.timeout, connection, body.size_hint(), buffered);
    tokio::spawn(async move {
        if let Err(error) = forward(body, share, &sender).await {
            tracing::debug!("an answer broke off: {error}");
            app.metrics.count_cut_answer();
            return;
        }
        sender.finish().await;
    });
    Body::new(chunks)
}

/// Sends a body, and gives its memory back before its last byte goes out: a client that has read the end may ask for more.
async fn forward(mut body: Body, mut share: Option<Share>, sender: &PipeSender) -> io::Result<()> {
    while let Some(frame) = body.frame().await {
        match frame.map_err(io::Error::other)?.into_data() {
            Ok(mut data) => {
                while !data.is_empty() {
                    // A copy: a part of the same memory would keep all of it.
                    let chunk = Bytes::copy_from_slice(&data[..CHUNK.min(data.len())]);
                    data.advance(chunk.len());
                    if data.is_empty() {
                        data = Bytes::new();
                    }
                    if data.is_empty() && body.is_end_stream() {
                        share = None;
                    }
                    sender.send(Frame::data(chunk)).await?;
                }
            }
            Err(trailers) => {
                share = None;
                sender.send(trailers).await?;
            }
        }
    }
    drop(share);
    Ok(())
}
