//! Where pictures come from.

use super::app::App;
use super::kind::Kind;
use super::snapshot::Snapshot;
use crate::errors::CliError;

/// What is asked for.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Question {
    /// The only process or service that the trees are of.
    pub(crate) group: Option<String>,
    /// What is shown stays as it is, though the question may be another.
    pub(crate) is_paused: bool,
}

/// An agent of this process, or a server.
pub(crate) trait Source {
    /// A new picture where there is one. Never waits.
    ///
    /// # Errors
    /// When there will be no picture any more.
    fn refresh(&mut self, question: &Question) -> Result<Option<Snapshot>, CliError>;

    /// The address of the same in the window, where there is a window.
    fn url(&self, question: &Question, kind: Kind) -> Option<String>;
}

// === impl Question ===

impl Question {
    pub(crate) fn of(app: &App) -> Self {
        Self {
            group: app.group.clone(),
            is_paused: app.is_paused,
        }
    }
}
