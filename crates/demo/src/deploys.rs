//! The deploys of the day.

use std::time::Duration;

use crate::truths::REGRESSION;
use crate::truths::RENAME;

/// A new version of a service.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Deploy {
    /// When, nanoseconds since the Unix epoch.
    pub time_ns: i64,
    /// The service.
    pub service: &'static str,
    /// The label `version` from then on.
    pub version: &'static str,
    /// What people say of it.
    pub text: String,
}

/// A change of version of a service.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Change {
    pub(crate) service: &'static str,
    pub(crate) before_end: Duration,
    pub(crate) version_before: &'static str,
    pub(crate) version_after: &'static str,
}

/// By time. That of `search` changes nothing: not every deploy is to blame for something.
pub(crate) const CHANGES: [Change; 3] = [
    Change {
        service: RENAME.service,
        before_end: RENAME.before_end,
        version_before: RENAME.version_before,
        version_after: RENAME.version_after,
    },
    Change {
        service: "search",
        before_end: Duration::from_secs(10 * 3600),
        version_before: "v4",
        version_after: "v5",
    },
    Change {
        service: REGRESSION.service,
        before_end: REGRESSION.before_end,
        version_before: REGRESSION.version_before,
        version_after: REGRESSION.version_after,
    },
];

pub(crate) fn change_of(service: &str) -> Option<Change> {
    let mut changes = CHANGES.into_iter();
    changes.find(|change| change.service == service)
}
