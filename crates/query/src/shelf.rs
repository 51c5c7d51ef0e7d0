//! Where an engine finds profiles.

use std::collections::BTreeMap;
use std::sync::Arc;

use candela_store::BlockError;
use candela_store::Clock;
use candela_store::LooseProfiles;
use candela_store::Snapshot;
use candela_store::Store;
use candela_store::StoreError;
use candela_store::TimeRange;

/// A store, or profiles that nothing stores.
#[derive(Clone, Debug)]
pub(crate) enum Shelf {
    Store(Store),
    Loose {
        /// By the name that queries call their tenant.
        profiles: Arc<BTreeMap<String, LooseProfiles>>,
        clock: Arc<dyn Clock>,
    },
}

impl Shelf {
    pub(crate) fn snapshot(&self, tenant: &str, range: TimeRange) -> Result<Snapshot, StoreError> {
        match self {
            Self::Store(store) => store.snapshot(tenant, range),
            Self::Loose { profiles, .. } => {
                let profiles = profiles.get(tenant);
                Ok(profiles.map_or_else(Snapshot::default, |profiles| profiles.snapshot(range)))
            }
        }
    }

    pub(crate) fn clock(&self) -> Arc<dyn Clock> {
        match self {
            Self::Store(store) => store.clock(),
            Self::Loose { clock, .. } => Arc::clone(clock),
        }
    }

    /// Notes a block that cannot be read. What is loose has no blocks.
    pub(crate) fn report(&self, error: &BlockError) -> Result<(), StoreError> {
        match self {
            Self::Store(store) => store.report(error),
            Self::Loose { .. } => Ok(()),
        }
    }
}
