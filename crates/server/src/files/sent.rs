//! The files of a request: in its body, or held since an earlier one that sent them.

use std::sync::Arc;

use axum::extract::FromRequest;
use axum::extract::FromRequestParts;
use axum::extract::Request;
use axum::http::HeaderMap;
use axum::http::StatusCode;
use axum::http::header::CONTENT_TYPE;
use bytes::Bytes;
use tokio::sync::OwnedSemaphorePermit;

use super::opened::FileId;
use super::opened::OpenedFile;
use crate::answers::Reader;
use crate::api_error::ApiError;
use crate::app::App;
use crate::app::SharedApp;
use crate::app::off_the_reactor;
use crate::auth::Caller;
use crate::auth::TenantName;
use crate::ingest::body::BodyBounds;
use crate::ingest::body::read_body;
use crate::ingest::form::Sent;
use crate::ingest::form::is_form;
use crate::ingest::room::reserve;
use crate::parameters::Parameters;
use crate::reply::AcceptsGzip;

/// The part of a form, and the parameter, of the file that is asked about.
const FILE: &str = "file";
/// The same of the one that it is compared with.
const BASE_FILE: &str = "base_file";

/// A request about a file, or about one beside another.
pub(crate) struct SentFiles {
    pub(super) app: SharedApp,
    pub(super) accepts: AcceptsGzip,
    pub(super) reader: Reader,
    pub(super) caller: Caller,
    pub(super) parameters: Parameters,
    pub(super) file: Arc<OpenedFile>,
    /// `None` where the file is compared with itself.
    pub(super) base: Option<Arc<OpenedFile>>,
    /// What a request that had to read files takes until it is answered.
    pub(super) slot: Option<OwnedSemaphorePermit>,
}

/// The bytes of files, as they came.
#[derive(Debug, Default)]
struct Bodies {
    file: Option<Bytes>,
    base: Option<Bytes>,
}

/// The files of a request.
struct Opened {
    file: Arc<OpenedFile>,
    base: Option<Arc<OpenedFile>>,
}

impl FromRequest<SharedApp> for SentFiles {
    type Rejection = ApiError;

    async fn from_request(request: Request, app: &SharedApp) -> Result<Self, ApiError> {
        let (mut parts, body) = request.into_parts();
        let caller = Caller::from_request_parts(&mut parts, app).await?;
        let tenant = caller.one_tenant()?.clone();
        let parameters = Parameters::of(&parts.uri);
        let headers = &parts.headers;
        let bounds = bounds_of(app, &tenant, headers);
        let room = reserve(app, bounds, headers).await?;
        let body = read_body(&app.limits, bounds, headers, body).await?;
        let body = off_the_reactor(move || body.decoded(bounds)).await?;
        let bodies = Bodies::of(headers, body).await?;
        let slot = if bodies.is_empty() {
            None
        } else {
            Some(slot_of(app).await?)
        };
        let (shared, asked) = (SharedApp::clone(app), parameters.clone());
        let opened = off_the_reactor(move || {
            let opened = Opened::of(&shared, &tenant, &asked, &bodies);
            // The bytes are of no use any more.
            drop((bodies, room));
            opened
        });
        let Opened { file, base } = opened.await?;
        forget_in_time(app);
        Ok(Self {
            app: SharedApp::clone(app),
            accepts: AcceptsGzip::of(headers),
            reader: Reader::of(&parts),
            caller,
            parameters,
            file,
            base,
            slot,
        })
    }
}

impl Bodies {
    async fn of(headers: &HeaderMap, body: Bytes) -> Result<Self, ApiError> {
        if body.is_empty() {
            return Ok(Self::default());
        }
        let sent = Sent::of(headers, body).await?;
        if !sent.is_form() {
            return Ok(Self {
                file: Some(sent.body),
                base: None,
            });
        }
        let bodies = Self {
            file: sent.part(FILE).cloned(),
            base: sent.part(BASE_FILE).cloned(),
        };
        if bodies.is_empty() {
            let message = format!("the form has neither a part {FILE} nor a part {BASE_FILE}");
            return Err(ApiError::unprocessable("missing_part", message)
                .hint("curl -F file=@after.pb.gz -F base_file=@before.pb.gz"));
        }
        Ok(bodies)
    }

