//! Why a runtime has not told of a container.

use std::error::Error;
use std::io;
use std::time::Duration;

/// A runtime that is there and has not answered.
#[derive(Debug, thiserror::Error)]
pub(super) enum RuntimeError {
    #[error(
        "cannot connect to it: {0}; let the agent open the socket, or leave it out of agent.container_sockets"
    )]
    Connect(#[source] io::Error),
    #[error("no answer within {0:?}; whether the runtime is busy its own tools tell")]
    Late(Duration),
    #[error("it does not speak HTTP: {0}; name a socket of another protocol cri:PATH")]
    Http(#[from] hyper::Error),
    #[error("it answers with {0}")]
    Status(hyper::StatusCode),
    #[error("its answer has more than {most} bytes, or breaks off: {reason}")]
    Body { most: usize, reason: String },
    #[error("its answer is no description of a container: {0}")]
    Json(#[from] serde_json::Error),
    #[error("cannot connect to it: {}; name a socket of another protocol docker:PATH", innermost(.0))]
    Channel(#[from] tonic::transport::Error),
    #[error("it refuses: {0}")]
    Refused(Box<tonic::Status>),
}

/// What tonic's own words, "transport error", are about.
fn innermost(error: &tonic::transport::Error) -> String {
    let mut innermost: &dyn Error = error;
    while let Some(source) = innermost.source() {
        innermost = source;
    }
    innermost.to_string()
}
