//! Taking back what a job wrote that did not come to its end.
//!
//! Its sources may be merged otherwise before it is tried again, and then nobody could tell its
//! manifests from those of a merge that counts: at the next start both would answer. Its tables
//! only take space, but on a volume that may be full because of them.

use std::cell::RefCell;

use hashbrown::HashSet;

use crate::block::BlockIdentity;
use crate::block::Table;
use crate::block::manifest_path;
use crate::error::StoreError;
use crate::shared::Shared;
use crate::sync::lock;

/// A block of which a job wrote something.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct BegunBlock {
    block_id: String,
    tables: Vec<String>,
}

/// Those of one job.
#[derive(Debug, Default)]
pub(crate) struct BegunBlocks(RefCell<Vec<BegunBlock>>);

impl BegunBlocks {
    /// To be told before the first file is there.
    pub(super) fn add(&self, identity: &BlockIdentity) {
        self.0.borrow_mut().push(BegunBlock {
            block_id: identity.block_id.clone(),
            tables: Table::ALL.map(|table| identity.path(table)).to_vec(),
        });
    }
}

impl Shared {
    /// Takes back a job's blocks. Those that cannot be removed now are tried again before the next
    /// job.
    pub(super) fn take_back(&self, begun: BegunBlocks) {
        lock(&self.begun_blocks).extend(begun.0.into_inner());
        if let Err(error) = self.take_back_earlier() {
            tracing::warn!(%error, "what a failed job wrote cannot be removed yet");
        }
    }

    /// Takes back what earlier jobs left.
    ///
    /// # Errors
    /// When something of it is still there: no job may take its sources then.
    pub(super) fn take_back_earlier(&self) -> Result<(), StoreError> {
        let mut begun_blocks = lock(&self.begun_blocks);
        if begun_blocks.is_empty() {
            return Ok(());
        }
        // A transaction may have been committed although it was said to have failed.
        let mut published: HashSet<String> = HashSet::new();
        published.extend(self.catalog.blocks()?.into_iter().map(|meta| meta.block_id));
        let deleted = self.catalog.deleted_blocks()?;
        published.extend(deleted.into_iter().map(|meta| meta.block_id));
        let quarantined = self.catalog.quarantined()?;
        published.extend(quarantined.into_iter().map(|(meta, _)| meta.block_id));
        begun_blocks.retain(|block| !published.contains(&block.block_id));
        while let Some(block) = begun_blocks.last() {
            self.storage
                .remove_for_good(&manifest_path(&block.block_id))?;
            for table in &block.tables {
                self.storage.remove(table)?;
            }
            begun_blocks.pop();
        }
        Ok(())
    }
}
