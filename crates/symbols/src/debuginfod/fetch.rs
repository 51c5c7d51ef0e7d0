//! Asking the servers.

use super::disk::DiskCache;
use super::options::{Clock, DebuginfodOptions};
use std::io::{self, Read, Write};
use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, SystemTime};

/// How long a connection may take to come about; a server that is further away than this is not
/// there.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);

/// How long one file may take in all.
const TRANSFER_TIMEOUT: Duration = Duration::from_secs(15 * 60);

#[derive(Debug)]
pub(super) struct Servers {
    agent: ureq::Agent,
    servers: Vec<Server>,
    max_file_bytes: u64,
    retry_after: Duration,
}

#[derive(Debug)]
struct Server {
    /// Base address without the slash at its end.
    base: String,
    /// Set when the server failed: asking it for each of a thousand files would take as many
    /// timeouts.
    resting_until: Mutex<Option<SystemTime>>,
}

/// How a question to all servers ended.
#[derive(Debug)]
pub(super) enum Fetched {
    File {
        path: PathBuf,
        size: u64,
    },
    /// Every server was asked and none knows the build id.
    Absent,
    /// At least one server could not be asked.
    Failed,
    /// The cache directory could not be written.
    DiskFailed,
}

/// Why one server gave nothing.
enum Miss {
    Unknown,
    Failed(String),
    /// No fault of the server's, and no other server can help.
    Disk(io::Error),
}

impl Servers {
    pub(super) fn new(options: &DebuginfodOptions) -> Self {
        let tls = ureq::tls::TlsConfig::builder()
            .root_certs(ureq::tls::RootCerts::PlatformVerifier)
            .build();
        let config = ureq::Agent::config_builder()
            .tls_config(tls)
            .timeout_connect(Some(CONNECT_TIMEOUT.min(options.timeout)))
            .timeout_recv_response(Some(options.timeout))
            .timeout_per_read(Some(options.timeout))
            .timeout_global(Some(TRANSFER_TIMEOUT))
            .user_agent(concat!("candela/", env!("CARGO_PKG_VERSION")))
            .build();
        let servers = options.servers.iter().map(|base| Server {
            base: base.trim_end_matches('/').to_owned(),
            resting_until: Mutex::new(None),
        });
        Self {
            agent: config.into(),
            servers: servers.collect(),
            max_file_bytes: options.max_file_bytes,
            retry_after: options.retry_after,
        }
    }

    pub(super) fn fetch(&self, digits: &str, disk: &DiskCache, clock: Clock) -> Fetched {
        let mut all_answered = true;
        for server in &self.servers {
            if server.is_resting(clock()) {
                all_answered = false;
                continue;
            }
            match self.fetch_from(server, digits, disk) {
                Ok((path, size)) => {
                    disk.shrink(&path);
                    return Fetched::File { path, size };
                }
                Err(Miss::Unknown) => {}
                Err(Miss::Disk(error)) => {
                    tracing::warn!(
                        build_id = digits, %error,
                        "a debug file could not be written to the cache directory"
                    );
                    return Fetched::DiskFailed;
                }
                Err(Miss::Failed(reason)) => {
                    all_answered = false;
                    server.rest_until(clock() + self.retry_after);
                    tracing::warn!(
                        server = server.base,
                        build_id = digits,
                        reason,
                        "a debuginfod server failed; it is left alone for {} s",
                        self.retry_after.as_secs()
                    );
                }
            }
        }
        if all_answered {
            Fetched::Absent
        } else {
            Fetched::Failed
        }
    }

    fn fetch_from(
        &self,
        server: &Server,
        digits: &str,
        disk: &DiskCache,
    ) -> Result<(PathBuf, u64), Miss> {
        let url = format!("{}/buildid/{digits}/debuginfo", server.base);
        let response = match self.agent.get(&url).call() {
            Ok(response) => response,
            Err(ureq::Error::StatusCode(404)) => return Err(Miss::Unknown),
            Err(error) => return Err(Miss::Failed(error.to_string())),
        };
        let announced = response.body().content_length();
        if announced.is_some_and(|size| size > self.max_file_bytes) {
            tracing::warn!(
                build_id = digits,
                size = announced,
                "a debug file is larger than the limit"
            );
            return Err(Miss::Unknown);
        }
        let mut body = response
            .into_body()
            .into_reader()
            .take(self.max_file_bytes + 1);
        let mut incoming = disk.begin(digits).map_err(Miss::Disk)?;
        let size = copy(&mut body, &mut incoming.file)?;
        if size > self.max_file_bytes {
            return Err(Miss::Unknown);
        }
        if size == 0 {
            // An empty file would read as an absence; the next server may do better.
            return Err(Miss::Unknown);
        }
        match incoming.build_id() {
            Some(given) if given.gnu_hex().as_deref() == Some(digits) => {}
            Some(given) => {
                tracing::warn!(
                    server = server.base,
                    build_id = digits,
                    %given,
                    "a debuginfod server gave a file with another build id; it is not used"
                );
                return Err(Miss::Unknown);
            }
            None => return Err(Miss::Failed("what it sent is no ELF file".to_owned())),
        }
        Ok((incoming.commit().map_err(Miss::Disk)?, size))
    }
}

/// As [`io::copy`], but says which side failed.
fn copy(from: &mut impl Read, to: &mut impl Write) -> Result<u64, Miss> {
    let mut buffer = vec![0; 64 * 1024];
    let mut copied = 0;
    loop {
        let count = match from.read(&mut buffer) {
            Ok(0) => return Ok(copied),
            Ok(count) => count,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(error) => return Err(Miss::Failed(error.to_string())),
        };
        to.write_all(&buffer[..count]).map_err(Miss::Disk)?;
        copied += count as u64;
    }
}

impl Server {
    fn is_resting(&self, now: SystemTime) -> bool {
        let until = self
            .resting_until
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        until.is_some_and(|until| now < until)
    }

    fn rest_until(&self, until: SystemTime) {
        *self
            .resting_until
            .lock()
            .unwrap_or_else(PoisonError::into_inner) = Some(until);
    }
}
