//! Profiles that programs offer over HTTP: `net/http/pprof` and what speaks like it.
//!
//! ```text
//! discovery ─ labels ─► relabel rules ─► endpoints ─ due ─► fetch ─► decode ─► delta ─► batch ─► exporter
//! ```
//!
//! This is no [`Collector`](crate::collector::Collector): what comes in has names already and covers
//! times of its own, so it needs neither windows of addresses nor the symbolizer. One thread decides
//! and keeps the state; each request has a thread of its own for as long as it takes, because asking
//! for fourteen seconds of CPU time is fourteen seconds of waiting.

mod batch;
mod credentials;
mod decode;
mod delta;
mod discovery;
mod endpoint;
mod error;
mod failure;
mod fetch;
mod job;
mod profiles;
mod progress;
mod relabel;
mod request;
mod scraper;
mod silence;
mod status;
mod target_file;
mod target_files;

pub use self::credentials::Credentials;
pub use self::credentials::SecretSource;
pub use self::delta::Cumulative;
pub use self::delta::DeltaError;
pub use self::delta::Subtracted;
pub use self::discovery::StaticTargets;
pub use self::discovery::TargetDiscovery;
pub use self::error::ScrapeConfigError;
pub use self::job::ScrapeJob;
pub use self::job::ScrapeScheme;
pub use self::job::TargetGroup;
pub use self::profiles::ProfileReading;
pub use self::profiles::ScrapedProfile;
pub use self::profiles::default_profiles;
pub use self::relabel::RelabelAction;
pub use self::relabel::RelabelError;
pub use self::relabel::RelabelRule;
pub use self::relabel::RelabelSpec;
pub use self::relabel::relabel;
pub use self::status::EmptyEndpoint;
pub use self::status::FailingEndpoint;
pub use self::status::ScrapeJobStatus;
pub use self::status::ScrapeStatus;
pub use self::target_file::TargetFileError;
pub use self::target_file::parse_target_file;
pub use self::target_file::parse_target_groups;
pub use self::target_files::TargetFiles;

pub(crate) use self::job::check_jobs;
pub(crate) use self::scraper::Scraper;
