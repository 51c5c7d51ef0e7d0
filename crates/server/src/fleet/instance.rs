//! Which agent it is that calls itself a node, where two do.

use axum::http::HeaderMap;

use crate::api_error::ApiError;

/// Where agents say it, in streams and reports.
const HEADER: &str = "x-candela-instance";
/// Two identifiers and what is between them.
const MOST_BYTES: usize = 128;

/// The same for as long as an agent runs, and for no other agent. What it says means nothing here: it is compared.
///
/// Names of nodes become folders of buckets. Two agents of one name would overwrite each other's objects there, and here
/// each would end the other's stream, for ever.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Instance(String);

impl Instance {
    /// `None` for agents that do not say it: of these the last one has the name.
    ///
    /// # Errors
    /// 400 when it is none.
    pub(super) fn of(headers: &HeaderMap) -> Result<Option<Self>, ApiError> {
        let Some(value) = headers.get(HEADER) else {
            return Ok(None);
        };
        let text = value.to_str().unwrap_or_default();
        if text.is_empty() || text.len() > MOST_BYTES {
            let message = format!("{HEADER} is not 1 to {MOST_BYTES} letters and digits");
            return Err(ApiError::bad_request("bad_instance", message));
        }
        Ok(Some(Self(text.to_owned())))
    }

    #[cfg(test)]
    pub(super) fn test(text: &str) -> Self {
        Self(text.to_owned())
    }
}

#[cfg(test)]
mod tests {
    use axum::http::HeaderValue;

    use super::*;

    #[test]
    fn it_is_short_or_not_there() {
        let of = |value: Option<&str>| {
            let mut headers = HeaderMap::new();
            if let Some(value) = value {
                headers.insert(HEADER, HeaderValue::from_str(value).expect("a value"));
            }
            Instance::of(&headers).map_err(|error| error.code)
        };
        assert_eq!(of(None), Ok(None));
        assert_eq!(of(Some("a.b-c")), Ok(Some(Instance::test("a.b-c"))));
        assert_eq!(of(Some("")), Err("bad_instance"));
        assert_eq!(of(Some(&"x".repeat(129))), Err("bad_instance"));
    }
}
