//! How long a client waits: the header in which it says so, and the end of that time.

use std::future::Future;
use std::time::Duration;

use axum::http::HeaderMap;
use axum::http::StatusCode;
use tokio::time::Instant;

use crate::api_error::ApiError;
use crate::rpc::dialect::Dialect;

/// Of gRPC and gRPC-Web: up to eight digits and a unit.
const GRPC_TIMEOUT: &str = "grpc-timeout";
const GRPC_DIGITS: usize = 8;
/// Of Connect: up to ten digits, milliseconds.
const CONNECT_TIMEOUT: &str = "connect-timeout-ms";
const CONNECT_DIGITS: usize = 10;

/// When the client of a call stops waiting, if ever.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Deadline(Option<Waiting>);

#[derive(Clone, Copy, Debug)]
struct Waiting {
    wait: Duration,
    end: Instant,
}

impl Deadline {
    /// Of clients that wait as long as it takes.
    pub(crate) const NONE: Self = Self(None);

    /// What the headers say, from now on.
    ///
    /// # Errors
    /// 400 for a time that is none.
    pub(crate) fn of(dialect: Dialect, headers: &HeaderMap) -> Result<Self, ApiError> {
        let (name, parse): (_, fn(&str) -> Option<Duration>) = if dialect.is_framed() {
            (GRPC_TIMEOUT, parse_grpc)
        } else {
            (CONNECT_TIMEOUT, parse_connect)
        };
        let Some(value) = headers.get(name) else {
            return Ok(Self(None));
        };
        let text = value.to_str().unwrap_or("?");
        let wait = parse(text).ok_or_else(|| {
            let shown: String = text.chars().take(64).collect();
            ApiError::bad_request("bad_timeout", format!("{name} {shown:?} is no time"))
        })?;
        // A time beyond what the clock counts is as good as none.
        let end = Instant::now().checked_add(wait);
        Ok(Self(end.map(|end| Waiting { wait, end })))
    }

    /// Does the work if that takes no longer than the client waits; else it is dropped.
    ///
    /// # Errors
    /// 504 when it takes longer, and those of `work`.
    pub(crate) async fn bound<T>(
        self,
        work: impl Future<Output = Result<T, ApiError>>,
    ) -> Result<T, ApiError> {
        let Some(Waiting { wait, end }) = self.0 else {
            return work.await;
        };
        let exceeded = || {
            let message = format!("the client waits {wait:?} only, which are over");
            ApiError::new(StatusCode::GATEWAY_TIMEOUT, "deadline_exceeded", message)
                .hint("ask for less, or wait longer")
        };
        if Instant::now() >= end {
            return Err(exceeded());
        }
        let done = tokio::time::timeout_at(end, work).await;
        done.map_err(|_| exceeded())?
    }
}

fn parse_connect(text: &str) -> Option<Duration> {
    Some(Duration::from_millis(digits(text, CONNECT_DIGITS)?))
}

fn parse_grpc(text: &str) -> Option<Duration> {
    let (unit_at, unit) = text.char_indices().next_back()?;
    let number = digits(&text[..unit_at], GRPC_DIGITS)?;
    Some(match unit {
        'H' => Duration::from_secs(number * 3600),
        'M' => Duration::from_secs(number * 60),
        'S' => Duration::from_secs(number),
        'm' => Duration::from_millis(number),
        'u' => Duration::from_micros(number),
        'n' => Duration::from_nanos(number),
        _ => return None,
    })
}

/// A number of at most so many digits, which 64 bits hold with room to spare.
fn digits(text: &str, most: usize) -> Option<u64> {
    let is_number = text.len() <= most && text.bytes().all(|byte| byte.is_ascii_digit());
    text.parse().ok().filter(|_| is_number)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_those_of_the_protocols() {
        for (text, wanted) in [
            ("1H", Some(Duration::from_secs(3600))),
            ("2M", Some(Duration::from_secs(120))),
            ("99999999S", Some(Duration::from_secs(99_999_999))),
            ("100m", Some(Duration::from_millis(100))),
            ("7u", Some(Duration::from_micros(7))),
            ("0n", Some(Duration::ZERO)),
            ("100000000S", None),
            ("1", None),
            ("S", None),
            ("-1S", None),
            ("+1S", None),
            ("1é", None),
            ("", None),
        ] {
            assert_eq!(parse_grpc(text), wanted, "{text:?}");
        }
        for (text, wanted) in [
            ("0", Some(Duration::ZERO)),
            ("9999999999", Some(Duration::from_millis(9_999_999_999))),
            ("10000000000", None),
            ("1s", None),
            ("+1", None),
            ("", None),
        ] {
            assert_eq!(parse_connect(text), wanted, "{text:?}");
        }
    }

    #[tokio::test]
    async fn what_takes_longer_than_the_client_waits_ends() {
        let mut headers = HeaderMap::new();
        headers.insert(GRPC_TIMEOUT, "1m".parse().expect("a value"));
        let deadline = Deadline::of(Dialect::Grpc, &headers).expect("a time");
        let endless = std::future::pending::<Result<(), ApiError>>();
        let error = deadline.bound(endless).await.expect_err("it is over");
        assert_eq!(error.status, StatusCode::GATEWAY_TIMEOUT);
        let none = Deadline::of(Dialect::Grpc, &HeaderMap::new()).expect("no time");
        assert_eq!(none.bound(async { Ok(1) }).await, Ok(1));
    }
}
