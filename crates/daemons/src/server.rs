//! A client of the server: the stream of documents, and reports.

use std::fmt;
use std::io;
use std::io::BufRead;
use std::io::BufReader;
use std::io::Read;
use std::time::Duration;
use std::time::Instant;

use candela_fleet::FleetDocument;
use candela_fleet::Json;
use candela_fleet::MOST_DOCUMENT_BYTES;
use serde::Deserialize;
use ureq::BodyReader;
use ureq::tls::RootCerts;
use ureq::tls::TlsConfig;

use crate::error::ServerError;
use crate::stop::Stop;
use crate::store::ProfileSink;
use crate::supervisor::DocumentSource;
use crate::supervisor::NodeReport;
use crate::supervisor::ReportSink;
use crate::supervisor::SourceEvent;

const STREAM: &str = "/api/v1/fleet/stream";
const REPORT: &str = "/api/v1/fleet/report";
const INGEST: &str = "/api/v1/ingest";

/// A server that is there says so more often than this. A connection that died without a word is noticed by it.
const LONGEST_SILENCE: Duration = Duration::from_secs(75);
/// A stream that was this long was none of a server that sends everybody away.
const LONG_ENOUGH: Duration = Duration::from_secs(5);
/// One report with its answer.
const REPORT_TIMEOUT: Duration = Duration::from_secs(20);
/// One profile with its answer.
const STORE_TIMEOUT: Duration = Duration::from_secs(120);
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);

/// A document and what is around it.
const MOST_LINE_BYTES: u64 = MOST_DOCUMENT_BYTES as u64 + 4096;
/// The code of an answer to one of two agents of one name.
const NAME_TAKEN: &str = "name_taken";
/// Bytes of an error's text that are read.
const ERROR_BYTES: u64 = 4096;
/// Characters of one that is none of ours.
const TOLD_CHARACTERS: usize = 300;

/// Why the server refuses, as its API says it.
#[derive(Deserialize)]
struct Refusal {
    code: String,
    message: String,
    #[serde(default)]
    hint: String,
}

/// Which server, and who we are to it.
#[derive(Clone)]
pub struct ServerOptions {
    /// `http://HOST:PORT` or `https://HOST:PORT`, without credentials: it is told.
    pub url: String,
    /// The header `Authorization`.
    pub authorization: Option<String>,
    /// The header `X-Scope-OrgID`.
    pub tenant: Option<String>,
    /// The name of this node.
    pub node: String,
    /// The one daemon that this agent is, where each has an agent of its own.
    pub daemon: Option<String>,
    /// What no other agent says, so that the server notices when two have one name.
    pub instance: Option<String>,
}

/// Asks a server.
#[derive(Clone)]
struct Client {
    agent: ureq::Agent,
    options: ServerOptions,
}

/// The stream of documents. Each connection begins with the document that holds.
pub struct FleetStream {
    client: Client,
    lines: Option<Lines>,
    long_enough: Duration,
}

/// Stores profiles.
#[derive(Debug)]
pub struct FleetProfiles {
    client: Client,
}

/// Hands reports over.
#[derive(Debug)]
pub struct FleetReports {
    client: Client,
}

struct Lines {
    reader: BufReader<BodyReader<'static>>,
    began: Instant,
}

/// One line, of any kind.
#[derive(Deserialize)]
struct Line {
    kind: String,
    version: Option<u64>,
    document: Option<Json>,
    id: Option<String>,
    trigger_name: Option<String>,
}

impl fmt::Debug for ServerOptions {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let authorization = self.authorization.as_ref().map(|_| "***");
        formatter
            .debug_struct("ServerOptions")
            .field("url", &self.url)
            .field("authorization", &authorization)
            .field("tenant", &self.tenant)
            .field("node", &self.node)
            .field("daemon", &self.daemon)
            .field("instance", &self.instance)
            .finish()
    }
}

