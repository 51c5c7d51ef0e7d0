//! What a daemon says of itself that is no error: what of its limits holds, and how.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::Mutex;
use std::sync::MutexGuard;
use std::sync::PoisonError;

/// Notes by what they are about; the last one of each holds.
#[derive(Clone, Debug, Default)]
pub struct Notes(Arc<Mutex<BTreeMap<&'static str, String>>>);

impl Notes {
    /// Says something.
    pub fn set(&self, about: &'static str, note: String) {
        self.locked().insert(about, note);
    }

    /// It is so no longer.
    pub fn clear(&self, about: &'static str) {
        self.locked().remove(about);
    }

    /// All, in a steady order.
    #[must_use]
    pub fn all(&self) -> Vec<String> {
        self.locked().values().cloned().collect()
    }

    fn locked(&self) -> MutexGuard<'_, BTreeMap<&'static str, String>> {
        // Each change is whole.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
