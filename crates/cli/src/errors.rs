//! How the program ends: the exit codes of the contract and one error type that carries them.

use std::fmt;
use std::process;

/// Exit codes that scripts rely on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ExitStatus {
    /// Something failed.
    Failed = 1,
    /// The command line or the configuration is wrong.
    Usage = 2,
    /// The question has no data.
    NoData = 5,
    /// A permission or a kernel feature is missing.
    Permission = 6,
    /// The server does not answer.
    Unreachable = 7,
    /// Interrupted before there was a result.
    Interrupted = 130,
}

/// What failed, why, and what to do: one line.
#[derive(Debug)]
pub(crate) struct CliError {
    pub(crate) status: ExitStatus,
    message: String,
}

/// Turns errors of the libraries into errors with an exit code.
pub(crate) trait Context<T> {
    /// With a code and a first half of the sentence.
    fn or_exit(self, status: ExitStatus, what: &str) -> Result<T, CliError>;
}

impl CliError {
    pub(crate) fn new(status: ExitStatus, message: impl Into<String>) -> Self {
        Self {
            status,
            message: message.into(),
        }
    }

    pub(crate) fn usage(message: impl Into<String>) -> Self {
        Self::new(ExitStatus::Usage, message)
    }

    pub(crate) fn failed(message: impl Into<String>) -> Self {
        Self::new(ExitStatus::Failed, message)
    }

    pub(crate) fn no_data(message: impl Into<String>) -> Self {
        Self::new(ExitStatus::NoData, message)
    }
}

/// The outcome of steps that are all taken whatever becomes of the others: every failure is told, and
/// the first has the exit code.
#[cfg(feature = "server")]
pub(crate) fn all_of(
    outcomes: impl IntoIterator<Item = Result<(), CliError>>,
) -> Result<(), CliError> {
    let failures: Vec<CliError> = outcomes.into_iter().filter_map(Result::err).collect();
    let Some(first) = failures.first() else {
        return Ok(());
    };
    let messages: Vec<&str> = failures
        .iter()
        .map(|failure| failure.message.as_str())
        .collect();
    Err(CliError::new(first.status, messages.join("; ")))
}

impl fmt::Display for CliError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.message)
    }
}

impl std::error::Error for CliError {}

impl From<ExitStatus> for process::ExitCode {
    fn from(status: ExitStatus) -> Self {
        Self::from(status as u8)
    }
}

impl<T, E: fmt::Display> Context<T> for Result<T, E> {
    fn or_exit(self, status: ExitStatus, what: &str) -> Result<T, CliError> {
        self.map_err(|error| CliError::new(status, format!("{what}: {error}")))
    }
}

#[cfg(all(test, feature = "server"))]
mod tests {
    use super::*;

    #[test]
    fn all_failures_are_told_and_the_first_has_the_code() {
        assert!(all_of([Ok(()), Ok(())]).is_ok());
        let error = all_of([
            Ok(()),
            Err(CliError::usage("one")),
            Err(CliError::failed("two")),
        ])
        .expect_err("two failures");
        assert_eq!(error.to_string(), "one; two");
        assert_eq!(error.status, ExitStatus::Usage);
    }
}
