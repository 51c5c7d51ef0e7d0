//! A block that queries read.

use std::any::Any;
use std::ops::ControlFlow;
use std::ops::Range;
use std::sync::Arc;
use std::sync::Mutex;
use std::sync::OnceLock;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::AtomicU8;
use std::sync::atomic::Ordering;

use hashbrown::HashMap;
use parquet::arrow::arrow_reader::ParquetRecordBatchReader;

use super::cache::CachedTable;
use super::cache::TableCache;
use super::level::Tier;
use super::load;
use super::manifest::BlockMeta;
use super::manifest::FileMeta;
use super::manifest::manifest_path;
use super::samples::SampleChunk;
use super::samples::SampleColumns;
use super::samples::SamplesFile;
use super::schema::Table;
use super::surviving::surviving;
use super::tables::LabelTable;
use super::tables::ProfileTable;
use super::tables::StackTree;
use crate::error::BlockError;
use crate::error::ReadFault;
use crate::locations::LocationTable;
use crate::storage::BlockStorage;
use crate::storage::StoredFile;
use crate::sync::lock;

/// Files are opened and decoded when they are first needed. A query that holds a block can read
/// it to the end, even when retention removes it meanwhile.
#[derive(Debug)]
pub struct Block {
    meta: BlockMeta,
    /// Its id, and after that how often its symbols were revised.
    version: String,
    storage: Arc<dyn BlockStorage>,
    cache: Arc<TableCache>,
    /// The tables of which every byte was compared with the checksum.
    verified: VerifiedTables,
    is_removed: AtomicBool,
    superseded: OnceLock<Superseded>,
    removed: Arc<RemovedBlocks>,
}

/// One bit for each table.
#[derive(Debug, Default)]
struct VerifiedTables(AtomicU8);

/// What there is to do when the last query that reads an earlier revision is done.
#[derive(Debug)]
struct Superseded {
    /// The files that the later revision does not have.
    paths: Vec<String>,
    /// Kept so long, for both share the other files.
    _by: Arc<Block>,
}

/// Deleted blocks that nobody reads any more.
#[derive(Debug, Default)]
pub(crate) struct RemovedBlocks {
    state: Mutex<Removed>,
}

#[derive(Debug, Default)]
struct Removed {
    /// Those whose files are gone, so that the catalog may forget them.
    gone: Vec<String>,
    /// Those whose files are still there.
    waiting: Vec<BlockMeta>,
    /// Files of earlier revisions that are still there.
    waiting_files: Vec<String>,
}

impl VerifiedTables {
    fn has(&self, table: Table) -> bool {
        self.0.load(Ordering::Acquire) & Self::bit(table) != 0
    }

    fn add(&self, table: Table) {
        self.0.fetch_or(Self::bit(table), Ordering::AcqRel);
    }

    fn bit(table: Table) -> u8 {
        1 << table as u8
    }
}

impl Block {
    pub(crate) fn new(
        meta: BlockMeta,
        storage: Arc<dyn BlockStorage>,
        cache: Arc<TableCache>,
        removed: Arc<RemovedBlocks>,
    ) -> Self {
        let version = match meta.revision {
            0 => meta.block_id.clone(),
            revision => format!("{}.r{revision}", meta.block_id),
        };
        Self {
            meta,
            version,
            storage,
            cache,
            verified: VerifiedTables::default(),
            is_removed: AtomicBool::new(false),
            superseded: OnceLock::new(),
            removed,
        }
    }

    /// What names this state of the block: its samples never change, the names of their stacks may.
    /// What is derived from a block and kept is kept under this.
    #[must_use]
    pub fn version(&self) -> &str {
        &self.version
    }

    /// How fine its times are.
    #[must_use]
    pub fn tier(&self) -> Tier {
        self.meta.tier()
    }

    /// Another block of the same place.
    pub(crate) fn sibling(&self, meta: BlockMeta) -> Self {
        Self::new(
            meta,
            Arc::clone(&self.storage),
            Arc::clone(&self.cache),
            Arc::clone(&self.removed),
        )
    }

    /// Its tables need no memory any more.
    pub(crate) fn forget(&self) {
        self.cache.forget(&self.meta.block_id);
    }

    /// What the catalog knows of it.
    #[must_use]
    pub fn meta(&self) -> &BlockMeta {
        &self.meta
    }

