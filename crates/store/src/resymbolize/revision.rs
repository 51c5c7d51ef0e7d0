//! Publishing a revision of a block, and putting in order what a crash left of one.

use std::sync::Arc;

use hashbrown::HashMap;
use hashbrown::HashSet;

use crate::block::Block;
use crate::block::BlockMeta;
use crate::block::FileMeta;
use crate::block::RenamedTables;
use crate::block::Table;
use crate::block::block_of_table;
use crate::block::revised_path;
use crate::block::write_manifest;
use crate::catalog::Catalog;
use crate::error::StoreError;
use crate::shared::Shared;
use crate::storage::BlockStorage;
use crate::storage::FoundFile;
use crate::sync::write;

/// The tables that a revision has files of its own of.
const REVISED: [Table; 2] = [Table::StackNodes, Table::Locations];

impl Shared {
    /// Writes both tables beside those of the revision before, and puts them into `meta`.
    pub(super) fn write_revision(
        &self,
        meta: &mut BlockMeta,
        tables: RenamedTables,
    ) -> Result<(), StoreError> {
        self.log.check_owner()?;
        meta.revision += 1;
        for (table, content) in REVISED
            .into_iter()
            .zip([tables.stack_nodes, tables.locations])
        {
            let path = revised_path(table, meta, meta.revision);
            let new = FileMeta::of(table.name(), path.clone(), &content);
            self.storage.put(&path, content.into())?;
            let old = meta.files.iter_mut();
            let old = old.filter(|file| file.table == table.name());
            old.for_each(|file| *file = new.clone());
        }
        meta.bytes = meta.files.iter().map(|file| file.bytes).sum();
        Ok(())
    }

    /// Puts a block with new tables, or only with a new description, in the place of what it was.
    /// False when the block is not there any more.
    ///
    /// # Errors
    /// When the catalog cannot be written: nothing has changed then. When the manifest cannot: then
    /// the new revision counts, and the old files stay until the store is opened again.
    pub(super) fn publish_revision(
        &self,
        block: &Arc<Block>,
        meta: BlockMeta,
    ) -> Result<bool, StoreError> {
        let only_in = |some: &BlockMeta, other: &BlockMeta| -> Vec<String> {
            let paths = some.files.iter().map(|file| file.path.clone());
            let is_other = |path: &String| other.files.iter().all(|file| file.path != *path);
            paths.filter(is_other).collect()
        };
        // A successor's catalog names the files that would go.
        let owned = self.log.check_owner();
        let revised = owned.and_then(|()| self.catalog.revise(&meta));
        if !matches!(revised, Ok(true)) {
            for path in only_in(&meta, block.meta()) {
                // If even that fails, opening the store sweeps it away.
                let _ = self.storage.remove(&path);
            }
            return revised;
        }
        let obsolete = only_in(block.meta(), &meta);
        let manifest = write_manifest(&*self.storage, &meta);
        let new = self.open_block(meta);
        self.take_place(block, &new);
        if manifest.is_ok() {
            block.supersede(obsolete, new);
        }
        manifest.map(|()| true)
    }

    fn take_place(&self, old: &Arc<Block>, new: &Arc<Block>) {
        let mut tenants = write(&self.tenants);
        let Some(state) = tenants.get_mut(&new.meta().tenant) else {
            return;
        };
        let mut places = state.blocks.iter_mut();
        if let Some(place) = places.find(|place| Arc::ptr_eq(place, old)) {
            *place = Arc::clone(new);
        }
    }
}

/// Removes the files of revisions that are not in the catalog. Where there are any, the manifest
/// may be of one of them and is written again first.
pub(crate) fn settle_revisions(
    storage: &dyn BlockStorage,
    catalog: &dyn Catalog,
    files: &[FoundFile],
) -> Result<(), StoreError> {
    let mut found: HashMap<&str, Vec<&str>> = HashMap::new();
    for file in files {
        if let Some((table, block_id)) = block_of_table(&file.path)
            && REVISED.contains(&table)
        {
            found.entry(block_id).or_default().push(&file.path);
        }
    }
    let quarantined = catalog.quarantined()?.into_iter().map(|(meta, _)| meta);
    for meta in catalog.blocks()?.into_iter().chain(quarantined) {
        let known: HashSet<&str> = meta.files.iter().map(|file| file.path.as_str()).collect();
        let there = found.get(meta.block_id.as_str()).into_iter().flatten();
        let stray: Vec<&&str> = there.filter(|path| !known.contains(**path)).collect();
        if stray.is_empty() {
            continue;
        }
        tracing::info!(
            block_id = meta.block_id,
            "an unfinished revision is settled"
        );
        write_manifest(storage, &meta)?;
        for path in stray {
            storage.remove(path)?;
        }
    }
    Ok(())
}
