//! Which dialect a request speaks: its Content-Type says.

use axum::extract::Request;
use axum::http::HeaderMap;
use axum::http::StatusCode;
use axum::http::header::CONTENT_TYPE;

use crate::api_error::ApiError;

/// How messages are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Codec {
    Protobuf,
    Json,
}

/// How a call is put into HTTP. The answer speaks as the request did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Dialect {
    /// The body is the message, and the status that of HTTP
    /// (<https://connectrpc.com/docs/protocol>, "Unary").
    Connect(Codec),
    /// The body is a frame with the message, the status is in trailers.
    Grpc,
    /// The same with the trailers as a last frame of the body.
    GrpcWeb,
    /// That in base64, for browsers that read nothing but text.
    GrpcWebText,
}

impl Dialect {
    /// # Errors
    /// 415 for what none of them is.
    pub(crate) fn of(headers: &HeaderMap) -> Result<Self, ApiError> {
        let value = headers.get(CONTENT_TYPE).map(|value| value.as_bytes());
        let value = String::from_utf8_lossy(value.unwrap_or_default()).to_ascii_lowercase();
        let media_type = value.split(';').next().unwrap_or("").trim();
        match media_type {
            "application/proto" => Ok(Self::Connect(Codec::Protobuf)),
            "application/json" => Ok(Self::Connect(Codec::Json)),
            "application/grpc" | "application/grpc+proto" => Ok(Self::Grpc),
            "application/grpc-web" | "application/grpc-web+proto" => Ok(Self::GrpcWeb),
            "application/grpc-web-text" | "application/grpc-web-text+proto" => {
                Ok(Self::GrpcWebText)
            }
            _ => {
                let message = format!("content-type {media_type:?} is not read here");
                let status = StatusCode::UNSUPPORTED_MEDIA_TYPE;
                Err(ApiError::new(status, "unknown_content_type", message).hint(
                    "send application/proto or application/json (Connect), application/grpc or \
                     application/grpc-web",
                ))
            }
        }
    }

    /// That of a request to `/package.v1.Service/Method`, below whatever prefix.
    pub(crate) fn of_call(request: &Request) -> Option<Self> {
        let service = request.uri().path().rsplit('/').nth(1);
        let is_call = service.is_some_and(|service| service.contains('.'));
        is_call.then(|| Self::of(request.headers()).ok()).flatten()
    }

    pub(crate) const fn codec(self) -> Codec {
        match self {
            Self::Connect(codec) => codec,
            Self::Grpc | Self::GrpcWeb | Self::GrpcWebText => Codec::Protobuf,
        }
    }

    pub(crate) const fn content_type(self) -> &'static str {
        match self {
            Self::Connect(Codec::Protobuf) => "application/proto",
            Self::Connect(Codec::Json) => "application/json",
            Self::Grpc => "application/grpc",
            Self::GrpcWeb => "application/grpc-web+proto",
            Self::GrpcWebText => "application/grpc-web-text+proto",
        }
    }

    /// Whether messages stand in frames.
    pub(crate) const fn is_framed(self) -> bool {
        !matches!(self, Self::Connect(_))
    }
}

#[cfg(test)]
mod tests {
    use axum::http::HeaderValue;

    use super::*;

    #[test]
    fn the_content_type_names_the_dialect() {
        let dialect = |value: &'static str| {
            let mut headers = HeaderMap::new();
            headers.insert(CONTENT_TYPE, HeaderValue::from_static(value));
            Dialect::of(&headers)
        };
        let cases = [
            ("application/proto", Dialect::Connect(Codec::Protobuf)),
            (
                "application/JSON; charset=utf-8",
                Dialect::Connect(Codec::Json),
            ),
            ("application/grpc", Dialect::Grpc),
            ("application/grpc+proto", Dialect::Grpc),
            ("application/grpc-web", Dialect::GrpcWeb),
            ("application/grpc-web-text", Dialect::GrpcWebText),
        ];
        for (value, wanted) in cases {
            assert_eq!(dialect(value), Ok(wanted), "{value}");
        }
        for value in [
            "text/plain",
            "application/connect+proto",
            "application/grpc+json",
            "",
        ] {
            let error = dialect(value).expect_err(value);
            assert_eq!(error.status, StatusCode::UNSUPPORTED_MEDIA_TYPE);
        }
        assert!(Dialect::of(&HeaderMap::new()).is_err());
    }
}