    /// The profiles, sorted by service, type, start and series.
    ///
    /// # Errors
    /// When the file is missing or damaged.
    pub fn profiles(&self) -> Result<Arc<ProfileTable>, BlockError> {
        if let Some(CachedTable::Profiles(table)) = self.cached(Table::Profiles) {
            return Ok(table);
        }
        let labels = self.labels()?;
        let content = self.read(Table::Profiles)?;
        let table = self.decoded(|| load::profiles(content, &labels, self.meta.rows))?;
        let table = Arc::new(table);
        self.keep(Table::Profiles, CachedTable::Profiles(Arc::clone(&table)));
        Ok(table)
    }

    /// The label sets of series and samples.
    ///
    /// # Errors
    /// When the file is missing or damaged.
    pub fn labels(&self) -> Result<Arc<LabelTable>, BlockError> {
        if let Some(CachedTable::Labels(table)) = self.cached(Table::LabelSets) {
            return Ok(table);
        }
        let content = self.read(Table::LabelSets)?;
        let table = self.decoded(|| load::label_sets(content))?;
        let table = Arc::new(table);
        self.keep(Table::LabelSets, CachedTable::Labels(Arc::clone(&table)));
        Ok(table)
    }

    /// All stacks.
    ///
    /// # Errors
    /// When the file is missing or damaged.
    pub fn stacks(&self) -> Result<Arc<StackTree>, BlockError> {
        if let Some(CachedTable::Stacks(table)) = self.cached(Table::StackNodes) {
            return Ok(table);
        }
        let location_count = self.locations()?.len();
        let content = self.read(Table::StackNodes)?;
        let table = self.decoded(|| load::stack_nodes(content, location_count))?;
        let table = Arc::new(table);
        self.keep(Table::StackNodes, CachedTable::Stacks(Arc::clone(&table)));
        Ok(table)
    }

    /// The locations that stacks refer to.
    ///
    /// # Errors
    /// When the file is missing or damaged.
    pub fn locations(&self) -> Result<Arc<LocationTable>, BlockError> {
        if let Some(CachedTable::Locations(table)) = self.cached(Table::Locations) {
            return Ok(table);
        }
        let content = self.read(Table::Locations)?;
        let table = self.decoded(|| load::locations(content))?;
        let table = Arc::new(table);
        self.keep(Table::Locations, CachedTable::Locations(Arc::clone(&table)));
        Ok(table)
    }

    /// What a reader derives from the tables. A block never changes, so it is made once and kept
    /// beside the tables, within their budget of memory. `name` tells it from others and is no
    /// table's; `make` returns it with its size in bytes.
    ///
    /// # Errors
    /// Those of `make`.
    pub fn derived<T: Any + Send + Sync, E>(
        &self,
        name: &'static str,
        make: impl FnOnce() -> Result<(T, usize), E>,
    ) -> Result<Arc<T>, E> {
        if let Some(CachedTable::Derived(known, _)) = self.cache.get(&self.version, name)
            && let Ok(known) = known.downcast::<T>()
        {
            return Ok(known);
        }
        let (made, bytes) = make()?;
        let made = Arc::new(made);
        let kept = CachedTable::Derived(Arc::<T>::clone(&made), bytes);
        self.cache.insert(&self.version, name, kept);
        Ok(made)
    }

