//! Errors as clients of Connect see them (<https://connectrpc.com/docs/protocol>, "Error Codes").

use axum::http::StatusCode;

use crate::api_error::ApiError;

/// The code of an error, and the HTTP status that belongs to it. Only what is too large keeps its
/// own status: proxies and people know it, and clients go by the code in the body.
pub(crate) fn connect_code(error: &ApiError) -> (&'static str, StatusCode) {
    match error.status {
        StatusCode::PAYLOAD_TOO_LARGE => ("invalid_argument", StatusCode::PAYLOAD_TOO_LARGE),
        StatusCode::UNAUTHORIZED => ("unauthenticated", StatusCode::UNAUTHORIZED),
        StatusCode::FORBIDDEN => ("permission_denied", StatusCode::FORBIDDEN),
        StatusCode::NOT_FOUND => ("not_found", StatusCode::NOT_FOUND),
        StatusCode::CONFLICT => ("already_exists", StatusCode::CONFLICT),
        StatusCode::REQUEST_TIMEOUT | StatusCode::GATEWAY_TIMEOUT => {
            ("deadline_exceeded", StatusCode::GATEWAY_TIMEOUT)
        }
        StatusCode::TOO_MANY_REQUESTS => ("resource_exhausted", StatusCode::TOO_MANY_REQUESTS),
        StatusCode::NOT_IMPLEMENTED => ("unimplemented", StatusCode::NOT_IMPLEMENTED),
        StatusCode::SERVICE_UNAVAILABLE => ("unavailable", StatusCode::SERVICE_UNAVAILABLE),
        status if status.is_client_error() => ("invalid_argument", StatusCode::BAD_REQUEST),
        _ => ("internal", StatusCode::INTERNAL_SERVER_ERROR),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_have_the_statuses_of_the_protocol() {
        let cases = [
            (400, "invalid_argument", 400),
            (401, "unauthenticated", 401),
            (403, "permission_denied", 403),
            (404, "not_found", 404),
            (408, "deadline_exceeded", 504),
            (409, "already_exists", 409),
            (413, "invalid_argument", 413),
            (422, "invalid_argument", 400),
            (429, "resource_exhausted", 429),
            (500, "internal", 500),
            (501, "unimplemented", 501),
            (503, "unavailable", 503),
            (504, "deadline_exceeded", 504),
        ];
        for (status, code, answered) in cases {
            let status = StatusCode::from_u16(status).expect("a status");
            let (found, found_status) = connect_code(&ApiError::new(status, "code", "message"));
            assert_eq!((found, found_status.as_u16()), (code, answered), "{status}");
        }
    }
}