impl Client {
    fn new(options: &ServerOptions) -> Result<Self, ServerError> {
        let is_url = ["http://", "https://"].iter().any(|scheme| {
            options
                .url
                .strip_prefix(scheme)
                .is_some_and(|host| !host.is_empty())
        });
        if !is_url {
            return Err(ServerError::Address {
                url: options.url.clone(),
                reason: "it has no scheme or no host".to_owned(),
            });
        }
        let roots = RootCerts::PlatformVerifier;
        let config = ureq::Agent::config_builder()
            .tls_config(TlsConfig::builder().root_certs(roots).build())
            .http_status_as_error(false)
            .timeout_connect(Some(CONNECT_TIMEOUT))
            .timeout_per_read(Some(LONGEST_SILENCE))
            .user_agent(concat!("candela/", env!("CARGO_PKG_VERSION")))
            .build();
        Ok(Self {
            agent: config.into(),
            options: ServerOptions {
                url: options.url.trim_end_matches('/').to_owned(),
                ..options.clone()
            },
        })
    }

    fn url(&self, path: &str) -> String {
        format!("{}{path}", self.options.url)
    }

    fn headers<Body>(&self, mut request: ureq::RequestBuilder<Body>) -> ureq::RequestBuilder<Body> {
        if let Some(authorization) = &self.options.authorization {
            request = request.header("authorization", authorization);
        }
        if let Some(tenant) = &self.options.tenant {
            request = request.header("x-scope-orgid", tenant);
        }
        if let Some(instance) = &self.options.instance {
            request = request.header("x-candela-instance", instance);
        }
        request
    }

    fn away(&self, path: &str, error: &dyn fmt::Display) -> ServerError {
        ServerError::Away {
            url: self.url(path),
            reason: error.to_string(),
        }
    }

    /// Sends a body, whose answer says nothing that is not known.
    fn post(
        &self,
        path: &str,
        content_type: &str,
        body: &[u8],
        timeout: Duration,
    ) -> Result<(), ServerError> {
        let request = self.headers(self.agent.post(self.url(path)));
        let request = request.header("content-type", content_type);
        let request = request.config().timeout_global(Some(timeout)).build();
        let answer = self.body(path, request.send(body))?;
        // So that the connection is used again.
        let drained = io::copy(&mut answer.take(ERROR_BYTES), &mut io::sink());
        drained.map(drop).map_err(|error| self.away(path, &error))
    }

    /// The body of an answer that is none of an error.
    fn body(
        &self,
        path: &str,
        answer: Result<ureq::http::Response<ureq::Body>, ureq::Error>,
    ) -> Result<BodyReader<'static>, ServerError> {
        let answer = answer.map_err(|error| self.away(path, &error))?;
        let status = answer.status();
        let reader = answer.into_body().into_reader();
        if status.is_success() {
            return Ok(reader);
        }
        let mut text = Vec::new();
        // What can be had of it; the status is what counts.
        let _ = reader.take(ERROR_BYTES).read_to_end(&mut text);
        let url = self.url(path);
        let refusal: Option<Refusal> = serde_json::from_slice(&text).ok();
        let is_taken = refusal.as_ref().is_some_and(|it| it.code == NAME_TAKEN);
        let reason = refusal.map_or_else(|| first_words(&text), |refusal| refusal.to_string());
        if is_taken {
            return Err(ServerError::NameTaken { url, reason });
        }
        Err(ServerError::Refused {
            url,
            status: status.as_u16(),
            reason,
        })
    }
}

/// One line of an answer of somebody between us and the server.
fn first_words(text: &[u8]) -> String {
    let text = String::from_utf8_lossy(text);
    let words: Vec<&str> = text.split_whitespace().collect();
    words.join(" ").chars().take(TOLD_CHARACTERS).collect()
}

impl fmt::Display for Refusal {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.hint.as_str() {
            "" => formatter.write_str(&self.message),
            hint => write!(formatter, "{}; {hint}", self.message),
        }
    }
}

impl fmt::Debug for Client {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.options.fmt(formatter)
    }
}

impl FleetStream {
    /// Nothing is asked yet.
    ///
    /// # Errors
    /// [`ServerError::Address`].
    pub fn new(options: &ServerOptions) -> Result<Self, ServerError> {
        Ok(Self {
            client: Client::new(options)?,
            lines: None,
            long_enough: LONG_ENOUGH,
        })
    }

    /// A connection that was at least this long is followed by another when it ends; the end of a shorter one is
    /// [`ServerError::Away`]. Five seconds by default.
    #[must_use]
    pub fn with_long_enough(self, long_enough: Duration) -> Self {
        Self {
            long_enough,
            ..self
        }
    }