    /// Hands over the samples of row ranges, which are in ascending order and do not overlap.
    /// A chunk never spans two ranges. Several threads may scan at once; `visit` may end the scan.
    ///
    /// # Errors
    /// When the file is missing or damaged; what was handed over before counts for nothing then.
    pub fn scan_samples(
        &self,
        ranges: &[Range<u64>],
        columns: SampleColumns,
        visit: &mut dyn FnMut(SampleChunk<'_>) -> ControlFlow<()>,
    ) -> Result<(), BlockError> {
        let samples = self.samples()?;
        samples
            .scan(ranges, columns, visit)
            .map_err(|fault| self.error(fault.at("samples")))
    }

    /// All columns of the samples of row ranges, which are in ascending order and do not overlap.
    pub(crate) fn sample_batches(
        &self,
        ranges: &[Range<u64>],
    ) -> Result<ParquetRecordBatchReader, BlockError> {
        let samples = self.samples()?;
        samples
            .batches(ranges)
            .map_err(|fault| self.error(fault.at("samples")))
    }

    /// Whether any sample belongs to a trace.
    pub(crate) fn has_traces(&self) -> Result<bool, BlockError> {
        Ok(self.samples()?.has_traces())
    }

    /// Whether any sample belongs to a trace or a span. Only the footer is read.
    ///
    /// # Errors
    /// When the file is missing or damaged.
    pub fn has_links(&self) -> Result<bool, BlockError> {
        Ok(self.samples()?.has_links())
    }

    /// Whether it is known of any sample when it was taken. Only the footer is read.
    ///
    /// # Errors
    /// When the file is missing or damaged.
    pub fn has_times(&self) -> Result<bool, BlockError> {
        Ok(self.samples()?.has_times())
    }

    /// Whether any sample may belong to one of these traces: `false` is certain.
    ///
    /// # Errors
    /// When the file is missing or damaged.
    pub fn may_have_traces(&self, trace_ids: &[[u8; 16]]) -> Result<bool, BlockError> {
        let samples = self.samples()?;
        samples
            .may_have_traces(trace_ids)
            .map_err(|fault| self.error(fault.at("samples")))
    }

    /// Bytes on disk that a scan of all rows reads.
    ///
    /// # Errors
    /// When the file is missing or damaged.
    pub fn scan_bytes(&self, columns: SampleColumns) -> Result<u64, BlockError> {
        Ok(self.samples()?.column_bytes(columns))
    }

    /// Whether all files are there in their size, which is what can be said without reading them.
    /// A listing of files and their bytes spares asking for each; what it lacks is asked for, since
    /// a listing may be torn.
    pub(crate) fn check_files(&self, listed: &HashMap<String, u64>) -> Result<(), BlockError> {
        for file in &self.meta.files {
            if listed.get(&file.path) == Some(&file.bytes) {
                continue;
            }
            self.check_size(file)?;
        }
        Ok(())
    }

    fn check_size(&self, file: &FileMeta) -> Result<(), BlockError> {
        let found = self.storage.size(&file.path);
        let bytes = found.map_err(|fault| self.error(fault.at(&file.path)))?;
        if bytes == file.bytes {
            return Ok(());
        }
        let reason = format!(
            "{} has {bytes} bytes, was written with {}",
            file.path, file.bytes
        );
        Err(self.error(reason.into()))
    }

    /// Whether all files are as they were written and can be decoded.
    pub(crate) fn verify(&self) -> Result<(), BlockError> {
        self.check_files(&HashMap::new())?;
        self.profiles()?;
        self.stacks()?;
        self.samples()?;
        Ok(())
    }

    /// For those who read a file themselves: whether it is as it was written. It is read through
    /// the first time. In a bucket, which compares what it keeps and sends, it has to be there in
    /// its size.
    ///
    /// # Errors
    /// When the file is missing or damaged.
    pub fn verify_file(&self, table: Table) -> Result<(), BlockError> {
        if self.verified.has(table) {
            return Ok(());
        }
        let meta = self.file(table)?;
        let fault = |fault: ReadFault| self.error(fault.at(&meta.path));
        if self.storage.is_remote() {
            // Nothing is remembered: what reads pieces of it still has to compare them.
            return self.check_size(meta);
        }
        let file = self.storage.open(meta).map_err(fault)?;
        super::samples::verify(&mut file.reader(), meta).map_err(|fault| self.error(fault))?;
        self.verified.add(table);
        Ok(())
    }

    /// Table `stack_nodes` as it is in the file.
    pub(crate) fn stack_nodes_file(&self) -> Result<bytes::Bytes, BlockError> {
        self.read(Table::StackNodes)
    }

    /// A later revision of it was published: files of its own go when the last query that reads
    /// them is done.
    pub(crate) fn supersede(&self, paths: Vec<String>, by: Arc<Self>) {
        // There is one successor: what supersedes a block has been taken in its place.
        let _ = self.superseded.set(Superseded { paths, _by: by });
    }

    /// Its files go when the last query that reads them is done.
    pub(crate) fn remove_when_unused(&self) {
        self.is_removed.store(true, Ordering::Release);
    }

    /// The samples, open until the value is dropped: there may be more blocks than a process may
    /// have open files.
    fn samples(&self) -> Result<SamplesFile, BlockError> {
        let meta = self.file(Table::Samples)?;
        let fault = |fault: ReadFault| self.error(fault.at("samples"));
        let file: StoredFile = self.storage.open(meta).map_err(fault)?;
        if let Some(CachedTable::Footer(footer)) = self.cached(Table::Samples) {
            return Ok(SamplesFile::new(file, footer));
        }
        let is_verified = self.verified.has(Table::Samples);
        let opened = surviving(|| SamplesFile::read_footer(file, meta, is_verified));
        let opened = opened.map_err(fault)?;
        self.verified.add(Table::Samples);
        let footer = CachedTable::Footer(Arc::clone(opened.metadata()));
        self.keep(Table::Samples, footer);
        Ok(opened)
    }

    fn cached(&self, table: Table) -> Option<CachedTable> {
        self.cache.get(&self.version, table.name())
    }

    fn keep(&self, table: Table, content: CachedTable) {
        self.cache.insert(&self.version, table.name(), content);
    }

    fn file(&self, table: Table) -> Result<&FileMeta, BlockError> {
        let mut files = self.meta.files.iter();
        files
            .find(|file| file.table == table.name())
            .ok_or_else(|| self.error(format!("it has no table {}", table.name()).into()))
    }

    fn read(&self, table: Table) -> Result<bytes::Bytes, BlockError> {
        let meta = self.file(table)?;
        let fault = |fault: ReadFault| self.error(fault.at(&meta.path));
        let content = self.storage.read(meta).map_err(fault)?;
        super::samples::verify(&mut &*content, meta).map_err(|fault| self.error(fault))?;
        Ok(content)
    }

    fn decoded<T>(&self, decode: impl FnOnce() -> Result<T, String>) -> Result<T, BlockError> {
        let decoded = surviving(|| decode().map_err(ReadFault::from));
        decoded.map_err(|fault| self.error(fault))
    }

    /// Says that the block is not what was written.
    pub(crate) fn damaged(&self, reason: String) -> BlockError {
        self.error(reason.into())
    }

    fn error(&self, fault: ReadFault) -> BlockError {
        BlockError {
            block_id: self.meta.block_id.clone(),
            kind: fault.kind,
            reason: fault.reason,
        }
    }
}

impl Drop for Block {
    fn drop(&mut self) {
        if let Some(superseded) = self.superseded.take() {
            // Where only the description changed the version is still the same.
            if !superseded.paths.is_empty() {
                self.cache.forget(&self.version);
            }
            self.removed.remove_files(&*self.storage, superseded.paths);
        }
        if !self.is_removed.load(Ordering::Acquire) {
            return;
        }
        let removed = &self.removed;
        // Whoever reads last may be serving requests and must not wait for a bucket.
        if !self.storage.is_remote() && remove_files(&*self.storage, &self.meta) {
            let block_id = std::mem::take(&mut self.meta.block_id);
            lock(&removed.state).gone.push(block_id);
        } else {
            lock(&removed.state).waiting.push(self.meta.clone());
        }
    }
}

impl RemovedBlocks {
    /// Those that an earlier process could not delete.
    pub(crate) fn of_before(waiting: Vec<BlockMeta>) -> Self {
        Self {
            state: Mutex::new(Removed {
                waiting,
                ..Removed::default()
            }),
        }
    }

