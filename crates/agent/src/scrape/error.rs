//! What can be wrong with a scrape configuration.

use std::path::PathBuf;

/// Why a job cannot be run; all of it is found before anything is scraped.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ScrapeConfigError {
    /// Two jobs of one name, or one without.
    #[error("{name:?} names no job or two; give every job a name of its own")]
    JobName {
        /// The name as given.
        name: String,
    },
    /// A time is out of its range.
    #[error("job {job}: {key} {value:?} is out of range; choose {range}")]
    Time {
        /// The job.
        job: String,
        /// The configuration key.
        key: &'static str,
        /// The value as given.
        value: std::time::Duration,
        /// What is allowed.
        range: &'static str,
    },
    /// A rule's pattern does not parse.
    #[error("relabel pattern {pattern:?} is no regular expression: {source}")]
    Pattern {
        /// The pattern as given.
        pattern: String,
        /// What the parser stumbled over.
        source: Box<regex::Error>,
    },
    /// A rule lacks what its action needs.
    #[error("relabel action {action} needs {missing}")]
    Rule {
        /// The action.
        action: &'static str,
        /// What is not there.
        missing: &'static str,
    },
    /// A path of target files that cannot be matched.
    #[error("target_files {pattern:?}: {problem}")]
    FilePattern {
        /// The path as given.
        pattern: String,
        /// What is wrong.
        problem: &'static str,
    },
    /// The file with certificates of authorities.
    #[error("ca_file {}: {problem}", path.display())]
    Authorities {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        problem: String,
    },
}
