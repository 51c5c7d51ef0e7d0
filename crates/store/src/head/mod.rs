//! The head: what is in the log and not yet in blocks, in memory, queryable at once.

mod profile;
mod tables;

use std::sync::Arc;
use std::sync::Mutex;
use std::sync::RwLock;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering;

use candela_model::Profile;

pub use self::profile::HeadProfile;
pub use self::tables::HeadTables;
pub(crate) use self::tables::NO_LOCATION;
use crate::sync::lock;
use crate::sync::write;

/// The profiles of one tenant since the last flush. Profiles never change once they are here and
/// the tables only grow, so a reader needs no more than a list of profiles.
#[derive(Debug, Default)]
pub(crate) struct Head {
    pub(crate) tables: RwLock<HeadTables>,
    profiles: Mutex<Vec<Arc<HeadProfile>>>,
    samples: AtomicU64,
    bytes: AtomicU64,
}

impl Head {
    /// Adds a valid profile; all its series become visible together.
    pub(crate) fn insert(&self, profile: &Profile) {
        let (added, table_growth) = {
            let mut tables = write(&self.tables);
            let before = tables.bytes();
            let added = tables.intern_profile(profile);
            (added, tables.bytes().saturating_sub(before))
        };
        let samples: usize = added.iter().map(|profile| profile.len()).sum();
        let bytes: usize = added.iter().map(HeadProfile::bytes).sum();
        self.samples.fetch_add(samples as u64, Ordering::Relaxed);
        self.bytes
            .fetch_add((bytes + table_growth) as u64, Ordering::Relaxed);
        lock(&self.profiles).extend(added.into_iter().map(Arc::new));
    }

    /// The profiles that are here now.
    pub(crate) fn profiles(&self) -> Vec<Arc<HeadProfile>> {
        lock(&self.profiles).clone()
    }

    pub(crate) fn is_empty(&self) -> bool {
        lock(&self.profiles).is_empty()
    }

    pub(crate) fn samples(&self) -> u64 {
        self.samples.load(Ordering::Relaxed)
    }

    /// Estimated bytes in memory.
    pub(crate) fn bytes(&self) -> u64 {
        self.bytes.load(Ordering::Relaxed)
    }
}
