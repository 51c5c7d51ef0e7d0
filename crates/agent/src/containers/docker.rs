//! The Docker Engine API over its socket: `GET /containers/ID/json`. Podman answers it alike.

use std::collections::HashMap;
use std::path::Path;

use http_body_util::BodyExt;
use http_body_util::Empty;
use http_body_util::Limited;
use hyper::Request;
use hyper::StatusCode;
use hyper::body::Bytes;
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use serde::Deserialize;
use tokio::net::UnixStream;

use crate::containers::error::RuntimeError;
use crate::containers::facts::ContainerFacts;

/// The largest answer that is read, bytes; environment and mounts make up most of it.
const LARGEST_ANSWER: usize = 4 << 20;

/// `ContainerInspectResponse`, of which most is not read.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Inspected {
    id: String,
    /// Begins with a slash.
    name: String,
    #[serde(default)]
    config: Config,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "PascalCase", default)]
struct Config {
    image: Option<String>,
    labels: Option<HashMap<String, String>>,
}

/// Asks for a container by its full id; `None` when the runtime has no such one.
pub(super) async fn ask(path: &Path, id: &str) -> Result<Option<ContainerFacts>, RuntimeError> {
    let stream = UnixStream::connect(path).await;
    let stream = stream.map_err(RuntimeError::Connect)?;
    let (mut sender, connection) = http1::handshake(TokioIo::new(stream)).await?;
    // It ends with the sender, whose errors are the same.
    tokio::spawn(connection);
    let request = Request::get(format!("/containers/{id}/json"))
        .header("host", "localhost")
        .header("user-agent", concat!("candela/", env!("CARGO_PKG_VERSION")))
        .body(Empty::<Bytes>::new())
        .expect("ids are hexadecimal digits, which any path may have");
    let response = sender.send_request(request).await?;
    match response.status() {
        StatusCode::OK => {}
        StatusCode::NOT_FOUND => return Ok(None),
        status => return Err(RuntimeError::Status(status)),
    }
    let body = Limited::new(response.into_body(), LARGEST_ANSWER).collect();
    let body = body.await.map_err(|error| RuntimeError::Body {
        most: LARGEST_ANSWER,
        reason: error.to_string(),
    })?;
    facts_of(&body.to_bytes(), id)
}

fn facts_of(body: &[u8], id: &str) -> Result<Option<ContainerFacts>, RuntimeError> {
    let inspected: Inspected = serde_json::from_slice(body)?;
    // A container may be called as another one's id begins.
    if inspected.id != id {
        return Ok(None);
    }
    let name = inspected.name.trim_start_matches('/');
    let image = inspected.config.image.unwrap_or_default();
    let labels = inspected.config.labels.unwrap_or_default();
    let mut facts = ContainerFacts::new(name, &image, &labels);
    if facts.pod.is_some() {
        facts.set_app(&labels);
    }
    Ok(Some(facts))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn other_containers_and_other_answers_are_told_apart() {
        let body =
            br#"{"Id": "ab", "Name": "/db", "Config": {"Image": "postgres:16", "Labels": null}}"#;
        let facts = facts_of(body, "ab").expect("sound").expect("it");
        assert_eq!(
            (facts.name.as_str(), facts.image.as_str()),
            ("db", "postgres:16")
        );
        assert_eq!(facts_of(body, "abc").expect("sound"), None);
        for body in [&b"{}"[..], b"[]", b"", b"{\"Id\": 7}"] {
            assert!(facts_of(body, "ab").is_err());
        }
    }
}
