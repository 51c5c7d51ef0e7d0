//! What the thread of one request does.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::sync::Mutex;
use std::sync::PoisonError;
use std::sync::mpsc::SyncSender;
use std::time::Duration;
use std::time::SystemTime;
use std::time::UNIX_EPOCH;

use crate::scrape::decode::Scraped;
use crate::scrape::decode::decode;
use crate::scrape::endpoint::Endpoint;
use crate::scrape::failure::Failure;
use crate::scrape::failure::FailureReason;
use crate::scrape::fetch::Fetched;
use crate::scrape::fetch::Fetcher;
use crate::scrape::fetch::Turns;

/// What all requests share.
#[derive(Debug)]
pub(crate) struct Shared {
    turns: Turns,
    /// One answer at a time is decoded: what was small on the wire may be large in memory, and
    /// scraping is not worth more than one CPU.
    decoding: Mutex<()>,
}

/// An endpoint that is due.
#[derive(Debug)]
pub(crate) struct Request {
    pub(crate) key: u128,
    pub(crate) endpoint: Arc<Endpoint>,
    pub(crate) fetcher: Arc<Fetcher>,
    /// How long it may take, the time that the answer covers included.
    pub(crate) timeout: Duration,
}

/// What came of it, with when it was asked and answered (unix nanoseconds).
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) key: u128,
    /// Position of the job: the endpoint may be gone.
    pub(crate) job: usize,
    pub(crate) start_ns: i64,
    pub(crate) end_ns: i64,
    pub(crate) result: Result<Scraped, Failure>,
}

impl Default for Shared {
    fn default() -> Self {
        Self {
            turns: Turns::of_large_answers(),
            decoding: Mutex::new(()),
        }
    }
}

/// Always sends one answer, unless nobody takes answers any more.
pub(crate) fn run(request: &Request, shared: &Shared, answers: &SyncSender<Answer>) {
    let start_ns = unix_ns();
    let fetch = || {
        let Request {
            fetcher, endpoint, ..
        } = request;
        fetcher.fetch(&endpoint.url, request.timeout, &shared.turns)
    };
    let fetched = std::panic::catch_unwind(AssertUnwindSafe(fetch));
    let end_ns = unix_ns();
    let answer = |result| Answer {
        key: request.key,
        job: request.endpoint.job,
        start_ns,
        end_ns,
        result,
    };
    let Fetched { bytes, turn } = match fetched {
        Ok(Ok(fetched)) => fetched,
        Ok(Err(failure)) => {
            let _ = answers.send(answer(Err(failure)));
            return;
        }
        Err(_) => {
            let _ = answers.send(answer(Err(defect())));
            return;
        }
    };
    // Held until the profile is taken, so that decoded ones do not pile up.
    let _decoding = shared
        .decoding
        .lock()
        .unwrap_or_else(PoisonError::into_inner);
    let decoded = std::panic::catch_unwind(AssertUnwindSafe(|| decode(&bytes, &request.endpoint)));
    drop(bytes);
    drop(turn);
    let _ = answers.send(answer(decoded.unwrap_or_else(|_| Err(defect()))));
}

/// A panic in one thread must not end the scrapes of all others.
fn defect() -> Failure {
    Failure::new(
        FailureReason::Internal,
        "a defect of the agent; its log tells more",
    )
}

pub(crate) fn unix_ns() -> i64 {
    let since = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .unwrap_or_default();
    i64::try_from(since.as_nanos()).unwrap_or(i64::MAX)
}
