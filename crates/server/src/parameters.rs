//! The parameters of a request's URL.

use axum::extract::FromRequestParts;
use axum::extract::Request;
use axum::http::Uri;
use axum::http::request::Parts;
use axum::middleware::Next;
use axum::response::IntoResponse;
use axum::response::Response;
use std::convert::Infallible;
use std::str::FromStr;

use crate::api_error::ApiError;
use crate::route_parameters::Parameter;

/// The parameters in the order of the URL.
#[derive(Clone, Debug, Default)]
pub(crate) struct Parameters {
    pairs: Vec<(String, String)>,
}

impl Parameters {
    pub(crate) fn of(uri: &Uri) -> Self {
        let query = uri.query().unwrap_or("");
        Self {
            pairs: form_urlencoded::parse(query.as_bytes())
                .into_owned()
                .collect(),
        }
    }

    /// The value; an empty one counts as absent, because forms and scripts send those.
    pub(crate) fn one(&self, name: &str) -> Option<&str> {
        self.all(name).next()
    }

    pub(crate) fn all(&self, name: &str) -> impl Iterator<Item = &str> {
        self.pairs
            .iter()
            .filter(move |(key, value)| key == name && !value.is_empty())
            .map(|(_, value)| value.as_str())
    }

    /// Names and values as they come, empty values left out.
    pub(crate) fn in_order(&self) -> impl Iterator<Item = (&str, &str)> {
        let given = self.pairs.iter().filter(|(_, value)| !value.is_empty());
        given.map(|(name, value)| (name.as_str(), value.as_str()))
    }

    /// A number, when it is given.
    pub(crate) fn number<T: FromStr>(&self, name: &str) -> Result<Option<T>, ApiError> {
        let Some(text) = self.one(name) else {
            return Ok(None);
        };
        let number = text.parse().map_err(|_| {
            let message = format!("{name}: {text:?} is no whole number in range");
            ApiError::bad_request("bad_number", message)
        })?;
        Ok(Some(number))
    }

    /// Whether a switch is on; it is off when it is not given.
    pub(crate) fn is_on(&self, name: &str) -> Result<bool, ApiError> {
        match self.one(name) {
            None | Some("false") => Ok(false),
            Some("true") => Ok(true),
            Some(other) => {
                let message = format!("{name}: {other:?} is neither true nor false");
                Err(ApiError::bad_request("bad_switch", message))
            }
        }
    }
}

impl<S: Sync> FromRequestParts<S> for Parameters {
    type Rejection = Infallible;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Infallible> {
        Ok(Self::of(&parts.uri))
    }
}

/// Refuses what a route does not know: a misspelt `form=` for `from=`, or a filter that is not
/// there yet, would otherwise give a wrong answer that looks right.
pub(crate) async fn check_parameters(
    known: &'static [Parameter],
    request: Request,
    next: Next,
) -> Response {
    match check(known, &Parameters::of(request.uri())) {
        Ok(()) => next.run(request).await,
        Err(error) => error.into_response(),
    }
}

fn check(known: &[Parameter], given: &Parameters) -> Result<(), ApiError> {
    let mut seen: Vec<&str> = Vec::new();
    for (name, _) in &given.pairs {
        let Some(parameter) = known.iter().find(|parameter| parameter.name == name) else {
            let message = format!("parameter {name:?} is not known here");
            let names: Vec<&str> = known.iter().map(|parameter| parameter.name).collect();
            let hint = match names[..] {
                [] => "this route takes none".to_owned(),
                _ => format!("known: {}", names.join(", ")),
            };
            return Err(ApiError::bad_request("unknown_parameter", message).hint(hint));
        };
        if !parameter.is_repeatable && seen.contains(&name.as_str()) {
            let message = format!("parameter {name:?} is given twice");
            return Err(ApiError::bad_request("repeated_parameter", message));
        }
        seen.push(name);
    }
    Ok(())
}
