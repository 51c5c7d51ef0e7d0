//! `/api/v1/session`: how a browser signs in, who it is, and how it signs out.
//!
//! What the cookie of it is protected by: it is random, so that it is no secret of the configuration;
//! `HttpOnly`, so that no script reads it; `SameSite=Strict`, so that pages of others do not send it;
//! `Secure` where the page came over TLS. Signing in and out are writes, which the check of origins
//! refuses to pages of others, and so nobody is signed in as somebody else unawares.

use axum::body::Body;
use axum::extract::State;
use axum::http::HeaderMap;
use axum::http::HeaderValue;
use axum::http::StatusCode;
use axum::http::Uri;
use axum::http::header::ORIGIN;
use axum::http::header::SET_COOKIE;
use axum::response::IntoResponse;
use axum::response::Response;
use serde::Deserialize;
use serde_json::Value;
use serde_json::json;

use crate::api_error::ApiError;
use crate::app::App;
use crate::app::SharedApp;
use crate::auth::COOKIE_NAME;
use crate::auth::Caller;
use crate::auth::Credentials;
use crate::auth::LONGEST_SESSION;
use crate::auth::Right;
use crate::auth::TenantName;
use crate::auth::Who;
use crate::json_body::read_json;
use crate::reply::Reply;

/// Behind the prefix under which the window is.
const PATH: &str = "api/v1/session";
const HINT: &str = r#"{"token": "…"} or {"user": "…", "password": "…"}, and "tenant": "…" where there are several"#;

/// The body of a sign-in.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Given {
    token: Option<String>,
    user: Option<String>,
    password: Option<String>,
    tenant: Option<String>,
}

/// Who asks. It is no error to be nobody: that is what the window asks for.
pub(crate) async fn who(State(app): State<SharedApp>, headers: HeaderMap) -> Reply {
    Reply::json("session", session_json(&app.access.who(&headers)))
}

pub(crate) async fn sign_in(
    State(app): State<SharedApp>,
    uri: Uri,
    headers: HeaderMap,
    body: Body,
) -> Result<Response, ApiError> {
    let given: Given = read_json(&app, body, HINT).await?;
    let tenant = tenant_of(&given)?;
    let credentials = credentials_of(&app, given)?;
    let (text, caller) = app.access.sign_in(&headers, &credentials, tenant)?;
    tracing::info!(name = %caller.name, "a browser signed in");
    let who = Who {
        caller: Some(caller),
        is_session: true,
        ..app.access.who(&HeaderMap::new())
    };
    let reply = Reply::json("session", session_json(&who));
    let age = LONGEST_SESSION.as_secs();
    with_cookie(reply, &cookie(&app, &uri, &headers, &text, age))
}

pub(crate) async fn sign_out(
    State(app): State<SharedApp>,
    uri: Uri,
    headers: HeaderMap,
) -> Result<Response, ApiError> {
    let was_signed_in = app.access.sign_out(&headers);
    let reply = Reply::json("signed-out", json!({"was_signed_in": was_signed_in}));
    with_cookie(reply, &cookie(&app, &uri, &headers, "", 0))
}

fn tenant_of(given: &Given) -> Result<Option<TenantName>, ApiError> {
    let named = given.tenant.as_deref().filter(|name| !name.is_empty());
    let tenant = named.map(TenantName::new).transpose();
    tenant.map_err(|error| ApiError::bad_request("bad_tenant", error.to_string()))
}

fn credentials_of(app: &App, given: Given) -> Result<Credentials, ApiError> {
    let Given {
        token,
        user,
        password,
        tenant,
    } = given;
    match (token, user, password) {
        (Some(token), None, None) => Ok(Credentials::Token(token)),
        (None, Some(user), Some(password)) => Ok(Credentials::Password { user, password }),
        (None, None, None) if app.access.is_open() && tenant.is_some() => Ok(Credentials::Nothing),
        _ => {
            let message = "either a token, or a user and a password sign in";
            Err(ApiError::bad_request("bad_credentials", message).hint(HINT))
        }
    }
}

fn session_json(who: &Who) -> Value {
    let caller = who.caller.as_ref();
    let rights = |caller: &Caller| {
        let granted = Right::GRANTED.into_iter();
        let granted = granted.filter(|right| caller.rights.allow(*right));
        granted.map(Right::name).collect::<Vec<&str>>()
    };
    let tenants = |caller: &Caller| {
        let names = caller.tenants().iter();
        names.map(ToString::to_string).collect::<Vec<String>>()
    };
    json!({
        "name": caller.map(|caller| &*caller.name),
        "rights": caller.map(rights),
        "tenants": caller.map(tenants),
        "can_sign_out": who.is_session,
        "is_open": who.is_open,
        "has_users": who.has_users,
        "has_tenants": who.needs_tenant,
    })
}

/// The page under a prefix has its own session: what is under another one may be another server.
fn cookie(app: &App, uri: &Uri, headers: &HeaderMap, text: &str, age_seconds: u64) -> String {
    let path = uri.path().strip_suffix(PATH).unwrap_or("/");
    // A proxy may speak TLS for us: then the page's own origin says so.
    let origin = headers.get(ORIGIN).map(HeaderValue::as_bytes);
    let is_tls = app.is_tls || origin.is_some_and(|origin| origin.starts_with(b"https://"));
    let secure = if is_tls { "; Secure" } else { "" };
    format!(
        "{COOKIE_NAME}={text}; Path={path}; Max-Age={age_seconds}; HttpOnly; SameSite=Strict{secure}"
    )
}

fn with_cookie(reply: Reply, cookie: &str) -> Result<Response, ApiError> {
    let value = HeaderValue::from_str(cookie);
    let mut value = value.map_err(|error| ApiError::internal(error.to_string()))?;
    value.set_sensitive(true);
    let mut response = (StatusCode::OK, reply).into_response();
    response.headers_mut().append(SET_COOKIE, value);
    Ok(response)
}
