//! One request over HTTP, bounded in time and size.

use std::fs;
use std::io;
use std::io::Read;
use std::path::Path;
use std::sync::Condvar;
use std::sync::Mutex;
use std::sync::PoisonError;
use std::time::Duration;
use std::time::Instant;

use ureq::tls::Certificate;
use ureq::tls::PemItem;
use ureq::tls::RootCerts;
use ureq::tls::TlsConfig;

use crate::scrape::credentials::Credentials;
use crate::scrape::error::ScrapeConfigError;
use crate::scrape::failure::Failure;
use crate::scrape::failure::FailureReason;
use crate::scrape::job::ScrapeJob;

/// Bytes of an answer, as the store's limit of a profile.
const MOST_BYTES: u64 = 64 << 20;

/// Answers up to this size are read as they come: there may be so many at once. Larger ones take
/// turns, so that targets cannot fill the memory together.
const SMALL_BYTES: u64 = 512 << 10;

/// Large answers that are in memory at once, until they are decoded.
const LARGE_AT_ONCE: usize = 4;

/// Bytes of an error's text that are looked at.
const ERROR_BYTES: u64 = 1024;

/// How the targets of a job are asked.
#[derive(Debug)]
pub(crate) struct Fetcher {
    agent: ureq::Agent,
    credentials: Option<Credentials>,
}

/// How many more may do something at once.
#[derive(Debug)]
pub(crate) struct Turns {
    free: Mutex<usize>,
    returned: Condvar,
}

/// Given back when it is dropped.
#[derive(Debug)]
pub(crate) struct Turn<'a>(&'a Turns);

/// The body of an answer.
#[derive(Debug)]
pub(crate) struct Fetched<'a> {
    pub(crate) bytes: Vec<u8>,
    /// Of a large one. It is for the bytes, not for reading them: while answers wait to be decoded
    /// they would pile up otherwise.
    pub(crate) turn: Option<Turn<'a>>,
}

// === impl Turns ===

impl Turns {
    pub(crate) fn of_large_answers() -> Self {
        Self {
            free: Mutex::new(LARGE_AT_ONCE),
            returned: Condvar::new(),
        }
    }

    fn wait(&self, deadline: Instant) -> Option<Turn<'_>> {
        // The count is right whoever panicked.
        let free = self.free.lock().unwrap_or_else(PoisonError::into_inner);
        let left = deadline.saturating_duration_since(Instant::now());
        let waited = self
            .returned
            .wait_timeout_while(free, left, |free| *free == 0);
        let (mut free, _) = waited.unwrap_or_else(PoisonError::into_inner);
        *free = free.checked_sub(1)?;
        Some(Turn(self))
    }
}

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        *self.0.free.lock().unwrap_or_else(PoisonError::into_inner) += 1;
        self.0.returned.notify_one();
    }
}

// === impl Fetcher ===

impl Fetcher {
    /// # Errors
    /// [`ScrapeConfigError::Authorities`].
    pub(crate) fn new(job: &ScrapeJob) -> Result<Self, ScrapeConfigError> {
        let roots = match &job.ca_file {
            None => RootCerts::PlatformVerifier,
            Some(path) => RootCerts::new_with_certs(&authorities(path)?),
        };
        let config = ureq::Agent::config_builder()
            .tls_config(TlsConfig::builder().root_certs(roots).build())
            .http_status_as_error(false)
            // Targets are neighbours; a proxy is for what is far away.
            .proxy(None)
            // The next request comes when most servers have closed the connection.
            .max_idle_connections(0)
            .user_agent(concat!("candela/", env!("CARGO_PKG_VERSION")))
            .build();
        Ok(Self {
            agent: config.into(),
            credentials: job.credentials.clone(),
        })
    }

    /// The body of an answer with status 200, decompressed if HTTP compressed it.
    pub(crate) fn fetch<'a>(
        &self,
        url: &str,
        timeout: Duration,
        turns: &'a Turns,
    ) -> Result<Fetched<'a>, Failure> {
        let deadline = Instant::now() + timeout;
        let mut request = self.agent.get(url);
        if let Some(credentials) = &self.credentials {
            let header = credentials.header();
            let header =
                header.map_err(|error| Failure::new(FailureReason::Credentials, &error))?;
            request = request.header("authorization", header);
        }
        let request = request.config().timeout_global(Some(timeout)).build();
        let response = request.call().map_err(|error| failure_of(&error))?;
        let status = response.status();
        let mut body = response.into_body().into_reader();
        if status != ureq::http::StatusCode::OK {
            let mut text = Vec::new();
            // What can be had of it; the status is what counts.
            let _ = body.take(ERROR_BYTES).read_to_end(&mut text);
            let text = String::from_utf8_lossy(&text);
            let reason = match status.as_u16() {
                401 | 403 => FailureReason::Unauthorized,
                404 => FailureReason::NotFound,
                _ => FailureReason::Status,
            };
            return Err(Failure::new(reason, &format!("{status}: {text}")));
        }
        let mut bytes = Vec::new();
        let read = body.by_ref().take(SMALL_BYTES).read_to_end(&mut bytes);
        read.map_err(|error| broken(&error))?;
        let mut turn = None;
        if bytes.len() as u64 == SMALL_BYTES {
            let busy = || Failure::new(FailureReason::Busy, "too many large answers at once");
            turn = Some(turns.wait(deadline).ok_or_else(busy)?);
            let rest = body.take(MOST_BYTES - SMALL_BYTES + 1);
            read_rest(rest, &mut bytes)?;
        }
        Ok(Fetched { bytes, turn })
    }
}

