//! One call: its body read and bounded, its message decoded, its answer written.

use axum::body::Body;
use axum::extract::FromRequest;
use axum::extract::FromRequestParts;
use axum::extract::Request;
use axum::http::HeaderMap;
use axum::http::StatusCode;
use axum::http::Uri;
use axum::http::header::ACCEPT;
use axum::response::IntoResponse;
use axum::response::Response;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use candela_formats::MessageTexts;
use candela_formats::Report;
use candela_formats::decode_repaired;
use candela_formats::repaired_json;
use candela_query::Cancellation;
use prost::DecodeError;
use prost::Message;
use serde::Serialize;
use serde::de::DeserializeOwned;
use tokio::sync::OwnedSemaphorePermit;

use crate::api_error::ApiError;
use crate::app::App;
use crate::app::SharedApp;
use crate::app::compute;
use crate::auth::Caller;
use crate::ingest::body::BodyBounds;
use crate::ingest::body::BodyReader;
use crate::ingest::body::SentBody;
use crate::ingest::body::in_time;
use crate::ingest::body::read_body;
use crate::ingest::room::reserve;
use crate::reply::AcceptsGzip;
use crate::rpc::answer::Answer;
use crate::rpc::answer::Encoded;
use crate::rpc::answer::failure;
use crate::rpc::deadline::Deadline;
use crate::rpc::dialect::Codec;
use crate::rpc::dialect::Dialect;
use crate::rpc::frame::FRAME_HEAD;
use crate::rpc::frame::GRPC_ACCEPT_ENCODING;
use crate::rpc::frame::frame_head;
use crate::rpc::frame::framed_message;
use crate::rpc::frame::message_encoding;
use crate::rpc::message_size::MessageParts;
use crate::turns::Lane;

/// A message that calls read.
pub(crate) trait CallMessage:
    Message + Default + Serialize + DeserializeOwned + 'static
{
}

impl<M: Message + Default + Serialize + DeserializeOwned + 'static> CallMessage for M {}

/// A call whose body is not read yet.
pub(crate) struct Call {
    pub(crate) app: SharedApp,
    pub(crate) caller: Caller,
    pub(crate) dialect: Dialect,
    /// When its client stops waiting. Whoever answers by other means than [`Call::answer`] keeps to
    /// it, up to where what is done cannot be undone.
    pub(crate) deadline: Deadline,
    accepts: AcceptsGzip,
    pub(crate) headers: HeaderMap,
    body: Body,
}

/// The message of a call as it was sent, and the room it takes.
pub(crate) struct Sent {
    pub(crate) body: SentBody,
    pub(crate) codec: Codec,
    _room: OwnedSemaphorePermit,
}

impl Call {
    /// Answers a question: the work is done off the reactor, and ends early when the client goes
    /// away or its time is over, which cancels what it was given for that.
    pub(crate) async fn answer<Q, A, W>(self, lane: Lane, work: W) -> Response
    where
        Q: CallMessage,
        A: Answer + 'static,
        W: FnOnce(&App, &Caller, Q, Cancellation) -> Result<A, ApiError> + Send + 'static,
    {
        self.answer_within(BodyBounds::question(), lane, work).await
    }

    /// The same for a question that comes with data.
    pub(crate) async fn answer_within<Q, A, W>(
        mut self,
        bounds: BodyBounds,
        lane: Lane,
        work: W,
    ) -> Response
    where
        Q: CallMessage,
        A: Answer + 'static,
        W: FnOnce(&App, &Caller, Q, Cancellation) -> Result<A, ApiError> + Send + 'static,
    {
        let (dialect, accepts, deadline) = (self.dialect, self.accepts, self.deadline);
        let answered = deadline.bound(async move {
            let sent = self.read(bounds).await?;
            let cancellation = Cancellation::default();
            let _waiting = cancellation.on_drop();
            let caller = self.caller.clone();
            let answered = compute(&self.app, &self.caller, lane, move |app| {
                let question = sent.message::<Q>(bounds)?;
                let answer = work(app, &caller, question, cancellation)?;
                Encoded::new(dialect, accepts, &answer)
            });
            answered.await
        });
        match answered.await {
            Ok(encoded) => encoded.into_response(),
            Err(error) => failure(dialect, &error),
        }
    }

    /// Whether the client accepts something by name, as one element of a list or a parameter of one.
    pub(crate) fn accepts(&self, name: &str) -> bool {
        let values = self.headers.get_all(ACCEPT).iter();
        values
            .filter_map(|value| value.to_str().ok())
            .flat_map(|value| value.split([',', ';']))
            .any(|part| part.trim() == name)
    }

