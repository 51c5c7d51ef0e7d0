//! The sink of `candela agent --server`: OTLP profiles over gRPC, to Candela or any other receiver.

use std::fmt;
use std::time::Duration;

use candela_formats::AttributeValue;
use candela_formats::OtlpOptions;
use candela_formats::encode_otlp;
use candela_model::Profile;
use opentelemetry_proto::tonic::collector::profiles::v1development::ExportProfilesServiceRequest;
use opentelemetry_proto::tonic::collector::profiles::v1development::profiles_service_client::ProfilesServiceClient;
use prost::Message;
use tokio::runtime::Runtime;
use tonic::Code;
use tonic::Status;
use tonic::codec::CompressionEncoding;
use tonic::metadata::Ascii;
use tonic::metadata::MetadataValue;
use tonic::transport::Channel;
use tonic::transport::ClientTlsConfig;
use tonic::transport::Endpoint;

use crate::error::AgentError;
use crate::export::exporter::ExportError;
use crate::export::exporter::Exporter;
use crate::export::exporter::Vitals;
use crate::status::VERSION;

/// The longest text that an agent says of itself (`otlp/own.rs` of `candela-formats`).
const MOST_TEXT_BYTES: usize = 256;

/// Where to send, and as whom.
#[derive(Clone)]
pub struct OtlpGrpcOptions {
    /// The server, like `http://127.0.0.1:4040`.
    pub endpoint: String,
    /// Sent as `authorization`: `Bearer …` or `Basic …`.
    pub authorization: Option<String>,
    /// Sent as `x-scope-orgid`.
    pub tenant: Option<String>,
    /// How long one attempt may take.
    pub timeout: Duration,
}

/// Sends profiles over gRPC, compressed. It connects when the first profile comes, and again
/// whenever the connection is lost.
#[derive(Debug)]
pub struct OtlpGrpc {
    endpoint: String,
    headers: Vec<(&'static str, MetadataValue<Ascii>)>,
    client: ProfilesServiceClient<Channel>,
    runtime: Runtime,
    vitals: Vitals,
}

// === impl OtlpGrpcOptions ===

impl OtlpGrpcOptions {
    /// No credentials, no tenant, ten seconds.
    #[must_use]
    pub fn new(endpoint: &str) -> Self {
        Self {
            endpoint: endpoint.to_owned(),
            authorization: None,
            tenant: None,
            timeout: Duration::from_secs(10),
        }
    }
}

impl fmt::Debug for OtlpGrpcOptions {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let authorization = self.authorization.as_ref().map(|_| "***");
        formatter
            .debug_struct("OtlpGrpcOptions")
            .field("endpoint", &self.endpoint)
            .field("authorization", &authorization)
            .field("tenant", &self.tenant)
            .field("timeout", &self.timeout)
            .finish()
    }
}

// === impl OtlpGrpc ===

impl OtlpGrpc {
    /// An exporter to one server; nothing is sent yet.
    ///
    /// # Errors
    /// [`AgentError::Endpoint`], [`AgentError::Token`] and, when the system refuses a thread,
    /// [`AgentError::Thread`].
    pub fn new(options: &OtlpGrpcOptions) -> Result<Self, AgentError> {
        let refused = |reason: String| AgentError::Endpoint {
            given: options.endpoint.clone(),
            reason,
        };
        let address = options.endpoint.trim_end_matches('/').to_owned();
        let has_tls = address.starts_with("https://");
        if !has_tls && !address.starts_with("http://") {
            let reason = "it starts with neither http:// nor https://";
            return Err(refused(reason.to_owned()));
        }
        let mut endpoint = Endpoint::from_shared(address.clone())
            .map_err(|error| refused(error.to_string()))?
            .connect_timeout(options.timeout)
            .timeout(options.timeout);
        if has_tls {
            // The certificates that the system trusts, or those of $SSL_CERT_FILE.
            let tls = ClientTlsConfig::new().with_native_roots();
            let with_tls = endpoint.tls_config(tls);
            endpoint = with_tls.map_err(|error| {
                refused(with_causes(
                    &error.to_string(),
                    std::error::Error::source(&error),
                ))
            })?;
        }
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .map_err(|source| AgentError::Thread {
                name: "export runtime",
                source,
            })?;
        let channel = {
            // The lazy connection registers its worker with the runtime.
            let _context = runtime.enter();
            endpoint.connect_lazy()
        };
        let client = ProfilesServiceClient::new(channel).send_compressed(CompressionEncoding::Gzip);
        Ok(Self {
            endpoint: address,
            headers: headers(options)?,
            client,
            runtime,
            vitals: Vitals::default(),
        })
    }