fn read_rest(mut rest: impl Read, bytes: &mut Vec<u8>) -> Result<(), Failure> {
    rest.read_to_end(bytes).map_err(|error| broken(&error))?;
    if bytes.len() as u64 <= MOST_BYTES {
        return Ok(());
    }
    let problem = format!("more than {} MiB", MOST_BYTES >> 20);
    Err(Failure::new(FailureReason::TooLarge, &problem))
}

fn authorities(path: &Path) -> Result<Vec<Certificate<'static>>, ScrapeConfigError> {
    let refused = |problem: String| ScrapeConfigError::Authorities {
        path: path.to_owned(),
        problem,
    };
    let pem = fs::read(path).map_err(|error| refused(error.to_string()))?;
    let mut certificates = Vec::new();
    for item in ureq::tls::parse_pem(&pem) {
        match item {
            Ok(PemItem::Certificate(certificate)) => certificates.push(certificate),
            Ok(_) => {}
            Err(error) => return Err(refused(error.to_string())),
        }
    }
    if certificates.is_empty() {
        return Err(refused("holds no certificate in PEM".to_owned()));
    }
    Ok(certificates)
}

fn failure_of(error: &ureq::Error) -> Failure {
    let reason = match error {
        ureq::Error::Timeout(_) => FailureReason::Timeout,
        ureq::Error::Io(error) if is_timeout(error) => FailureReason::Timeout,
        ureq::Error::BodyExceedsLimit(_) => FailureReason::TooLarge,
        ureq::Error::Protocol(_) | ureq::Error::Http(_) => FailureReason::Broken,
        ureq::Error::RedirectFailed | ureq::Error::TooManyRedirects => FailureReason::Status,
        _ => FailureReason::Unreachable,
    };
    Failure::new(reason, &error.to_string())
}

fn broken(error: &io::Error) -> Failure {
    let reason = match is_timeout(error) {
        true => FailureReason::Timeout,
        false => FailureReason::Broken,
    };
    Failure::new(reason, &error.to_string())
}

fn is_timeout(error: &io::Error) -> bool {
    let inner = error.get_ref().and_then(|inner| inner.downcast_ref());
    error.kind() == io::ErrorKind::TimedOut || matches!(inner, Some(ureq::Error::Timeout(_)))
}

#[cfg(test)]
mod tests {
    use std::io::BufRead;
    use std::io::BufReader;
    use std::io::Write;
    use std::net::TcpListener;

    use super::*;

    #[test]
    fn turns_come_back() {
        let turns = Turns::of_large_answers();
        let now = Instant::now();
        let taken: Vec<Turn<'_>> = (0..LARGE_AT_ONCE).filter_map(|_| turns.wait(now)).collect();
        assert_eq!(taken.len(), LARGE_AT_ONCE);
        assert!(turns.wait(now).is_none());
        drop(taken);
        assert!(turns.wait(now).is_some());
    }

    #[test]
    fn a_large_answer_keeps_its_turn_as_long_as_it_is_held() {
        let fetcher = Fetcher::new(&ScrapeJob::new("a")).expect("a sound job");
        let turns = Turns::of_large_answers();
        let free = || *turns.free.lock().expect("no panic while locked");
        for (bytes, taken) in [(SMALL_BYTES - 1, 0), (SMALL_BYTES + 1, 1)] {
            let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
            let address = listener.local_addr().expect("bound");
            let server = std::thread::spawn(move || {
                let (mut stream, _) = listener.accept().expect("a request");
                let mut lines = BufReader::new(stream.try_clone().expect("a socket")).lines();
                while lines
                    .next()
                    .is_some_and(|line| line.is_ok_and(|line| !line.is_empty()))
                {}
                let head = format!("HTTP/1.1 200 OK\r\nContent-Length: {bytes}\r\n\r\n");
                stream.write_all(head.as_bytes()).expect("sent");
                stream.write_all(&vec![0; bytes as usize]).expect("sent");
            });
            let url = format!("http://{address}/");
            let fetched = fetcher.fetch(&url, Duration::from_secs(60), &turns);
            let fetched = fetched.expect("an answer");
            assert_eq!(fetched.bytes.len() as u64, bytes);
            assert_eq!(free(), LARGE_AT_ONCE - taken);
            drop(fetched);
            assert_eq!(free(), LARGE_AT_ONCE);
            server.join().expect("no panic");
        }
    }

    #[test]
    fn a_file_without_authorities_is_named() {
        let folder = tempfile::tempdir().expect("a temporary directory");
        let mut job = ScrapeJob::new("a");
        for (name, content) in [("gone.pem", None), ("empty.pem", Some("no certificate"))] {
            let path = folder.path().join(name);
            if let Some(content) = content {
                fs::write(&path, content).expect("written");
            }
            job.ca_file = Some(path);
            let error = Fetcher::new(&job).expect_err(name).to_string();
            assert!(error.contains(name), "{error}");
        }
    }
}
