//! Requests of OTLP, whatever their signal and whichever transport they came by.

use axum::body::Bytes;
use axum::http::HeaderMap;
use axum::http::HeaderValue;
use candela_formats::Limits;
use candela_formats::ReadError;
use candela_formats::ReadOptions;
use candela_formats::Report;
use candela_model::Profile;
use prost::Message;
use serde_json::Value;

use crate::api_error::ApiError;
use crate::app::App;
use crate::app::SharedApp;
use crate::auth::TenantName;
use crate::ingest::append::append;
use crate::ingest::append::received_hash;
use crate::ingest::body::BodyBounds;
use crate::ingest::decode::Decoded;
use crate::ingest::decode::decode;
use crate::ingest::read::read_error;
use crate::ingest::read::read_options;
use crate::rpc::Deadline;

/// The header by which senders say which wire format of profiles theirs is. It changes without a new
/// path as long as profiles are in development.
const WIRE_VERSION_HEADER: &str = "otlp-profiles-development-version";

/// The one that is read here, and that of senders that say nothing.
const WIRE_VERSION: &str = "1";

/// How many different refusals a message names.
const NAMED_REFUSALS: usize = 5;

/// A request of one of OTLP's services, which has profiles.
pub(crate) trait ExportRequest: Sized + Send + 'static {
    /// The answer of the service.
    type Response: Message + Default;
    /// Names of the ways in, for counters.
    const OVER_GRPC: &'static str;
    const OVER_HTTP: &'static str;

    /// # Errors
    /// When the bytes are no such request.
    fn from_protobuf(bytes: &[u8], limits: &Limits, report: &mut Report)
    -> Result<Self, ReadError>;

    /// # Errors
    /// When the text is no such request.
    fn from_json(text: &[u8], limits: &Limits, report: &mut Report) -> Result<Self, ReadError>;

    /// What is left of the request when all is left out that may not be stored.
    ///
    /// # Errors
    /// When nothing of it can be read.
    fn read(self, app: &App, tenant: &TenantName) -> Result<(Profile, Refused), ApiError>;

    /// The answer that tells what was refused.
    fn response(refused: Refused) -> Self::Response;

    /// The same in the JSON of protobuf, where 64-bit numbers are strings.
    fn json(response: &Self::Response) -> Value;
}

/// What was refused of a request, for its sender.
#[derive(Debug, Default)]
pub(crate) struct Refused {
    pub(crate) count: i64,
    messages: Vec<String>,
}

/// Whether the sender's wire format is the one that is read here. Bytes of another could be read as
/// something that was never sent.
pub(crate) fn check_wire_version(headers: &HeaderMap) -> Result<(), ApiError> {
    let mut versions = headers
        .get_all(WIRE_VERSION_HEADER)
        .iter()
        .map(HeaderValue::as_bytes);
    let version = versions.next().unwrap_or(WIRE_VERSION.as_bytes());
    if version == WIRE_VERSION.as_bytes() && versions.next().is_none() {
        return Ok(());
    }
    let version = String::from_utf8_lossy(version);
    let message = format!("{WIRE_VERSION_HEADER} {version:?} is not read here");
    Err(ApiError::bad_request("unknown_wire_version", message)
        .hint(format!("send version {WIRE_VERSION}, once")))
}

/// The request in some protobuf.
///
/// # Errors
/// 400 when it is none.
pub(crate) fn request_of<R: ExportRequest>(
    app: &App,
    tenant: &str,
    bytes: &[u8],
) -> Result<R, ApiError> {
    parsed(app, tenant, bytes, R::from_protobuf)
}

/// The request in some JSON.
///
/// # Errors
/// 400 when it is none.
pub(crate) fn request_of_json<R: ExportRequest>(
    app: &App,
    tenant: &str,
    text: &[u8],
) -> Result<R, ApiError> {
    parsed(app, tenant, text, R::from_json)
}

fn parsed<R>(
    app: &App,
    tenant: &str,
    bytes: &[u8],
    parse: fn(&[u8], &Limits, &mut Report) -> Result<R, ReadError>,
) -> Result<R, ApiError> {
    let limits = otlp_options(app, tenant).limits;
    let mut report = Report::default();
    let request = parse(bytes, &limits, &mut report).map_err(|error| read_error(&error))?;
    app.metrics.count_changes(tenant, &report.notes);
    Ok(request)
}

/// Stores a request as one batch. What may not be stored is left out, counted and named in the
/// answer; the rest is durable when this returns. `parse` takes the body of the client apart, and is
/// not waited for beyond the deadline; what is to be stored then is.
///
/// # Errors
/// When nothing of the request can be read, or the store refuses it.
pub(crate) async fn store_request<R, P>(
    app: &SharedApp,
    tenant: &TenantName,
    deadline: Deadline,
    way: &'static str,
    body: Bytes,
    parse: P,
) -> Result<R::Response, ApiError>
where
    R: ExportRequest,
    P: FnOnce(&App) -> Result<R, ApiError> + Send + 'static,
{
    let bytes = body.len() as u64;
    let of_tenant = tenant.clone();
    let read_body = move |app: &App| {
        let admitted = app.tenants.check_rate(&of_tenant);
        admitted.map_err(ApiError::exceeded)?;
        let hash = received_hash(way, &[], &body);
        Ok((parse(app)?.read(app, &of_tenant)?, hash))
    };
    let Decoded {
        value: ((profile, refused), hash),
        slot,
    } = deadline
        .bound(decode(app, read_body))
        .await
        .inspect_err(|error| app.metrics.count_refused(tenant, error.code, 1))?;
    if !profile.series.is_empty() {
        append(app, tenant, way, profile, hash, bytes).await?;
    }
    drop(slot);
    Ok(R::response(refused))
}

/// How requests of a tenant are read.
pub(crate) fn otlp_options(app: &App, tenant: &str) -> ReadOptions {
    let limits = app.tenants.limits(tenant);
    read_options(app, &limits, BodyBounds::request(&limits))
}

impl Refused {
    pub(crate) fn add(&mut self, count: u64, message: String) {
        self.count = self.count.saturating_add_unsigned(count);
        if self.messages.len() < NAMED_REFUSALS && !self.messages.contains(&message) {
            self.messages.push(message);
        }
    }

    /// What a partial success says; `None` when nothing was refused, as an empty one would mean the
    /// same as none, and the specification asks for none.
    pub(crate) fn message(&self) -> Option<String> {
        (self.count != 0).then(|| self.messages.join("; "))
    }
}