    /// Names of what could not be deleted yet: a tenant's blocks that are meant, and its files of
    /// earlier revisions, of which nothing but the path is known.
    pub(crate) fn undeleted(
        &self,
        tenant: &str,
        is_meant: &dyn Fn(&BlockMeta) -> bool,
    ) -> Vec<String> {
        let state = lock(&self.state);
        let blocks = state.waiting.iter();
        let blocks = blocks.filter(|meta| meta.tenant == tenant && is_meant(meta));
        let folder = format!("/tenant={tenant}/");
        let files = state.waiting_files.iter();
        let files = files.filter(|path| path.contains(&folder));
        blocks
            .map(|meta| &meta.block_id)
            .chain(files)
            .cloned()
            .collect()
    }

    /// Deletes files that nobody reads any more, at once or later.
    fn remove_files(&self, storage: &dyn BlockStorage, paths: Vec<String>) {
        for path in paths {
            if storage.is_remote() || storage.remove(&path).is_err() {
                lock(&self.state).waiting_files.push(path);
            }
        }
    }

    /// Deletes files that are still there, and gives the blocks that have none any more. What
    /// cannot be deleted is tried again the next time.
    pub(crate) fn settle(&self, storage: &dyn BlockStorage) -> Vec<String> {
        let Removed {
            mut gone,
            waiting,
            waiting_files,
        } = std::mem::take(&mut *lock(&self.state));
        for path in waiting_files {
            if let Err(error) = storage.remove(&path) {
                tracing::warn!(%error, "cannot delete a file of an earlier revision");
                lock(&self.state).waiting_files.push(path);
            }
        }
        for meta in waiting {
            if remove_files(storage, &meta) {
                gone.push(meta.block_id);
            } else {
                lock(&self.state).waiting.push(meta);
            }
        }
        gone
    }
}

/// Deletes a block's files. The catalog keeps its row until they are gone.
pub(crate) fn remove_files(storage: &dyn BlockStorage, meta: &BlockMeta) -> bool {
    let manifest = manifest_path(&meta.block_id);
    let paths = meta.files.iter().map(|file| file.path.as_str());
    let mut is_gone = true;
    for path in paths.chain([manifest.as_str()]) {
        if let Err(error) = storage.remove(path) {
            tracing::warn!(%error, "cannot delete a block's file");
            is_gone = false;
        }
    }
    is_gone
}
