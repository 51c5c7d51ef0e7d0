//! Asking a server over HTTP.

use std::time::Duration;

use crate::args::GlobalArgs;
use crate::commands::credentials::ServerAddress;
use crate::commands::credentials::without_user;
use crate::errors::CliError;
use crate::errors::Context;
use crate::errors::ExitStatus;

/// The server that is asked when none is named.
pub(crate) const DEFAULT_SERVER: &str = "http://127.0.0.1:4040";

/// The largest answer taken, bytes: a wrong address must not fill the memory.
const LARGEST_ANSWER: u64 = 1 << 30;

/// Smaller bodies are sent sooner than a server says whether it wants them.
const WORTH_ASKING: usize = 1 << 20;

/// A server and how to talk to it.
#[derive(Debug)]
pub(crate) struct Client {
    agent: ureq::Agent,
    server: ServerAddress,
    tenant: Option<String>,
    /// What the server is in messages.
    called: String,
}

impl Client {
    /// A client for `--server`, with the token and tenant of the global flags.
    pub(crate) fn new(global: &GlobalArgs) -> Result<Self, CliError> {
        let server = global.server.as_deref().unwrap_or(DEFAULT_SERVER);
        let server = ServerAddress::new(global, server)?;
        let base = &server.url;
        if !base.starts_with("http://") && !base.starts_with("https://") {
            return Err(CliError::usage(format!(
                "--server {base:?} is no URL such as {DEFAULT_SERVER}"
            )));
        }
        Ok(Self {
            agent: agent(),
            called: format!("server {}", server.url),
            server,
            tenant: global.tenant.clone(),
        })
    }

    /// A client for a server inside this process, which has the files of the command: no proxy stands
    /// between, it gets no token, and an answer may take as long as it likes.
    #[cfg(feature = "server")]
    pub(crate) fn local(address: &str) -> Self {
        let config = ureq::Agent::config_builder()
            .proxy(None)
            .http_status_as_error(false)
            .build();
        Self {
            agent: config.into(),
            server: ServerAddress {
                url: address.to_owned(),
                authorization: None,
            },
            tenant: None,
            called: "the store of the files".to_owned(),
        }
    }

    /// The body of a GET request.
    pub(crate) fn get(&self, path: &str, parameters: &[(&str, &str)]) -> Result<Vec<u8>, CliError> {
        let request = self.agent.get(format!("{}{path}", self.server.url));
        let request = self.identified(request.query_pairs(parameters.iter().copied()));
        self.body(request.call())
    }

    /// What stands at an address that need not be of a server of ours: it gets no token.
    pub(crate) fn get_address(url: &str) -> Result<Vec<u8>, CliError> {
        let shown = without_user(url);
        let failed = |error: &dyn std::fmt::Display| CliError::failed(format!("{shown}: {error}"));
        let mut response = agent().get(url).call().map_err(|error| failed(&error))?;
        let status = response.status();
        if !status.is_success() {
            return Err(failed(&format!("the answer is status {status}")));
        }
        let body = response.body_mut().with_config().limit(LARGEST_ANSWER);
        body.read_to_vec().map_err(|error| failed(&error))
    }

    /// The body of the answer to a POST request with parameters.
    pub(crate) fn post_with(
        &self,
        path: &str,
        parameters: &[(&str, &str)],
        body: &[u8],
    ) -> Result<Vec<u8>, CliError> {
        let request = self.agent.post(format!("{}{path}", self.server.url));
        let mut request = request.query_pairs(parameters.iter().copied());
        if body.len() > WORTH_ASKING {
            // What is too large is refused before it is sent, and with a reason.
            request = request.header("Expect", "100-continue");
        }
        self.body(self.identified(request).send(body))
    }

    /// The body of the answer to a POST request.
    pub(crate) fn post(
        &self,
        path: &str,
        content_type: &str,
        body: &[u8],
    ) -> Result<Vec<u8>, CliError> {
        let request = self.agent.post(format!("{}{path}", self.server.url));
        let request = request.header("Content-Type", content_type);
        self.body(self.identified(request).send(body))
    }

    /// The same for an answer that takes its time.
    #[cfg(feature = "server")]
    pub(crate) fn post_waiting(
        &self,
        path: &str,
        content_type: &str,
        body: &[u8],
        wait: Duration,
    ) -> Result<Vec<u8>, CliError> {
        let request = self.agent.post(format!("{}{path}", self.server.url));
        let request = request
            .header("Content-Type", content_type)
            .config()
            .timeout_global(Some(wait))
            .build();
        self.body(self.identified(request).send(body))
    }

    /// The body of the answer to a PUT request with parameters.
    #[cfg(feature = "server")]
    pub(crate) fn put(
        &self,
        path: &str,
        parameters: &[(&str, &str)],
        body: &[u8],
    ) -> Result<Vec<u8>, CliError> {
        let request = self.agent.put(format!("{}{path}", self.server.url));
        let request = request.query_pairs(parameters.iter().copied());
        let request = request.header("Content-Type", "application/json");
        self.body(self.identified(request).send(body))
    }

