//! The sink of `candela up`: a function of the same process.

use std::fmt;

use candela_model::Profile;

use crate::export::exporter::ExportError;
use crate::export::exporter::Exporter;

/// What takes the profiles.
type Receiver = Box<dyn FnMut(&Profile) -> Result<(), ExportError> + Send>;

/// Hands each profile to a function.
pub struct InProcess {
    receive: Receiver,
}

impl InProcess {
    /// An exporter that calls `receive`, on the export thread, for every profile.
    pub fn new(receive: impl FnMut(&Profile) -> Result<(), ExportError> + Send + 'static) -> Self {
        Self {
            receive: Box::new(receive),
        }
    }
}

impl fmt::Debug for InProcess {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("InProcess").finish_non_exhaustive()
    }
}

impl Exporter for InProcess {
    fn name(&self) -> String {
        "in-process".to_owned()
    }

    fn export(&mut self, profile: &Profile) -> Result<(), ExportError> {
        (self.receive)(profile)
    }
}