    const fn is_empty(&self) -> bool {
        self.file.is_none() && self.base.is_none()
    }
}

impl Opened {
    fn of(
        app: &App,
        tenant: &TenantName,
        parameters: &Parameters,
        bodies: &Bodies,
    ) -> Result<Self, ApiError> {
        let file = opened(app, tenant, bodies.file.as_ref(), parameters, FILE)?;
        let base = opened(app, tenant, bodies.base.as_ref(), parameters, BASE_FILE)?;
        let file = file.ok_or_else(|| {
            ApiError::bad_request("missing_file", "no file: the body is empty").hint(
                "send the file as the body, or name one that was sent a moment ago by file=ID",
            )
        })?;
        Ok(Self { file, base })
    }
}

/// The file of a body, or else the one that the parameter names; `None` without both.
fn opened(
    app: &App,
    tenant: &TenantName,
    bytes: Option<&Bytes>,
    parameters: &Parameters,
    name: &str,
) -> Result<Option<Arc<OpenedFile>>, ApiError> {
    if let Some(bytes) = bytes {
        let known = app.files.get(tenant, FileId::of(bytes));
        if known.is_some() {
            return Ok(known);
        }
        let file = Arc::new(OpenedFile::read(app, tenant, bytes)?);
        app.files.hold(tenant, &file);
        return Ok(Some(file));
    }
    let Some(text) = parameters.one(name) else {
        return Ok(None);
    };
    let Ok(id) = text.parse::<FileId>() else {
        let message = format!("{name}: {text:?} is no id of a file");
        return Err(ApiError::bad_request("bad_file_id", message)
            .hint("POST /api/v1/files answers with the id of the file in its body"));
    };
    let held = app.files.get(tenant, id).ok_or_else(|| {
        let message = format!("{name}: the file {text} is not in memory any more");
        ApiError::new(StatusCode::NOT_FOUND, "file_not_held", message)
            .hint("send it again as the body")
    })?;
    Ok(Some(held))
}

/// A form may have two files, and the lines between them.
fn bounds_of(app: &App, tenant: &TenantName, headers: &HeaderMap) -> BodyBounds {
    let limits = app.tenants.limits(tenant);
    let content_type = headers.get(CONTENT_TYPE);
    let content_type = content_type.and_then(|value| value.to_str().ok());
    if content_type.is_some_and(is_form) {
        return BodyBounds::two_profiles(&limits);
    }
    BodyBounds::profile(&limits)
}

async fn slot_of(app: &App) -> Result<OwnedSemaphorePermit, ApiError> {
    let slot = Arc::clone(&app.files.slots).acquire_owned();
    let slot = tokio::time::timeout(app.limits.query_wait, slot).await;
    let Ok(Ok(slot)) = slot else {
        let message = format!(
            "{} files are being read and this one waited {} s for its turn",
            app.limits.concurrent_decodes,
            app.limits.query_wait.as_secs()
        );
        let error = ApiError::new(StatusCode::TOO_MANY_REQUESTS, "busy", message);
        return Err(error.hint("try again"));
    };
    Ok(slot)
}

/// Nobody asks about a file that is not looked at any more, so that something else has to let go of it.
fn forget_in_time(app: &SharedApp) {
    if !app.files.takes_sweeper() {
        return;
    }
    let idle = app.limits.held_files_idle;
    let app = Arc::downgrade(app);
    tokio::spawn(async move {
        loop {
            tokio::time::sleep(idle).await;
            let is_over = app.upgrade().is_none_or(|app| !app.files.forget_unused());
            if is_over {
                return;
            }
        }
    });
}
