//! One source of names over all blocks.

use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::sync::Arc;
use std::sync::MutexGuard;
use std::sync::TryLockError;
use std::thread;
use std::time::Duration;

use hashbrown::HashSet;

use super::BlockSymbolizer;
use super::Resymbolized;
use super::UnsymbolizedBinary;
use super::names::find_names;
use crate::block::Block;
use crate::block::Level;
use crate::block::RenamedTables;
use crate::block::Renames;
use crate::block::SampleColumns;
use crate::block::ServiceTrees;
use crate::block::UnsymbolizedMeta;
use crate::error::BlockError;
use crate::error::StoreError;
use crate::locations::LocationTable;
use crate::shared::Shared;
use crate::sync::read;

/// How soon a lock that is held is tried again.
const LOCK_RETRY: Duration = Duration::from_millis(50);

impl Shared {
    /// The binaries that a tenant's blocks have nameless addresses of, or all tenants', those with
    /// most samples first.
    pub(crate) fn unsymbolized(&self, tenant: Option<&str>) -> Vec<UnsymbolizedBinary> {
        let mut binaries: BTreeMap<String, UnsymbolizedBinary> = BTreeMap::new();
        for (name, state) in read(&self.tenants).iter() {
            if tenant.is_some_and(|tenant| tenant != name) {
                continue;
            }
            let metas = state.blocks.iter().flat_map(|block| index_of(block));
            for meta in metas {
                let build_id = meta.build_id.to_ascii_lowercase();
                let binary = binaries.entry(build_id).or_default();
                binary.add(meta);
            }
        }
        let mut binaries: Vec<UnsymbolizedBinary> = binaries
            .into_iter()
            .map(|(build_id, binary)| UnsymbolizedBinary { build_id, ..binary })
            .collect();
        binaries.sort_by_key(|binary| std::cmp::Reverse(binary.samples));
        binaries
    }

    /// Puts the names that a source knows into all blocks that it has not been asked for.
    ///
    /// # Errors
    /// When the catalog or a manifest cannot be written.
    pub(crate) fn resymbolize(
        &self,
        symbolizer: &dyn BlockSymbolizer,
    ) -> Result<Resymbolized, StoreError> {
        let mut done = Resymbolized::default();
        let mut failed: HashSet<String> = HashSet::new();
        let is_cancelled = || symbolizer.is_cancelled();
        while self.next_block(symbolizer, &failed).is_some() {
            let Some(_maintenance) = self.lock_maintenance(&is_cancelled) else {
                break;
            };
            // It may be part of a larger one by now.
            let Some(block) = self.next_block(symbolizer, &failed) else {
                break;
            };
            match self.resymbolize_block(&block, symbolizer, &mut done) {
                Ok(Outcome::Done) => continue,
                Ok(Outcome::Gone) => {}
                Err(Failure::Store(error)) => return Err(error),
                Err(Failure::Block(error)) => {
                    done.failed_blocks += 1;
                    self.report(&error)?;
                }
            }
            failed.insert(block.version().to_owned());
        }
        Ok(done)
    }

    /// Writes down what has no name in blocks of versions that did not.
    ///
    /// # Errors
    /// When the catalog or a manifest cannot be written.
    pub(crate) fn index_unsymbolized(
        &self,
        is_cancelled: &dyn Fn() -> bool,
    ) -> Result<u64, StoreError> {
        let mut failed: HashSet<String> = HashSet::new();
        let mut indexed = 0;
        while self.next_unknown(&failed).is_some() {
            let Some(_maintenance) = self.lock_maintenance(is_cancelled) else {
                break;
            };
            let Some(block) = self.next_unknown(&failed) else {
                break;
            };
            let read = block.locations().and_then(|table| {
                let trees = read_trees(&block)?;
                Ok(trees.unsymbolized(&table, &samples_of_stacks(&block)?))
            });
            match read {
                Ok(index) => {
                    let mut meta = block.meta().clone();
                    meta.unsymbolized = Some(index);
                    indexed += u64::from(self.publish_revision(&block, meta)?);
                    // Where it was not published the block is gone.
                    failed.insert(block.version().to_owned());
                }
                Err(error) => {
                    failed.insert(block.version().to_owned());
                    self.report(&error)?;
                }
            }
        }
        Ok(indexed)
    }