    fn connect(&self) -> Result<Lines, ServerError> {
        let request = self.client.agent.get(self.client.url(STREAM));
        let mut request = request.query("node", &self.client.options.node);
        if let Some(daemon) = &self.client.options.daemon {
            request = request.query("daemon", daemon);
        }
        let reader = self
            .client
            .body(STREAM, self.client.headers(request).call())?;
        Ok(Lines {
            reader: BufReader::new(reader),
            began: Instant::now(),
        })
    }

    /// What a line says; `None` when that is nothing to act upon.
    fn understand(&self, text: &str) -> Result<Option<SourceEvent>, ServerError> {
        let not_understood = |reason: String| ServerError::Line {
            url: self.client.url(STREAM),
            reason,
        };
        let line: Line =
            serde_json::from_str(text).map_err(|error| not_understood(error.to_string()))?;
        let kind = line.kind.clone();
        match (kind.as_str(), line) {
            (
                "document",
                Line {
                    version: Some(version),
                    document: Some(document),
                    ..
                },
            ) => {
                let accepted =
                    FleetDocument::read_applied(&document.to_string()).map_err(|problems| {
                        let problems = problems.to_string().replace('\n', "; ");
                        not_understood(format!("document {version}: {problems}"))
                    })?;
                for note in accepted.warnings() {
                    tracing::warn!(version, %note, "in the document");
                }
                let document = Box::new(accepted.document);
                Ok(Some(SourceEvent::Document { version, document }))
            }
            (
                "snapshot",
                Line {
                    id: Some(id),
                    trigger_name: Some(trigger_name),
                    ..
                },
            ) => Ok(Some(SourceEvent::Snapshot { id, trigger_name })),
            (kind @ ("document" | "snapshot"), _) => Err(not_understood(format!(
                "a line of kind {kind:?} lacks a field"
            ))),
            // Also what a newer server may say to newer agents.
            _ => Ok(None),
        }
    }
}

impl fmt::Debug for FleetStream {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.client.fmt(formatter)
    }
}

impl DocumentSource for FleetStream {
    fn next(&mut self, stop: &Stop) -> Result<SourceEvent, ServerError> {
        loop {
            let mut lines = match self.lines.take() {
                Some(lines) => lines,
                None => self.connect()?,
            };
            let line = lines.next();
            if stop.is_set() {
                return Err(self.client.away(STREAM, &"the agent ends"));
            }
            match line {
                Ok(Some(line)) => {
                    self.lines = Some(lines);
                    if let Some(event) = self.understand(&line)? {
                        return Ok(event);
                    }
                }
                // A proxy in between, or the server's own restart: worth another attempt at once.
                Ok(None) | Err(_) if lines.began.elapsed() >= self.long_enough => {}
                Ok(None) => return Err(self.client.away(STREAM, &"the stream ends at once")),
                Err(error) => return Err(self.client.away(STREAM, &error)),
            }
        }
    }
}

impl Lines {
    fn next(&mut self) -> io::Result<Option<String>> {
        let mut line = String::new();
        let read = (&mut self.reader)
            .take(MOST_LINE_BYTES)
            .read_line(&mut line)?;
        if read == 0 || !line.ends_with('\n') {
            // Half a line is none: the rest of it will never come.
            return Ok(None);
        }
        Ok(Some(line))
    }
}

impl FleetReports {
    /// Nothing is asked yet.
    ///
    /// # Errors
    /// [`ServerError::Address`].
    pub fn new(options: &ServerOptions) -> Result<Self, ServerError> {
        Ok(Self {
            client: Client::new(options)?,
        })
    }
}

impl ReportSink for FleetReports {
    fn report(&mut self, report: &NodeReport) -> Result<(), ServerError> {
        let text = serde_json::to_vec(report);
        let text = text.map_err(|error| self.client.away(REPORT, &error))?;
        self.client
            .post(REPORT, "application/json", &text, REPORT_TIMEOUT)
    }
}

impl FleetProfiles {
    /// Nothing is asked yet.
    ///
    /// # Errors
    /// [`ServerError::Address`].
    pub fn new(options: &ServerOptions) -> Result<Self, ServerError> {
        Ok(Self {
            client: Client::new(options)?,
        })
    }
}

impl ProfileSink for FleetProfiles {
    fn store(&mut self, profile: &[u8]) -> Result<(), ServerError> {
        let kind = "application/octet-stream";
        self.client.post(INGEST, kind, profile, STORE_TIMEOUT)
    }
}
