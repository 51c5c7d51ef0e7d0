//! One job: some targets, and how they are asked.

use std::path::PathBuf;
use std::time::Duration;

use candela_model::Labels;

use crate::scrape::credentials::Credentials;
use crate::scrape::error::ScrapeConfigError;
use crate::scrape::profiles::ScrapedProfile;
use crate::scrape::profiles::default_profiles;
use crate::scrape::relabel::RelabelRule;

/// Targets with the same settings; `ScrapeJob::new` gives the defaults.
#[derive(Clone, Debug)]
pub struct ScrapeJob {
    /// The label `job` of its series.
    pub name: String,
    /// Targets that the configuration names.
    pub static_targets: Vec<TargetGroup>,
    /// Files of targets; `*` and `?` in the last part of a path stand for any characters and one.
    pub target_files: Vec<String>,
    /// Applied to the labels of each target in this order.
    pub relabel: Vec<RelabelRule>,
    /// Time from one scrape of a profile to the next, 2 s to 1 h.
    pub interval: Duration,
    /// How long an answer may take, the time that it covers aside; 100 ms to 10 min.
    pub timeout: Duration,
    /// The time that a profile of CPU time covers, 1 s or more and shorter than `interval`.
    pub delta_duration: Duration,
    /// How targets are spoken to that do not say.
    pub scheme: ScrapeScheme,
    /// What stands before the paths of all profiles.
    pub path_prefix: String,
    /// Who we are.
    pub credentials: Option<Credentials>,
    /// Certificates (PEM) that alone vouch for targets over TLS; `None` takes the system's.
    pub ca_file: Option<PathBuf>,
    /// What targets are asked for.
    pub profiles: Vec<ScrapedProfile>,
}

/// Targets with labels that they share.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TargetGroup {
    /// `host:port`
    pub addresses: Vec<String>,
    /// Labels of each of them.
    pub labels: Labels,
}

/// The first part of a target's URL.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ScrapeScheme {
    /// Plain.
    #[default]
    Http,
    /// Over TLS; certificates are always verified.
    Https,
}

// === impl ScrapeScheme ===

impl ScrapeScheme {
    /// `http` or `https`.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Http => "http",
            Self::Https => "https",
        }
    }
}

// === impl ScrapeJob ===

impl ScrapeJob {
    /// The interval where none is configured.
    pub const DEFAULT_INTERVAL: Duration = Duration::from_secs(15);

    /// A job without targets, with the defaults of Alloy's `pyroscope.scrape`.
    #[must_use]
    pub fn new(name: &str) -> Self {
        Self {
            name: name.to_owned(),
            static_targets: Vec::new(),
            target_files: Vec::new(),
            relabel: Vec::new(),
            interval: Self::DEFAULT_INTERVAL,
            timeout: Duration::from_secs(10),
            delta_duration: Self::delta_duration_of(Self::DEFAULT_INTERVAL),
            scheme: ScrapeScheme::default(),
            path_prefix: String::new(),
            credentials: None,
            ca_file: None,
            profiles: default_profiles(),
        }
    }

    /// The time that profiles cover by default: all of the interval but the second in which the
    /// answer is written.
    #[must_use]
    pub fn delta_duration_of(interval: Duration) -> Duration {
        let second = Duration::from_secs(1);
        interval.saturating_sub(second).max(second)
    }

    /// Whether its times can be.
    ///
    /// # Errors
    /// [`ScrapeConfigError::Time`], [`ScrapeConfigError::JobName`].
    pub(crate) fn check(&self) -> Result<(), ScrapeConfigError> {
        if self.name.is_empty() {
            let name = String::new();
            return Err(ScrapeConfigError::JobName { name });
        }
        let within = |key, value: Duration, from: Duration, to: Duration, range| {
            if (from..=to).contains(&value) {
                return Ok(());
            }
            Err(ScrapeConfigError::Time {
                job: self.name.clone(),
                key,
                value,
                range,
            })
        };
        let second = Duration::from_secs(1);
        let longest = 600 * second;
        within(
            "scrape_interval",
            self.interval,
            2 * second,
            3600 * second,
            "2s to 1h",
        )?;
        within(
            "scrape_timeout",
            self.timeout,
            second / 10,
            longest,
            "100ms to 10m",
        )?;
        within(
            "delta_profiling_duration",
            self.delta_duration,
            second,
            // The request for the next window must not meet the one before.
            (self.interval - Duration::from_millis(1)).min(longest),
            "1s to less than scrape_interval, 10m at most",
        )
    }
}

/// Whether all jobs can run together.
///
/// # Errors
/// The first thing that stands against it.
pub(crate) fn check_jobs(jobs: &[ScrapeJob]) -> Result<(), ScrapeConfigError> {
    for (position, job) in jobs.iter().enumerate() {
        job.check()?;
        if jobs[..position].iter().any(|other| other.name == job.name) {
            let name = job.name.clone();
            return Err(ScrapeConfigError::JobName { name });
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn jobs_that_cannot_be_are_named() {
        let second = Duration::from_secs(1);
        assert!(check_jobs(&[ScrapeJob::new("a"), ScrapeJob::new("b")]).is_ok());
        let twice = check_jobs(&[ScrapeJob::new("a"), ScrapeJob::new("a")]);
        assert!(twice.expect_err("one name").to_string().contains("\"a\""));
        let mut job = ScrapeJob::new("a");
        job.delta_duration = job.interval;
        let error = job
            .check()
            .expect_err("as long as the interval")
            .to_string();
        assert!(error.contains("delta_profiling_duration 15s"), "{error}");
        job.delta_duration = 14 * second;
        job.timeout = Duration::ZERO;
        assert!(
            job.check()
                .expect_err("no time")
                .to_string()
                .contains("scrape_timeout")
        );
    }

    #[test]
    fn profiles_cover_all_but_a_second() {
        let seconds =
            |interval| ScrapeJob::delta_duration_of(Duration::from_secs(interval)).as_secs();
        assert_eq!([15, 60, 2].map(seconds), [14, 59, 1]);
    }
}
