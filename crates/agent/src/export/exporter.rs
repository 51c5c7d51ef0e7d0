//! What a sink of profiles is.

use std::collections::BTreeMap;

use candela_model::Profile;

use crate::source::Missing;
use crate::status::ProgramStatus;

/// A sink: one struct per kind. It runs on a thread of its own and may block; sampling does not
/// wait for it.
pub trait Exporter: Send {
    /// What users know it by: `in-process` or the server's address.
    fn name(&self) -> String;

    /// What the agent has counted so far, to be told with the next profiles.
    fn set_vitals(&mut self, vitals: &Vitals) {
        let _ = vitals;
    }

    /// Hands a profile over. `Ok` means that the receiver has taken it.
    ///
    /// # Errors
    /// [`ExportError`]; it tells whether another attempt may help.
    fn export(&mut self, profile: &Profile) -> Result<(), ExportError>;

    /// The bytes by which a profile waits on disk; `None` where waiting on disk makes no sense.
    fn to_spool(&self, profile: &Profile) -> Option<Vec<u8>> {
        let _ = profile;
        None
    }

    /// Hands over a profile that waited on disk, given by what [`Exporter::to_spool`] made of it.
    ///
    /// # Errors
    /// As [`Exporter::export`].
    fn export_spooled(&mut self, bytes: &[u8]) -> Result<(), ExportError> {
        let _ = bytes;
        Err(ExportError::Rejected {
            reason: "this exporter has no spool".to_owned(),
        })
    }
}

/// What an agent tells of itself with its profiles. Counts are totals since it started.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Vitals {
    /// The agent's version.
    pub version: String,
    /// The host that it runs on, as its series call it.
    pub host: String,
    /// When it started, unix milliseconds: tells its totals from those of the run before.
    pub started_ms: i64,
    /// Samples by the result code of their walk.
    pub results: BTreeMap<String, u64>,
    /// What did not make it, by reason.
    pub drops: BTreeMap<String, u64>,
    /// What the agent costs: the numbers of [`CostStatus`](crate::CostStatus) by their names.
    pub cost: BTreeMap<&'static str, u64>,
    /// What its programs in the kernel cost, by name.
    pub programs: BTreeMap<String, ProgramStatus>,
    /// What came from the kernel, by kind.
    pub events: BTreeMap<String, u64>,
    /// What was asked for and cannot be had on its host.
    pub missing: Vec<Missing>,
}

/// Why a profile was not taken.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ExportError {
    /// Not now: the receiver is away, busy or full.
    #[error("{reason}")]
    Unavailable {
        /// Why, for users.
        reason: String,
    },
    /// Not as whom we ask: somebody has to correct the token, the user or its rights.
    #[error("{reason}")]
    NotAllowed {
        /// Why, for users.
        reason: String,
    },
    /// Never: the receiver does not want this profile.
    #[error("{reason}")]
    Rejected {
        /// Why, for users.
        reason: String,
    },
    /// In part: the rest was taken.
    #[error("{series} series refused: {reason}")]
    PartlyRejected {
        /// How many series were not taken.
        series: u64,
        /// Why, for users.
        reason: String,
    },
}