    fn send(&mut self, message: ExportProfilesServiceRequest) -> Result<(), ExportError> {
        let mut request = tonic::Request::new(message);
        for (name, value) in &self.headers {
            request.metadata_mut().insert(*name, value.clone());
        }
        let response = self.runtime.block_on(self.client.export(request));
        let response = response.map_err(|status| error_of(&self.endpoint, &status))?;
        match response.into_inner().partial_success {
            Some(partial) if partial.rejected_profiles > 0 => Err(ExportError::PartlyRejected {
                series: partial.rejected_profiles.unsigned_abs(),
                reason: partial.error_message,
            }),
            _ => Ok(()),
        }
    }
}

impl Exporter for OtlpGrpc {
    fn name(&self) -> String {
        self.endpoint.clone()
    }

    fn set_vitals(&mut self, vitals: &Vitals) {
        self.vitals.clone_from(vitals);
    }

    fn export(&mut self, profile: &Profile) -> Result<(), ExportError> {
        self.send(request_of(profile, &self.vitals))
    }

    fn to_spool(&self, profile: &Profile) -> Option<Vec<u8>> {
        Some(request_of(profile, &self.vitals).encode_to_vec())
    }

    fn export_spooled(&mut self, bytes: &[u8]) -> Result<(), ExportError> {
        let message = ExportProfilesServiceRequest::decode(bytes);
        let message = message.map_err(|error| ExportError::Rejected {
            reason: format!("a spooled profile cannot be decoded: {error}"),
        })?;
        self.send(message)
    }
}

fn headers(
    options: &OtlpGrpcOptions,
) -> Result<Vec<(&'static str, MetadataValue<Ascii>)>, AgentError> {
    let mut headers = Vec::new();
    if let Some(authorization) = &options.authorization {
        let value = authorization.parse();
        let mut value: MetadataValue<Ascii> = value.map_err(|_| AgentError::Token)?;
        // Keeps it out of what tonic and hyper print.
        value.set_sensitive(true);
        headers.push(("authorization", value));
    }
    if let Some(tenant) = &options.tenant {
        let value = tenant.parse().map_err(|_| AgentError::Option {
            name: "tenant",
            value: tenant.clone(),
            range: "visible ASCII characters",
        })?;
        headers.push(("x-scope-orgid", value));
    }
    Ok(headers)
}

fn request_of(profile: &Profile, vitals: &Vitals) -> ExportProfilesServiceRequest {
    let options = OtlpOptions {
        scope_name: "candela".to_owned(),
        scope_version: VERSION.to_owned(),
        attributes: attributes_of(vitals),
        ..OtlpOptions::default()
    };
    encode_otlp(profile, &options)
}

/// Nothing without a version: a recording is no agent. Zeros are left out.
fn attributes_of(vitals: &Vitals) -> Vec<(String, AttributeValue)> {
    if vitals.version.is_empty() {
        return Vec::new();
    }
    let count = |count: u64| AttributeValue::Number(i64::try_from(count).unwrap_or(i64::MAX));
    let mut attributes = vec![
        (
            "candela.agent.version".to_owned(),
            AttributeValue::Text(vitals.version.clone()),
        ),
        (
            "candela.agent.host".to_owned(),
            AttributeValue::Text(vitals.host.clone()),
        ),
        (
            "candela.agent.started_ms".to_owned(),
            AttributeValue::Number(vitals.started_ms),
        ),
    ];
    let figures = figures_of(vitals).filter(|(.., value)| *value > 0);
    attributes.extend(
        figures.map(|(group, name, value)| (format!("candela.{group}.{name}"), count(value))),
    );
    attributes.extend(vitals.missing.iter().map(|missing| {
        let reason = AttributeValue::Text(cut(&missing.reason));
        (format!("candela.missing.{}", missing.what), reason)
    }));
    attributes
}

/// All numbers by group and name.
fn figures_of(vitals: &Vitals) -> impl Iterator<Item = (&'static str, &str, u64)> {
    let results = vitals.results.iter().map(|it| ("result", it));
    let drops = vitals.drops.iter().map(|it| ("drops", it));
    let events = vitals.events.iter().map(|it| ("events", it));
    let counts = results.chain(drops).chain(events);
    let counts = counts.map(|(group, (name, &count))| (group, name.as_str(), count));
    let cost = vitals.cost.iter();
    let cost = cost.map(|(name, &figure)| ("cost", *name, figure));
    let programs = vitals.programs.iter().flat_map(|(name, program)| {
        let of_program = [
            ("program_ns", program.estimated_run_time_ns),
            ("program_runs", program.estimated_runs),
            ("program_refused", program.recursion_misses),
        ];
        of_program.map(|(group, figure)| (group, name.as_str(), figure))
    });
    counts.chain(cost).chain(programs)
}

