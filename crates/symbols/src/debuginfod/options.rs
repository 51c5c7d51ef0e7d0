//! Settings of the client, as elfutils reads them from the environment.

use std::path::PathBuf;
use std::time::{Duration, SystemTime};

/// Tells the time; a parameter so that tests can let it pass.
pub type Clock = fn() -> SystemTime;

/// Settings of a [`Debuginfod`](super::Debuginfod).
#[derive(Debug, Clone)]
pub struct DebuginfodOptions {
    /// Base addresses of servers (`http` or `https`), asked in this order.
    pub servers: Vec<String>,
    /// Where fetched files are kept.
    pub cache_directory: PathBuf,
    /// How long a server may stay silent.
    pub timeout: Duration,
    /// Largest file that is fetched, in bytes.
    pub max_file_bytes: u64,
    /// Bound of the cache directory in bytes; the files unused for longest go first.
    pub max_cache_bytes: u64,
    /// How long an absence is remembered, on disk too. elfutils takes 10 minutes.
    pub absent_for: Duration,
    /// How long a server that failed is left alone.
    pub retry_after: Duration,
    /// The clock that decides how old things are.
    pub clock: Clock,
}

impl DebuginfodOptions {
    /// Settings for these servers and this directory, the rest as elfutils has it where it has it.
    pub fn new(servers: Vec<String>, cache_directory: PathBuf) -> Self {
        Self {
            servers,
            cache_directory,
            timeout: Duration::from_secs(90),
            max_file_bytes: 2 << 30,
            max_cache_bytes: 4 << 30,
            absent_for: Duration::from_secs(600),
            retry_after: Duration::from_secs(300),
            clock: SystemTime::now,
        }
    }

    /// Settings from `DEBUGINFOD_URLS`, `DEBUGINFOD_CACHE_PATH`, `DEBUGINFOD_TIMEOUT` (seconds) and
    /// `DEBUGINFOD_MAXSIZE` (bytes), read through `variable`; `None` without a usable server. The
    /// cache is that of elfutils: `$XDG_CACHE_HOME/debuginfod_client`, else
    /// `~/.cache/debuginfod_client`.
    pub fn from_environment(variable: impl Fn(&str) -> Option<String>) -> Option<Self> {
        let servers: Vec<String> = variable("DEBUGINFOD_URLS")?
            .split_whitespace()
            .filter(|word| word.starts_with("http://") || word.starts_with("https://"))
            .map(str::to_owned)
            .collect();
        if servers.is_empty() {
            return None;
        }
        let set = |name: &str| variable(name).filter(|value| !value.is_empty());
        let cache_directory = set("DEBUGINFOD_CACHE_PATH")
            .map(PathBuf::from)
            .or_else(|| Some(PathBuf::from(set("XDG_CACHE_HOME")?).join("debuginfod_client")))
            .or_else(|| Some(PathBuf::from(set("HOME")?).join(".cache/debuginfod_client")))?;
        let number = |name: &str| set(name)?.parse::<u64>().ok().filter(|value| *value > 0);
        let mut options = Self::new(servers, cache_directory);
        if let Some(seconds) = number("DEBUGINFOD_TIMEOUT") {
            options.timeout = Duration::from_secs(seconds);
        }
        if let Some(bytes) = number("DEBUGINFOD_MAXSIZE") {
            options.max_file_bytes = bytes;
        }
        Some(options)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(variables: &[(&str, &str)]) -> Option<DebuginfodOptions> {
        DebuginfodOptions::from_environment(|name| {
            variables
                .iter()
                .find(|(key, _)| *key == name)
                .map(|(_, value)| (*value).to_owned())
        })
    }

    #[test]
    fn the_environment_is_read_as_elfutils_reads_it() {
        assert!(read(&[("HOME", "/root")]).is_none());
        assert!(read(&[("HOME", "/root"), ("DEBUGINFOD_URLS", "ima:enforcing")]).is_none());
        let urls = (
            "DEBUGINFOD_URLS",
            "https://a.example  ima:ignore http://b.example:8002/",
        );
        let options =
            read(&[urls, ("HOME", "/root"), ("DEBUGINFOD_TIMEOUT", "7")]).expect("two servers");
        assert_eq!(
            options.servers,
            ["https://a.example", "http://b.example:8002/"]
        );
        assert_eq!(
            options.cache_directory,
            PathBuf::from("/root/.cache/debuginfod_client")
        );
        assert_eq!(options.timeout, Duration::from_secs(7));
        let moved = read(&[
            urls,
            ("DEBUGINFOD_CACHE_PATH", "/var/cache/d"),
            ("DEBUGINFOD_MAXSIZE", "99"),
        ]);
        let moved = moved.expect("two servers");
        assert_eq!(
            (moved.cache_directory, moved.max_file_bytes),
            (PathBuf::from("/var/cache/d"), 99)
        );
    }
}
