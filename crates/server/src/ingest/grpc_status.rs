//! Errors as clients of gRPC see them.

use std::time::Duration;

use axum::http::StatusCode;
use prost::Message;
use tonic::Code;
use tonic::Status;

use crate::api_error::ApiError;

/// What tells a client when to try again (`google/rpc/error_details.proto`).
const RETRY_INFO_URL: &str = "type.googleapis.com/google.rpc.RetryInfo";

/// `google.rpc.Status`, which carries details of an error.
#[derive(Clone, PartialEq, Message)]
struct RpcStatus {
    #[prost(int32, tag = "1")]
    code: i32,
    #[prost(string, tag = "2")]
    message: String,
    #[prost(message, repeated, tag = "3")]
    details: Vec<Detail>,
}

/// `google.protobuf.Any`.
#[derive(Clone, PartialEq, Message)]
struct Detail {
    #[prost(string, tag = "1")]
    type_url: String,
    #[prost(bytes = "vec", tag = "2")]
    value: Vec<u8>,
}

/// `google.rpc.RetryInfo`.
#[derive(Clone, PartialEq, Message)]
struct RetryInfo {
    #[prost(message, optional, tag = "1")]
    retry_delay: Option<Delay>,
}

/// `google.protobuf.Duration`.
#[derive(Clone, Copy, PartialEq, Message)]
struct Delay {
    #[prost(int64, tag = "1")]
    seconds: i64,
    #[prost(int32, tag = "2")]
    nanos: i32,
}

/// Codes after which OTLP clients try again must be those that time cures (OTLP specification,
/// "OTLP/gRPC Response"). Out of range is one of them and so not the code of what is too large:
/// the client would send it for ever.
pub(crate) fn grpc_status(error: &ApiError) -> Status {
    let code = match error.status {
        StatusCode::BAD_REQUEST
        | StatusCode::UNPROCESSABLE_ENTITY
        | StatusCode::PAYLOAD_TOO_LARGE
        | StatusCode::UNSUPPORTED_MEDIA_TYPE => Code::InvalidArgument,
        StatusCode::TOO_MANY_REQUESTS
        | StatusCode::SERVICE_UNAVAILABLE
        | StatusCode::REQUEST_TIMEOUT => Code::Unavailable,
        StatusCode::NOT_FOUND => Code::NotFound,
        StatusCode::CONFLICT => Code::AlreadyExists,
        StatusCode::GATEWAY_TIMEOUT => Code::DeadlineExceeded,
        StatusCode::NOT_IMPLEMENTED => Code::Unimplemented,
        StatusCode::UNAUTHORIZED => Code::Unauthenticated,
        StatusCode::FORBIDDEN => Code::PermissionDenied,
        _ => Code::Internal,
    };
    status_of(code, error)
}

/// The same where no client of OTLP asks: what is too much at once has the code that it has over
/// Connect.
pub(crate) fn call_status(error: &ApiError) -> Status {
    match error.status {
        StatusCode::TOO_MANY_REQUESTS => status_of(Code::ResourceExhausted, error),
        _ => grpc_status(error),
    }
}

fn status_of(code: Code, error: &ApiError) -> Status {
    let message = error.message.clone();
    let is_temporary = matches!(code, Code::Unavailable | Code::ResourceExhausted);
    let Some(wait) = error.retry_after.filter(|_| is_temporary) else {
        return Status::new(code, message);
    };
    let details = RpcStatus::retry_after(code, &message, wait).encode_to_vec();
    Status::with_details(code, message, details.into())
}

impl RpcStatus {
    fn retry_after(code: Code, message: &str, wait: Duration) -> Self {
        let delay = Delay {
            seconds: i64::try_from(wait.as_secs()).unwrap_or(i64::MAX),
            nanos: wait.subsec_nanos().cast_signed(),
        };
        let info = RetryInfo {
            retry_delay: Some(delay),
        };
        Self {
            code: code as i32,
            message: message.to_owned(),
            details: vec![Detail {
                type_url: RETRY_INFO_URL.to_owned(),
                value: info.encode_to_vec(),
            }],
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_time_cures_is_sent_again() {
        let temporary = [Code::Unavailable];
        let cases = [
            (400, false),
            (401, false),
            (403, false),
            (404, false),
            (408, true),
            (409, false),
            (413, false),
            (415, false),
            (422, false),
            (429, true),
            (500, false),
            (501, false),
            (503, true),
        ];
        for (status, is_temporary) in cases {
            let status = StatusCode::from_u16(status).expect("a status");
            let code = grpc_status(&ApiError::new(status, "code", "message")).code();
            assert_eq!(
                temporary.contains(&code),
                is_temporary,
                "{status}: {code:?}"
            );
        }
    }

    #[test]
    fn a_client_learns_when_to_try_again() {
        let mut error = ApiError::new(StatusCode::TOO_MANY_REQUESTS, "rate_limited", "too fast");
        error.retry_after = Some(Duration::from_millis(1500));
        let status = grpc_status(&error);
        let details = RpcStatus::decode(status.details()).expect("a status");
        assert_eq!(details.code, 14);
        assert_eq!(details.details[0].type_url, RETRY_INFO_URL);
        let info = RetryInfo::decode(&details.details[0].value[..]).expect("an info");
        let delay = Delay {
            seconds: 1,
            nanos: 500_000_000,
        };
        assert_eq!(info.retry_delay, Some(delay));
        let never = ApiError::new(StatusCode::BAD_REQUEST, "bad", "no");
        assert_eq!(grpc_status(&never).details(), b"");
        let of_call = call_status(&error);
        assert_eq!(of_call.code(), Code::ResourceExhausted);
        let details = RpcStatus::decode(of_call.details()).expect("a status");
        assert_eq!(details.code, 8);
        assert_eq!(call_status(&never).code(), Code::InvalidArgument);
    }
}