    /// The body of the answer to a POST request with a file as its body, however long that takes.
    #[cfg(feature = "server")]
    pub(crate) fn post_file(
        &self,
        path: &str,
        parameters: &[(&str, &str)],
        bytes: u64,
        file: &mut dyn std::io::Read,
    ) -> Result<Vec<u8>, CliError> {
        let request = self.agent.post(format!("{}{path}", self.server.url));
        let request = request
            .query_pairs(parameters.iter().copied())
            .header("Content-Type", "application/octet-stream")
            .header("Content-Length", bytes)
            // A file that is too large is refused before it is sent, and with a reason.
            .header("Expect", "100-continue")
            .config()
            .timeout_global(None)
            .build();
        let body = ureq::SendBody::from_reader(file);
        self.body(self.identified(request).send(body))
    }

    /// The request of this token and tenant.
    fn identified<B>(&self, mut request: ureq::RequestBuilder<B>) -> ureq::RequestBuilder<B> {
        if let Some(authorization) = &self.server.authorization {
            request = request.header("Authorization", authorization);
        }
        if let Some(tenant) = &self.tenant {
            request = request.header("X-Scope-OrgID", tenant);
        }
        request
    }

    fn body(
        &self,
        response: Result<ureq::http::Response<ureq::Body>, ureq::Error>,
    ) -> Result<Vec<u8>, CliError> {
        let mut response = response.map_err(|error| self.unreachable(&error))?;
        let status = response.status();
        let body = response
            .body_mut()
            .with_config()
            .limit(LARGEST_ANSWER)
            .read_to_vec()
            .map_err(|error| self.unreachable(&error))?;
        if status.is_success() {
            return Ok(body);
        }
        Err(refusal(&self.called, status.as_u16(), &body))
    }

    /// The JSON body of a GET request.
    pub(crate) fn get_json(
        &self,
        path: &str,
        parameters: &[(&str, &str)],
    ) -> Result<serde_json::Value, CliError> {
        let body = self.get(path, parameters)?;
        let what = format!("answer of {}{path}", self.server.url);
        serde_json::from_slice(&body).or_exit(ExitStatus::Failed, &what)
    }

    fn unreachable(&self, error: &ureq::Error) -> CliError {
        CliError::new(
            ExitStatus::Unreachable,
            format!(
                "{} does not answer: {error}; start one with `candela up`, or name another with --server",
                self.called
            ),
        )
    }
}

fn agent() -> ureq::Agent {
    let tls = ureq::tls::TlsConfig::builder()
        .root_certs(ureq::tls::RootCerts::PlatformVerifier)
        .build();
    let config = ureq::Agent::config_builder()
        .tls_config(tls)
        .http_status_as_error(false)
        .timeout_connect(Some(Duration::from_secs(5)))
        .timeout_global(Some(Duration::from_secs(120)))
        .build();
    config.into()
}

/// The server's own words, when it sent any.
fn refusal(called: &str, status: u16, body: &[u8]) -> CliError {
    let parsed: Option<serde_json::Value> = serde_json::from_slice(body).ok();
    let field = |name: &str| {
        let text = parsed.as_ref()?.get(name)?.as_str()?;
        (!text.is_empty()).then(|| text.to_owned())
    };
    let exit = match status {
        // The question makes sense, its answer only takes too much.
        422 if field("code").as_deref() == Some("over_budget") => ExitStatus::Failed,
        400 | 404 | 405 | 422 => ExitStatus::Usage,
        401 | 403 => ExitStatus::Permission,
        _ => ExitStatus::Failed,
    };
    let message = field("message").unwrap_or_else(|| format!("status {status}"));
    // A proxy before the server says nothing that helps.
    let default_hint = match status {
        401 => Some("send a token with --token-file FILE or CANDELA_TOKEN, or user:password before the host in --server".to_owned()),
        403 => Some("use a token or user that may do this".to_owned()),
        _ => None,
    };
    let hint = field("hint").or(default_hint);
    let hint = hint.map(|hint| format!("; {hint}")).unwrap_or_default();
    CliError::new(exit, format!("{called} refused: {message}{hint}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_is_refused_learns_what_to_do() {
        for (status, part) in [(401, "--token-file"), (403, "use a token or user")] {
            let error = refusal("http://server", status, b"<html>");
            assert_eq!(error.status, ExitStatus::Permission);
            assert!(error.to_string().contains(part), "{error}");
            let own = refusal(
                "http://server",
                status,
                br#"{"message": "no", "hint": "ask ann"}"#,
            );
            assert!(own.to_string().ends_with("no; ask ann"), "{own}");
        }
    }

    #[test]
    fn what_takes_too_much_is_no_usage_error() {
        let status = |code: &str| {
            let body = format!(r#"{{"code": "{code}", "message": "no"}}"#);
            refusal("http://server", 422, body.as_bytes()).status
        };
        assert_eq!(status("over_budget"), ExitStatus::Failed);
        assert_eq!(status("not_a_profile"), ExitStatus::Usage);
    }
}