    /// Compaction and retention keep off a block while it is written anew, and come in between two.
    /// They may take minutes; `None` when it was cancelled before they were done.
    fn lock_maintenance(&self, is_cancelled: &dyn Fn() -> bool) -> Option<MutexGuard<'_, ()>> {
        while !is_cancelled() {
            match self.maintenance.try_lock() {
                Ok(guard) => return Some(guard),
                Err(TryLockError::Poisoned(guard)) => return Some(guard.into_inner()),
                Err(TryLockError::WouldBlock) => thread::park_timeout(LOCK_RETRY),
            }
        }
        None
    }

    fn next_unknown(&self, failed: &HashSet<String>) -> Option<Arc<Block>> {
        self.find_block(|block| {
            block.meta().unsymbolized.is_none() && !failed.contains(block.version())
        })
    }

    fn next_block(
        &self,
        symbolizer: &dyn BlockSymbolizer,
        failed: &HashSet<String>,
    ) -> Option<Arc<Block>> {
        self.find_block(|block| {
            let mut index = index_of(block);
            !failed.contains(block.version())
                && index
                    .any(|entry| is_about(entry, symbolizer) && entry.asked != symbolizer.source())
        })
    }

    /// The newest block of any tenant with a property: what people look at first.
    fn find_block(&self, mut has: impl FnMut(&Arc<Block>) -> bool) -> Option<Arc<Block>> {
        let tenants = read(&self.tenants);
        let mut blocks = tenants.values().flat_map(|state| state.blocks.iter().rev());
        blocks.find(|block| has(block)).map(Arc::clone)
    }

    fn resymbolize_block(
        &self,
        block: &Arc<Block>,
        symbolizer: &dyn BlockSymbolizer,
        done: &mut Resymbolized,
    ) -> Result<Outcome, Failure> {
        let table = block.locations()?;
        let Some(mut found) = find_names(&table, symbolizer) else {
            return Ok(Outcome::Done);
        };
        let mut meta = block.meta().clone();
        if found.named > 0 {
            match self.renamed(block, &found.renames)? {
                Ok((tables, index)) => {
                    self.write_revision(&mut meta, tables)?;
                    meta.unsymbolized = Some(index);
                }
                // Once is enough: it would fail each time.
                Err(reason) => {
                    let block_id = &meta.block_id;
                    tracing::error!(block_id, reason, "a block cannot have names");
                    done.failed_blocks += 1;
                    found.named = 0;
                }
            }
        }
        // Those of other binaries were asked of others.
        let asked = block.meta().unsymbolized.iter().flatten();
        let asked: Vec<(&str, &str)> = asked
            .map(|entry| (entry.build_id.as_str(), entry.asked.as_str()))
            .collect();
        for entry in meta.unsymbolized.iter_mut().flatten() {
            let before = asked.iter().find(|(build, _)| *build == entry.build_id);
            entry.asked = match is_about(entry, symbolizer) {
                true => symbolizer.source().to_owned(),
                false => before.map_or(String::new(), |(_, asked)| (*asked).to_owned()),
            };
        }
        if !self.publish_revision(block, meta)? {
            return Ok(Outcome::Gone);
        }
        done.renamed_blocks += u64::from(found.named > 0);
        done.named_locations += found.named;
        done.unnamed_locations += found.unnamed;
        Ok(Outcome::Done)
    }

    /// Both tables with the names, and what still has none; or why they cannot be written.
    fn renamed(&self, block: &Block, renames: &Renames) -> Result<Renamed, Failure> {
        let meta = block.meta();
        let level = Level::from_number(meta.level).unwrap_or(Level::Flushed);
        let trees = match read_trees(block)?.renamed(renames) {
            Ok(trees) => trees,
            Err(reason) => return Ok(Err(reason)),
        };
        let index = new_index(block, &trees, &renames.table)?;
        let encoded = trees.encode(&meta.block_id, &renames.table, level);
        Ok(encoded.map(|tables| (tables, index)))
    }
}

/// The new tables and the new index.
type Renamed = Result<(RenamedTables, Vec<UnsymbolizedMeta>), String>;

/// What became of a block.
enum Outcome {
    Done,
    /// It was not there any more.
    Gone,
}

/// What still has no name.
fn new_index(
    block: &Block,
    trees: &ServiceTrees,
    table: &LocationTable,
) -> Result<Vec<UnsymbolizedMeta>, BlockError> {
    // Mostly nothing is left, which spares reading the samples.
    if trees.unsymbolized(table, &[]).is_empty() {
        return Ok(Vec::new());
    }
    Ok(trees.unsymbolized(table, &samples_of_stacks(block)?))
}

/// Why a block could not be written anew.
enum Failure {
    Block(BlockError),
    Store(StoreError),
}

impl From<BlockError> for Failure {
    fn from(error: BlockError) -> Self {
        Self::Block(error)
    }
}

impl From<StoreError> for Failure {
    fn from(error: StoreError) -> Self {
        Self::Store(error)
    }
}

impl UnsymbolizedBinary {
    fn add(&mut self, meta: &UnsymbolizedMeta) {
        if self.mapping_file.is_empty() {
            self.mapping_file.clone_from(&meta.mapping_file);
        }
        self.blocks += 1;
        self.locations += meta.locations;
        self.samples += meta.samples;
        if !self.asked.contains(&meta.asked) {
            self.asked.push(meta.asked.clone());
        }
    }
}

fn index_of(block: &Block) -> impl Iterator<Item = &UnsymbolizedMeta> {
    block.meta().unsymbolized.iter().flatten()
}

fn is_about(entry: &UnsymbolizedMeta, symbolizer: &dyn BlockSymbolizer) -> bool {
    entry.build_id.eq_ignore_ascii_case(symbolizer.build_id())
}

fn read_trees(block: &Block) -> Result<ServiceTrees, BlockError> {
    // Checks the table before it is taken apart here.
    block.stacks()?;
    let content = block.stack_nodes_file()?;
    ServiceTrees::read(content).map_err(|reason| block.damaged(reason))
}

/// How many samples each stack has.
fn samples_of_stacks(block: &Block) -> Result<Vec<u64>, BlockError> {
    let mut samples = vec![0; block.stacks()?.node_of_stack.len()];
    let all = 0..block.meta().rows;
    block.scan_samples(&[all], SampleColumns::default(), &mut |chunk| {
        for &stack in chunk.stack_ids {
            if let Some(count) = samples.get_mut(stack as usize) {
                *count += 1;
            }
        }
        ControlFlow::Continue(())
    })?;
    Ok(samples)
}
