//! What stands before the routes: the id of the request, who may ask, and from where.

use std::collections::hash_map::RandomState;
use std::hash::BuildHasher;

use axum::extract::Request;
use axum::extract::State;
use axum::http::HeaderMap;
use axum::http::HeaderName;
use axum::http::HeaderValue;
use axum::http::StatusCode;
use axum::http::header::AUTHORIZATION;
use axum::http::header::WWW_AUTHENTICATE;
use axum::middleware::Next;
use axum::response::IntoResponse;
use axum::response::Response;
use candela_listen::Foreign;
use candela_listen::HostPolicy;
use candela_listen::SecretDigest;

use crate::on_demand::reply::Refusal;
use crate::on_demand::routes::PROFILE;

const REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");

/// What programs send (RFC 6750, 3).
const BEARER: HeaderValue = HeaderValue::from_static("Bearer realm=\"candela\"");

/// Who may ask.
#[derive(Clone, Debug)]
pub(crate) struct Guard {
    pub(crate) hosts: HostPolicy,
    /// None lets everybody ask, which is for loopback only.
    pub(crate) token: Option<SecretDigest>,
}

/// Gives each answer the id of its request, so that both can be found in the logs of all who were on
/// the way; a request that has none gets one.
pub(crate) async fn carry_request_id(mut request: Request, next: Next) -> Response {
    let id = request.headers().get(REQUEST_ID).cloned();
    let id = id.unwrap_or_else(new_id);
    request.headers_mut().insert(REQUEST_ID, id.clone());
    // Metrics are asked for four times a minute, and nothing comes of it.
    if request.uri().path() == PROFILE {
        tracing::info!(method = %request.method(), id = ?id, "a request for a profile on demand");
    }
    let mut response = next.run(request).await;
    response.headers_mut().insert(REQUEST_ID, id);
    response
}

/// Refuses foreign hosts and pages, and whoever does not know the token.
pub(crate) async fn check(State(guard): State<Guard>, request: Request, next: Next) -> Response {
    if let Err(foreign) = guard.hosts.check(&request) {
        return refusal(&foreign).into_response();
    }
    if guard.admits(request.headers()) {
        return next.run(request).await;
    }
    let refusal = Refusal::new(
        StatusCode::UNAUTHORIZED,
        "This port needs a token; send it as Authorization: Bearer TOKEN.",
    );
    let mut response = refusal.into_response();
    response.headers_mut().insert(WWW_AUTHENTICATE, BEARER);
    response
}

impl Guard {
    fn admits(&self, headers: &HeaderMap) -> bool {
        let Some(token) = &self.token else {
            return true;
        };
        let given = headers.get(AUTHORIZATION).map(HeaderValue::as_bytes);
        let given = given.and_then(|value| {
            let (scheme, given) = value.split_at_checked("Bearer ".len())?;
            scheme.eq_ignore_ascii_case(b"Bearer ").then_some(given)
        });
        given.is_some_and(|given| SecretDigest::of(given.trim_ascii()).is_of_same(token))
    }
}

fn refusal(foreign: &Foreign) -> Refusal {
    let message = match foreign {
        Foreign::Host(host) => format!(
            "Host {host:?} is none of this port's names; use localhost, or add the name to server.allowed_hosts."
        ),
        Foreign::Origin => "A page of another origin must not start profiles here.".to_owned(),
    };
    Refusal::new(StatusCode::FORBIDDEN, message)
}

/// Different with each call, and in other processes: the seeds of the standard library's hashers are.
fn new_id() -> HeaderValue {
    let number = || RandomState::new().hash_one(0);
    let id = format!("{:016x}{:016x}", number(), number());
    HeaderValue::from_str(&id).expect("hexadecimal digits can stand in a header")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_opens_where_there_is_one() {
        let guard = |token: Option<&str>| Guard {
            hosts: HostPolicy::new("127.0.0.1:0".parse().expect("an address"), &[]),
            token: token.map(|token| SecretDigest::of(token.as_bytes())),
        };
        let headers = |value: &'static str| {
            HeaderMap::from_iter([(AUTHORIZATION, HeaderValue::from_static(value))])
        };
        assert!(guard(None).admits(&HeaderMap::new()));
        let guarded = guard(Some("sesame"));
        assert!(!guarded.admits(&HeaderMap::new()));
        for (value, is_admitted) in [
            ("Bearer sesame", true),
            ("bearer  sesame", true),
            ("Bearer sesam", false),
            ("Bearer", false),
            ("Basic sesame", false),
            ("sesame", false),
        ] {
            assert_eq!(guarded.admits(&headers(value)), is_admitted, "{value}");
        }
    }

    #[test]
    fn ids_differ() {
        assert_ne!(new_id(), new_id());
    }
}
