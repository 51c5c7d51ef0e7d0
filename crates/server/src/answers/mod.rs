//! Answers until their clients have read them: what they may take of memory meanwhile, and for how long.
//!
//! A long answer is written as it is read, in chunks, and the profiles that it is made of stay in memory until its end. Other
//! answers stay in memory themselves. Either way a client that does not read must not take what others need.

mod hold;
mod outlet;
mod pipe;
mod shares;

use std::sync::Arc;
use std::time::Duration;

use axum::http::StatusCode;
use axum::http::Version;
use axum::http::request::Parts;
use candela_listen::ClientConnection;

pub(crate) use self::hold::BodyLength;
pub(crate) use self::hold::hold_answers;
pub(crate) use self::outlet::Outlet;
pub(crate) use self::outlet::Unanswered;
use self::shares::Refused;
use self::shares::Share;
use self::shares::Shares;
use crate::api_error::ApiError;
use crate::options::Limits;
use crate::turns::Party;

/// What is sent at once, bytes.
const CHUNK: usize = 32 << 10;

/// What a connection and the pipe to it buffer of an answer, bytes.
const BUFFERED: usize = 3 * CHUNK;

/// The least memory for answers, so that there is room for a long one.
const LEAST_BYTES: usize = 1 << 20;

/// The least that a streamed answer counts for, bytes: it has a thread, too.
const LEAST_SOURCE: usize = 16 << 20;

/// Memory for answers.
pub(crate) struct Answers {
    bytes: Arc<Shares>,
    /// Of what streamed answers are made of.
    sources: Arc<Shares>,
    /// How long a client may read nothing.
    timeout: Duration,
}

/// What an answer takes that is written as it is read.
struct StreamShares {
    source: Share,
    buffered: Share,
}

/// The client that an answer is for.
#[derive(Clone, Debug)]
pub(crate) struct Reader {
    /// Whether it would notice that an answer of unknown length breaks off: HTTP/1.0 ends such a one with the connection.
    may_stream: bool,
    connection: Option<ClientConnection>,
}

impl Reader {
    pub(crate) fn of(parts: &Parts) -> Self {
        Self {
            may_stream: parts.version > Version::HTTP_10,
            connection: parts.extensions.get().cloned(),
        }
    }
}

impl Answers {
    pub(crate) fn new(limits: &Limits) -> Self {
        Self {
            bytes: Shares::new(limits.answers_bytes.max(LEAST_BYTES)),
            sources: Shares::new(limits.streamed_bytes),
            timeout: limits.write_timeout,
        }
    }

    /// Memory for an answer that is whole, bytes.
    ///
    /// # Errors
    /// 422 when it is more than one may ever have, 429 `busy` when other answers have it.
    fn hold(&self, party: &Party, bytes: usize) -> Result<Share, ApiError> {
        let share = self.bytes.take(party, bytes);
        share.map_err(|refused| match refused {
            Refused::Always => self.too_large(),
            Refused::Now => self.busy(),
        })
    }

    /// Whether an answer that is made of so many bytes can be streamed, if not now.
    fn can_stream(&self, source_bytes: usize) -> bool {
        source_bytes.max(LEAST_SOURCE) <= self.sources.most_of_one()
    }

    /// What a streamed answer takes that is made of so many bytes; `None` when others have it.
    fn stream(&self, party: &Party, source_bytes: usize) -> Option<StreamShares> {
        let source_bytes = source_bytes.max(LEAST_SOURCE);
        Some(StreamShares {
            source: self.sources.take(party, source_bytes).ok()?,
            buffered: self.bytes.take(party, BUFFERED).ok()?,
        })
    }

    fn too_large(&self) -> ApiError {
        let message = "this answer takes more memory than one may have";
        ApiError::unprocessable("answer_too_large", message).hint(
            "ask for less (a shorter time range, max_nodes, limit), or over HTTP/1.1 and later (proxy_http_version of nginx), or set \
             server.answers_memory to twice as much",
        )
    }

    fn busy(&self) -> ApiError {
        let message = "answers that their clients have not read yet take the memory for this one";
        ApiError::new(StatusCode::TOO_MANY_REQUESTS, "busy", message)
            .hint("read them, or ask for less: max_nodes and limit make an answer shorter")
    }
}