    /// Reads the body; `Call` keeps the rest.
    ///
    /// # Errors
    /// As the readers of bodies.
    pub(crate) async fn read(&mut self, bounds: BodyBounds) -> Result<Sent, ApiError> {
        let body = std::mem::take(&mut self.body);
        if !self.dialect.is_framed() {
            let room = reserve(&self.app, bounds, &self.headers).await?;
            let body = read_body(&self.app.limits, bounds, &self.headers, body).await?;
            return Ok(Sent {
                body,
                codec: self.dialect.codec(),
                _room: room,
            });
        }
        let encoding = message_encoding(&self.headers)?;
        let mut reader = BodyReader::new(bounds, &self.headers, body)?;
        let limits = &self.app.limits;
        // Clients of gRPC do not announce the length of their body: its first bytes do. Text has
        // them in base64, a third longer.
        let is_text = self.dialect == Dialect::GrpcWebText;
        let start_length = if is_text {
            FRAME_HEAD.div_ceil(3) * 4
        } else {
            FRAME_HEAD
        };
        let start = in_time(limits, reader.start(start_length)).await?;
        let start = if is_text {
            // More may have come than the head, and base64 is read in groups of four.
            from_text(&start[..start_length.min(start.len())])?
        } else {
            start.to_vec()
        };
        let (encoding, length) = frame_head(&start, encoding)?;
        let room = self
            .app
            .room
            .reserve(limits, bounds, encoding, Some(length));
        let room = room.await?;
        let whole = if is_text {
            (FRAME_HEAD + length).div_ceil(3) * 4
        } else {
            FRAME_HEAD + length
        };
        let bytes = in_time(limits, reader.read_to_end_or_beyond(whole)).await?;
        let bytes = if is_text {
            from_text(&bytes)?.into()
        } else {
            bytes
        };
        Ok(Sent {
            body: framed_message(bytes, encoding)?,
            codec: self.dialect.codec(),
            _room: room,
        })
    }

    /// The answer to a call that was read and done.
    pub(crate) fn reply(&self, result: Result<impl Answer, ApiError>) -> Response {
        let encoded = result.and_then(|answer| Encoded::new(self.dialect, self.accepts, &answer));
        match encoded {
            Ok(encoded) => encoded.into_response(),
            Err(error) => failure(self.dialect, &error),
        }
    }
}

impl Sent {
    /// The message.
    ///
    /// # Errors
    /// 400 when it is none of this type.
    pub(crate) fn message<M: CallMessage>(self, bounds: BodyBounds) -> Result<M, ApiError> {
        let bytes = self.body.decoded(bounds)?;
        match self.codec {
            Codec::Protobuf => M::decode(bytes).map_err(|error| bad_protobuf(&error)),
            Codec::Json => serde_json::from_slice(&bytes).map_err(|error| bad_json(&error)),
        }
    }

    /// The message of a call that brings data, when it has no more parts than `check` lets pass. Its `texts` that are not
    /// UTF-8 are repaired and noted: nobody who can read the error could mend them.
    ///
    /// # Errors
    /// That of `check`, too.
    pub(crate) fn pushed_message<M: CallMessage>(
        self,
        bounds: BodyBounds,
        texts: &MessageTexts,
        report: &mut Report,
        check: impl FnOnce(MessageParts) -> Result<(), ApiError>,
    ) -> Result<M, ApiError> {
        let bytes = self.body.decoded(bounds)?;
        check(MessageParts::of(&bytes, self.codec))?;
        match self.codec {
            Codec::Protobuf => {
                decode_repaired(&bytes, texts, report).map_err(|error| bad_protobuf(&error))
            }
            Codec::Json => {
                let text = repaired_json(&bytes, report);
                serde_json::from_str(&text).map_err(|error| bad_json(&error))
            }
        }
    }
}

fn bad_protobuf(error: &DecodeError) -> ApiError {
    ApiError::bad_request("bad_message", format!("the message is broken: {error}"))
}

fn bad_json(error: &serde_json::Error) -> ApiError {
    ApiError::bad_request("bad_message", format!("the JSON is no request: {error}"))
}

impl FromRequest<SharedApp> for Call {
    type Rejection = Response;

    async fn from_request(request: Request, app: &SharedApp) -> Result<Self, Response> {
        let (mut parts, body) = request.into_parts();
        let dialect = Dialect::of(&parts.headers).map_err(ApiError::into_response)?;
        let caller = Caller::from_request_parts(&mut parts, app).await;
        let caller = caller.map_err(ApiError::into_response)?;
        let accepts = if dialect.is_framed() {
            let value = parts.headers.get(GRPC_ACCEPT_ENCODING);
            let value = value.and_then(|value| value.to_str().ok()).unwrap_or("");
            AcceptsGzip(value.split(',').any(|name| name.trim() == "gzip"))
        } else {
            AcceptsGzip::of(&parts.headers)
        };
        let deadline = match Deadline::of(dialect, &parts.headers) {
            Ok(deadline) => deadline,
            Err(error) => return Err(failure(dialect, &error)),
        };
        Ok(Self {
            app: SharedApp::clone(app),
            caller,
            dialect,
            deadline,
            accepts,
            headers: parts.headers,
            body,
        })
    }
}

/// What is not part of this server, said in the dialect of the client.
pub(crate) async fn unimplemented(uri: Uri, headers: HeaderMap) -> Response {
    let message = format!("{} is not part of this server", uri.path());
    unimplemented_because(&headers, message)
}

/// The same with a reason.
pub(crate) fn unimplemented_because(headers: &HeaderMap, message: String) -> Response {
    let error = ApiError::new(StatusCode::NOT_IMPLEMENTED, "not_implemented", message);
    match Dialect::of(headers) {
        Ok(dialect) => failure(dialect, &error),
        Err(error) => error.into_response(),
    }
}

fn from_text(text: &[u8]) -> Result<Vec<u8>, ApiError> {
    STANDARD.decode(text).map_err(|error| {
        ApiError::bad_request("broken_body", format!("the body is no base64: {error}"))
    })
}
