//! Profiles that are looked at and not stored.

use std::fmt;
use std::sync::Arc;

use candela_model::Profile;
use candela_model::ValidationError;

use crate::head::Head;
use crate::snapshot::HeadView;
use crate::snapshot::Snapshot;
use crate::snapshot::TimeRange;

/// A profile in memory, in the shape in which a store holds what is not in blocks yet: whatever can be
/// asked of a store can be asked of it. No log, no file and no catalog knows of it, and it is gone when
/// the last clone is.
#[derive(Clone)]
pub struct LooseProfiles {
    head: Arc<Head>,
}

impl LooseProfiles {
    /// # Errors
    /// When the profile does not hold together.
    pub fn of(profile: &Profile) -> Result<Self, ValidationError> {
        profile.validate()?;
        let head = Head::default();
        head.insert(profile);
        Ok(Self {
            head: Arc::new(head),
        })
    }

    /// The profiles that start in the range.
    #[must_use]
    pub fn snapshot(&self, range: TimeRange) -> Snapshot {
        Snapshot {
            heads: HeadView::new(&self.head, range).into_iter().collect(),
            ..Snapshot::default()
        }
    }

    /// Estimated bytes in memory.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.head.bytes()
    }
}

impl fmt::Debug for LooseProfiles {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("LooseProfiles")
            .field("samples", &self.head.samples())
            .field("bytes", &self.head.bytes())
            .finish_non_exhaustive()
    }
}