/// Receivers take no longer texts.
fn cut(text: &str) -> String {
    match text.len() <= MOST_TEXT_BYTES {
        true => text.to_owned(),
        false => format!(
            "{}…",
            &text[..text.floor_char_boundary(MOST_TEXT_BYTES - "…".len())]
        ),
    }
}

/// What the receiver will never want is refused; everything else may be different later, also a
/// wrong token: somebody will correct it.
fn error_of(endpoint: &str, status: &Status) -> ExportError {
    let is_final = matches!(
        status.code(),
        Code::InvalidArgument | Code::OutOfRange | Code::AlreadyExists | Code::FailedPrecondition
    );
    // What grpc-go says of a message over its limit; the code alone also stands for "busy".
    let is_final = is_final || status.message().contains("larger than max");
    let mut reason = with_causes(status.message(), std::error::Error::source(status));
    reason.insert_str(0, &format!("{endpoint}: "));
    if is_final {
        return ExportError::Rejected { reason };
    }
    match status.code() {
        Code::Unauthenticated => {
            let how = "send a token with --token-file FILE or CANDELA_TOKEN, or user:password before the host in the URL";
            reason = format!("{reason}; {how}");
            ExportError::NotAllowed { reason }
        }
        Code::PermissionDenied => ExportError::NotAllowed { reason },
        _ => ExportError::Unavailable { reason },
    }
}

/// A message with the causes that it does not tell itself: layers of a client repeat what the one below says.
fn with_causes(message: &str, mut cause: Option<&(dyn std::error::Error + 'static)>) -> String {
    let mut text = message.to_owned();
    while let Some(error) = cause {
        let more = error.to_string();
        if !text.contains(&more) {
            text = format!("{text}: {more}");
        }
        cause = error.source();
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::source::Missing;

    #[test]
    fn addresses_that_are_none_are_named() {
        for address in ["", "localhost:4040", "ftp://server", "http://"] {
            let error = OtlpGrpc::new(&OtlpGrpcOptions::new(address)).expect_err("no address");
            assert!(
                error.to_string().contains(&format!("{address:?}")),
                "{error}"
            );
        }
    }

    #[test]
    fn receivers_hear_what_an_agent_does_without() {
        let missing = |what: &str, reason: String| Missing {
            what: what.to_owned(),
            reason,
        };
        let vitals = Vitals {
            version: "1".to_owned(),
            missing: vec![
                missing("io", "no tracepoint".to_owned()),
                missing("lock", "ä".repeat(MOST_TEXT_BYTES)),
            ],
            ..Vitals::default()
        };
        let attributes = attributes_of(&vitals);
        let text = |name: &str| {
            let found = attributes.iter().find(|(key, _)| key == name);
            match found {
                Some((_, AttributeValue::Text(text))) => text.clone(),
                other => panic!("{name}: {other:?}"),
            }
        };
        assert_eq!(text("candela.missing.io"), "no tracepoint");
        let long = text("candela.missing.lock");
        assert!(
            long.len() <= MOST_TEXT_BYTES && long.ends_with('…'),
            "{long}"
        );
    }

    #[test]
    fn tokens_do_not_show() {
        let mut options = OtlpGrpcOptions::new("http://127.0.0.1:1");
        options.authorization = Some("Bearer secret-token".to_owned());
        assert!(!format!("{options:?}").contains("secret-token"));
        let exporter = OtlpGrpc::new(&options).expect("a valid address");
        assert!(!format!("{exporter:?}").contains("secret-token"));
        options.authorization = Some("Bearer line\nfeed".to_owned());
        assert!(matches!(OtlpGrpc::new(&options), Err(AgentError::Token)));
    }

    #[test]
    fn a_server_that_is_away_is_tried_again() {
        // Who has a port and does not listen there refuses everybody.
        let nobody = tokio::net::TcpSocket::new_v4().expect("a socket");
        let any_port = "127.0.0.1:0".parse().expect("an address");
        nobody.bind(any_port).expect("a free port");
        let address = nobody.local_addr().expect("bound");
        let mut options = OtlpGrpcOptions::new(&format!("http://{address}"));
        options.timeout = Duration::from_secs(60);
        let mut exporter = OtlpGrpc::new(&options).expect("an address");
        let error = exporter
            .export(&Profile::default())
            .expect_err("nobody is there");
        assert!(matches!(error, ExportError::Unavailable { .. }), "{error}");
        let text = error.to_string();
        assert!(text.contains("refused"), "{text}");
        assert_eq!(text.matches("tcp connect error").count(), 1, "{text}");
    }
}
