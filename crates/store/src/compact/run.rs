//! Jobs one after the other, in the background or when asked for.

use std::sync::Arc;
use std::sync::Mutex;
use std::sync::PoisonError;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering;
use std::time::Duration;

use hashbrown::HashSet;

use super::checksum::Checksum;
use super::job::JobSettings;
use super::job::write_job;
use super::merge::Keep;
use super::plan::Due;
use super::plan::Job;
use super::plan::PartLimits;
use super::plan::due_jobs;
use super::throttle::Throttle;
use super::undo::BegunBlocks;
use crate::block::Block;
use crate::block::BlockMeta;
use crate::block::manifest_path;
use crate::block::write_manifest;
use crate::error::StoreError;
use crate::failpoint::failpoint;
use crate::shared::Shared;
use crate::space::SpaceReserve;
use crate::status::CompactionStatus;
use crate::sync::lock;
use crate::sync::read;
use crate::sync::write;

/// How often the thread looks whether there is a job, by the clock of the machine.
const CHECK: Duration = Duration::from_millis(500);
/// How long after a look nothing is looked for, nanoseconds.
const INTERVAL_NS: i64 = 30_000_000_000;
/// How long after a failure, nanoseconds.
const RETRY_NS: i64 = 300_000_000_000;

/// Further blocks that a job makes true together with its own.
pub(super) type MoreBlocks<'a> =
    dyn Fn(&JobSettings<'_>) -> Result<Vec<BlockMeta>, StoreError> + 'a;

/// What background merging did since the store was opened.
#[derive(Debug, Default)]
pub(crate) struct CompactionCounters {
    pub(crate) jobs: AtomicU64,
    pub(crate) failed_jobs: AtomicU64,
    pub(crate) blocks_read: AtomicU64,
    pub(crate) blocks_written: AtomicU64,
    pub(crate) samples: AtomicU64,
    pub(crate) last_error: Mutex<Option<String>>,
}

/// The first failure of several jobs, each of which is done whatever became of the others.
#[derive(Debug, Default)]
pub(crate) struct FirstError(Option<StoreError>);

impl CompactionCounters {
    pub(crate) fn status(&self) -> CompactionStatus {
        let load = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        CompactionStatus {
            jobs: load(&self.jobs),
            failed_jobs: load(&self.failed_jobs),
            last_error: lock(&self.last_error).clone(),
            blocks_read: load(&self.blocks_read),
            blocks_written: load(&self.blocks_written),
            samples: load(&self.samples),
        }
    }
}

impl FirstError {
    /// Counts a failure, and goes on.
    pub(crate) fn note(&mut self, shared: &Shared, result: Result<(), StoreError>) {
        if let Err(error) = result {
            shared.note_failed_job(&error);
            self.0.get_or_insert(error);
        }
    }

    pub(crate) fn into_result(self) -> Result<(), StoreError> {
        match self.0 {
            Some(error) => Err(error),
            None => Ok(()),
        }
    }
}

impl Shared {
    /// Does all jobs that are due, and those that become due by them.
    pub(crate) fn compact(&self, due: Due, throttle: &Throttle<'_>) -> Result<(), StoreError> {
        let _only_one = lock(&self.maintenance);
        // What a first failed job leaves is no reason not to do the others.
        let mut failed: HashSet<String> = HashSet::new();
        let mut first_error = FirstError::default();
        loop {
            let jobs = self.jobs(due);
            let is_new = |job: &Job| !failed.contains(&name_of(job));
            let Some(job) = jobs.into_iter().find(is_new) else {
                break;
            };
            let merged = self
                .check_room(&job)
                .and_then(|()| self.run_job(&job, &|_, _, _| true, &|_| Ok(Vec::new()), throttle));
            if merged.is_err() {
                failed.insert(name_of(&job));
            }
            first_error.note(self, merged.map(drop));
            if *lock(&self.is_stopping) {
                break;
            }
        }
        first_error.into_result()
    }

    /// The same, and then what retention rules ask for, whatever became of the jobs: one that fails
    /// each time must not keep what is to go.
    pub(crate) fn compact_and_expire(
        &self,
        due: Due,
        throttle: &Throttle<'_>,
    ) -> Result<(), StoreError> {
        let compacted = self.compact(due, throttle);
        let expired = self.apply_retention_rules(throttle);
        compacted.and(expired)
    }

    /// The old blocks go only when the new ones are there, and what the log needs stays free.
    fn check_room(&self, job: &Job) -> Result<(), StoreError> {
        if self.storage.is_remote() {
            return Ok(());
        }
        let reserve = SpaceReserve {
            directory: self.data_dir.blocks(),
            min_free_bytes: self.options.min_free_bytes,
        };
        let bytes = job.inputs.iter().map(|block| block.meta().bytes).sum();
        reserve.check(bytes).map_err(|shortage| StoreError::NoRoom {
            path: reserve.directory,
            free_bytes: shortage.free_bytes,
            needed_bytes: shortage.needed_bytes,
        })
    }

    fn jobs(&self, due: Due) -> Vec<Job> {
        let tenants = read(&self.tenants);
        let jobs = tenants
            .iter()
            .flat_map(|(tenant, state)| due_jobs(tenant, &state.blocks, due));
        jobs.collect()
    }

    /// Puts new blocks in the place of a job's, without the profiles that `keep` does not want;
    /// `None` when retention deleted one of the job's meanwhile, so that it is that job no more.
    pub(crate) fn run_job(
        &self,
        job: &Job,
        keep: &Keep<'_>,
        more: &MoreBlocks<'_>,
        throttle: &Throttle<'_>,
    ) -> Result<Option<Vec<BlockMeta>>, StoreError> {
        self.take_back_earlier()?;
        let begun = BegunBlocks::default();
        let settings = JobSettings {
            storage: &*self.storage,
            limits: PartLimits {
                rows: self.options.compaction_rows,
                profiles: self.options.compaction_profiles,
            },
            rollups: &self.options.rollups,
            created_at_ns: self.options.clock.now_ns(),
            throttle,
            begun: &begun,
        };
        failpoint!("compact.before");
        // A panic is no reason to leave anything, or not to do the jobs behind this one.
        let done = self.survive("a merge of blocks", || {
            self.write_and_swap(job, keep, more, &settings)
        });
        let done = done.unwrap_or_else(|| {
            Err(StoreError::BlockWrite {
                block_id: format!("merged from {}", name_of(job)),
                reason: "the merge panicked".to_owned(),
            })
        });
        let Ok(Some(written)) = done else {
            self.take_back(begun);
            return done;
        };
        failpoint!("compact.swap.after");
        let counters = &self.compaction;
        let add = |counter: &AtomicU64, count: u64| counter.fetch_add(count, Ordering::Relaxed);
        add(&counters.jobs, 1);
        add(&counters.blocks_read, job.inputs.len() as u64);
        add(&counters.blocks_written, written.len() as u64);
        add(
            &counters.samples,
            written.iter().map(|meta| meta.rows).sum(),
        );
        Ok(Some(written))
    }

    fn write_and_swap(
        &self,
        job: &Job,
        keep: &Keep<'_>,
        more: &MoreBlocks<'_>,
        settings: &JobSettings<'_>,
    ) -> Result<Option<Vec<BlockMeta>>, StoreError> {
        let written = write_job(job, keep, settings);
        let mut written = written.inspect_err(|_| self.quarantine_damaged(&job.inputs))?;
        written.extend(more(settings)?);
        // A block of raw profiles says that its sources are done with, so it comes last.
        written.sort_by_key(|meta| std::cmp::Reverse(meta.level));
        let outputs: Vec<String> = written.iter().map(|meta| meta.block_id.clone()).collect();
        for meta in &mut written {
            meta.outputs.clone_from(&outputs);
        }
        failpoint!("compact.tables.after");
        // A manifest makes a block for whoever starts next.
        self.log.check_owner()?;
        for meta in &written {
            write_manifest(&*self.storage, meta)?;
            failpoint!("compact.manifest.after");
        }
        let is_swapped = self.swap(job, &written)?;
        Ok(is_swapped.then_some(written))
    }

    /// Makes the written blocks those that answer; false when not all of the job's do any more.
    fn swap(&self, job: &Job, written: &[BlockMeta]) -> Result<bool, StoreError> {
        let _no_deletion = lock(&self.retention);
        let replaced: Vec<String> = job
            .inputs
            .iter()
            .map(|block| block.meta().block_id.clone())
            .collect();
        let is_replaced = |block: &Block| replaced.contains(&block.meta().block_id);
        let present = {
            let tenants = read(&self.tenants);
            let state = tenants.get(&job.tenant);
            state.map_or(0, |state| {
                let blocks = state.blocks.iter();
                blocks.filter(|block| is_replaced(block)).count()
            })
        };
        if present != replaced.len() {
            return Ok(false);
        }
        let now_ns = self.options.clock.now_ns();
        failpoint!("compact.catalog.before");
        self.log.check_owner()?;
        self.catalog.replace(&replaced, written, now_ns)?;
        failpoint!("compact.catalog.after");
        let new: Vec<Arc<Block>> = written
            .iter()
            .map(|meta| self.open_block(meta.clone()))
            .collect();
        let old: Vec<Arc<Block>> = {
            let mut tenants = write(&self.tenants);
            let state = tenants.entry(job.tenant.clone()).or_default();
            let old = state.blocks.extract_if(.., |block| is_replaced(block));
            let old = old.collect();
            for block in new {
                state.add_block(block);
            }
            old
        };
        let mut result = Ok(true);
        for block in old {
            // Without the manifest a lost catalog cannot bring it back beside the new ones.
            let path = manifest_path(&block.meta().block_id);
            let removed = self.storage.remove_for_good(&path);
            // The catalog has forgotten it: if this does not remember its files, nobody does.
            block.remove_when_unused();
            result = result.and(removed.map(|()| true));
        }
        result
    }

    /// A job fails when one of its blocks is damaged; that one is to be set aside, or the job would
    /// fail for ever.
    pub(super) fn quarantine_damaged(&self, blocks: &[Arc<Block>]) {
        for block in blocks {
            if *lock(&self.is_stopping) {
                break;
            }
            let Err(damage) = block.verify().and_then(|()| {
                let checksum = Checksum::of(block, &|_, _, _| true);
                checksum.map(|_| ())
            }) else {
                continue;
            };
            if let Err(error) = self.report(&damage) {
                tracing::error!(%error, "a damaged block could not be set aside");
            }
        }
    }

    pub(crate) fn note_failed_job(&self, error: &StoreError) {
        tracing::error!(%error, "blocks could not be merged");
        let counters = &self.compaction;
        counters.failed_jobs.fetch_add(1, Ordering::Relaxed);
        *lock(&counters.last_error) = Some(error.to_string());
    }

    /// Merges when it is time, until the store is closed.
    pub(crate) fn run_compaction_thread(&self) {
        lower_priority();
        let clock = &self.options.clock;
        let mut next_ns = clock.monotonic_ns();
        let mut is_stopping = lock(&self.is_stopping);
        while !*is_stopping {
            let waited = self.stop_requested.wait_timeout(is_stopping, CHECK);
            is_stopping = waited.unwrap_or_else(PoisonError::into_inner).0;
            let now_ns = clock.monotonic_ns();
            if *is_stopping || now_ns < next_ns {
                continue;
            }
            drop(is_stopping);
            let percent = self.options.compaction_cpu_percent;
            let throttle = Throttle::new(&self.is_stopping, &self.stop_requested, percent);
            let due = Due::At(clock.now_ns());
            let done = self.survive("compaction", || self.compact_and_expire(due, &throttle));
            let wait_ns = match done {
                Some(Ok(())) => INTERVAL_NS,
                _ => RETRY_NS,
            };
            next_ns = now_ns.saturating_add(wait_ns);
            is_stopping = lock(&self.is_stopping);
        }
    }
}

fn name_of(job: &Job) -> String {
    let inputs = job.inputs.iter();
    let names = inputs.map(|block| block.meta().block_id.as_str());
    names.collect::<Vec<&str>>().join(", ")
}

/// Whoever pushes or asks goes first. Where the system does not let us, the throttle alone is left.
fn lower_priority() {
    if let Err(error) = rustix::process::nice(10) {
        tracing::debug!(%error, "compaction runs at the priority of all else");
    }
}
