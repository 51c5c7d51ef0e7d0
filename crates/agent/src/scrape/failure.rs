//! Why a scrape gave nothing.

/// Reasons by which failures are counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum FailureReason {
    /// No connection: refused, no such host, a certificate that nobody vouches for.
    Unreachable,
    /// No answer in time.
    Timeout,
    /// 401 and 403.
    Unauthorized,
    /// 404: the program has no such profile.
    NotFound,
    /// Any other status than 200.
    Status,
    /// The connection broke off in the answer.
    Broken,
    /// The answer is larger than a profile may be.
    TooLarge,
    /// The answer is no pprof.
    NotPprof,
    /// Totals with more stacks than are remembered, or that are below zero.
    NotSubtractable,
    /// The file of a secret cannot be read.
    Credentials,
    /// The scrape before has not ended, or too many run.
    Busy,
    /// The target went away, or its labels changed, before it answered.
    TargetGone,
    /// A defect of ours.
    Internal,
}

/// A failure with what somebody needs to know of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Failure {
    pub(crate) reason: FailureReason,
    pub(crate) detail: String,
}

/// Characters of a detail: part of it is what a target says.
const LONGEST_DETAIL: usize = 300;

impl FailureReason {
    /// The name in status and metrics.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Unreachable => "unreachable",
            Self::Timeout => "timeout",
            Self::Unauthorized => "unauthorized",
            Self::NotFound => "not_found",
            Self::Status => "http_status",
            Self::Broken => "broken_answer",
            Self::TooLarge => "too_large",
            Self::NotPprof => "not_pprof",
            Self::NotSubtractable => "not_subtractable",
            Self::Credentials => "credentials",
            Self::Busy => "busy",
            Self::TargetGone => "target_gone",
            Self::Internal => "internal",
        }
    }
}

impl Failure {
    pub(crate) fn new(reason: FailureReason, detail: &str) -> Self {
        let visible = detail
            .chars()
            .map(|character| match character.is_control() {
                true => ' ',
                false => character,
            });
        let detail: String = visible.take(LONGEST_DETAIL).collect();
        Self {
            reason,
            detail: detail.trim().to_owned(),
        }
    }
}
