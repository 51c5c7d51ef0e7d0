//! The frames that gRPC puts messages into: a flag, a length in four bytes, and the message
//! (<https://github.com/grpc/grpc/blob/master/doc/PROTOCOL-HTTP2.md>).

use axum::http::HeaderMap;
use axum::http::HeaderValue;
use axum::http::StatusCode;
use bytes::Bytes;

use crate::api_error::ApiError;
use crate::ingest::body::Encoding;
use crate::ingest::body::SentBody;

pub(crate) const GRPC_ENCODING: &str = "grpc-encoding";
/// What the answer may be compressed with; of errors, what the next request may be.
pub(crate) const GRPC_ACCEPT_ENCODING: &str = "grpc-accept-encoding";
pub(crate) const ACCEPTED_ENCODINGS: &str = "identity,gzip";

/// Whether it is compressed, and the length of the message that follows.
pub(crate) const FRAME_HEAD: usize = 5;

const COMPRESSED: u8 = 1;
/// In gRPC-Web, of the frame that has the trailers.
const TRAILERS: u8 = 0x80;

/// How a compressed message is compressed.
pub(crate) fn message_encoding(headers: &HeaderMap) -> Result<Encoding, ApiError> {
    let name = headers.get(GRPC_ENCODING).map(HeaderValue::as_bytes);
    match name.unwrap_or(b"identity") {
        b"identity" => Ok(Encoding::Identity),
        b"gzip" => Ok(Encoding::Gzip),
        other => {
            let name = String::from_utf8_lossy(other);
            let message = format!("{GRPC_ENCODING} {name:?} is not known");
            let status = StatusCode::NOT_IMPLEMENTED;
            Err(ApiError::new(status, "unknown_encoding", message))
        }
    }
}

/// How the message of a body is compressed, and its length.
pub(crate) fn frame_head(start: &[u8], announced: Encoding) -> Result<(Encoding, usize), ApiError> {
    let broken = |message: &str| ApiError::bad_request("broken_body", message);
    let Some(&[flag, first, second, third, fourth]) = start.first_chunk::<FRAME_HEAD>() else {
        return Err(broken("the body ends before its first message"));
    };
    let length = u32::from_be_bytes([first, second, third, fourth]) as usize;
    let encoding = match flag {
        0 => Encoding::Identity,
        COMPRESSED if announced != Encoding::Identity => announced,
        _ => return Err(broken("a compressed message without grpc-encoding")),
    };
    Ok((encoding, length))
}

/// The one message of a body.
pub(crate) fn framed_message(mut body: Bytes, announced: Encoding) -> Result<SentBody, ApiError> {
    let (encoding, length) = frame_head(&body, announced)?;
    let bytes = body.split_off(FRAME_HEAD);
    if bytes.len() != length {
        let message = format!(
            "the body must be one message of the {length} bytes that it announces, and has {}",
            bytes.len()
        );
        return Err(ApiError::bad_request("broken_body", message));
    }
    Ok(SentBody { bytes, encoding })
}

/// A message in its frame.
///
/// # Panics
/// When it has 4 GiB, which no answer has.
pub(crate) fn frame(message: &[u8], is_compressed: bool) -> Vec<u8> {
    framed(u8::from(is_compressed), message)
}

/// The trailers in theirs, for gRPC-Web.
pub(crate) fn trailers_frame(trailers: &HeaderMap) -> Vec<u8> {
    let mut text = Vec::new();
    for (name, value) in trailers {
        text.extend_from_slice(name.as_str().as_bytes());
        text.push(b':');
        text.extend_from_slice(value.as_bytes());
        text.extend_from_slice(b"\r\n");
    }
    framed(TRAILERS, &text)
}

fn framed(flag: u8, bytes: &[u8]) -> Vec<u8> {
    let length = u32::try_from(bytes.len()).expect("answers are far smaller than 4 GiB");
    let mut framed = Vec::with_capacity(FRAME_HEAD + bytes.len());
    framed.push(flag);
    framed.extend_from_slice(&length.to_be_bytes());
    framed.extend_from_slice(bytes);
    framed
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_body_is_one_whole_message() {
        let framed = |flag: u8, length: u32, bytes: &[u8]| {
            let mut body = vec![flag];
            body.extend(length.to_be_bytes());
            body.extend(bytes);
            Bytes::from(body)
        };
        let plain = framed_message(framed(0, 3, b"abc"), Encoding::Gzip).expect("one message");
        assert_eq!(
            (plain.bytes, plain.encoding),
            (Bytes::from_static(b"abc"), Encoding::Identity)
        );
        let compressed = framed_message(framed(1, 3, b"abc"), Encoding::Gzip);
        let compressed = compressed.expect("one message");
        assert_eq!(compressed.encoding, Encoding::Gzip);
        for body in [
            Bytes::new(),
            framed(0, 4, b"abc"),
            framed(0, 2, b"abc"),
            framed(1, 3, b"abc"),
            framed(2, 3, b"abc"),
        ] {
            assert!(framed_message(body, Encoding::Identity).is_err());
        }
    }

    #[test]
    fn what_is_written_is_what_is_read() {
        let sent = framed_message(frame(b"abc", true).into(), Encoding::Gzip).expect("a frame");
        assert_eq!(&sent.bytes[..], b"abc");
        assert_eq!(sent.encoding, Encoding::Gzip);
        let mut trailers = HeaderMap::new();
        trailers.insert("grpc-status", HeaderValue::from_static("0"));
        let frame = trailers_frame(&trailers);
        assert_eq!(frame, b"\x80\0\0\0\x0fgrpc-status:0\r\n");
    }
}
