//! A block that queries read.

use std::any::Any;
use std::fs;
use std::ops::ControlFlow;
use std::ops::Range;
use std::path::Path;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::Mutex;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering;

use super::cache::CachedTable;
use super::cache::TableCache;
use super::load;
use super::manifest::BlockMeta;
use super::manifest::FileMeta;
use super::samples::SampleChunk;
use super::samples::SampleColumns;
use super::samples::SamplesFile;
use super::schema::Table;
use super::tables::LabelTable;
use super::tables::ProfileTable;
use super::tables::StackTree;
use crate::error::BlockError;
use crate::error::ReadFault;
use crate::locations::LocationTable;
use crate::sync::lock;

/// Files are opened and decoded when they are first needed. A query that holds a block can read
/// it to the end, even when retention removes it meanwhile.
#[derive(Debug)]
pub struct Block {
    meta: BlockMeta,
    directory: PathBuf,
    cache: Arc<TableCache>,
    /// Whether every byte of the samples was compared with the checksum.
    is_verified: AtomicBool,
    is_removed: AtomicBool,
    removed: Arc<RemovedBlocks>,
}

/// Blocks whose files are gone and which the catalog may forget.
pub(crate) type RemovedBlocks = Mutex<Vec<String>>;

impl Block {
    pub(crate) fn new(
        meta: BlockMeta,
        directory: PathBuf,
        cache: Arc<TableCache>,
        removed: Arc<RemovedBlocks>,
    ) -> Self {
        Self {
            meta,
            directory,
            cache,
            is_verified: AtomicBool::new(false),
            is_removed: AtomicBool::new(false),
            removed,
        }
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
        let table = load::profiles(content, &labels, self.meta.rows);
        let table = Arc::new(table.map_err(|reason| self.error(reason.into()))?);
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
        let table = load::label_sets(content).map_err(|reason| self.error(reason.into()))?;
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
        let table = load::stack_nodes(content, location_count);
        let table = Arc::new(table.map_err(|reason| self.error(reason.into()))?);
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
        let table = load::locations(content).map_err(|reason| self.error(reason.into()))?;
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
        if let Some(CachedTable::Derived(known, _)) = self.cache.get(&self.meta.block_id, name)
            && let Ok(known) = known.downcast::<T>()
        {
            return Ok(known);
        }
        let (made, bytes) = make()?;
        let made = Arc::new(made);
        let kept = CachedTable::Derived(Arc::<T>::clone(&made), bytes);
        self.cache.insert(&self.meta.block_id, name, kept);
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

    /// Bytes on disk that a scan of all rows reads.
    ///
    /// # Errors
    /// When the file is missing or damaged.
    pub fn scan_bytes(&self, columns: SampleColumns) -> Result<u64, BlockError> {
        Ok(self.samples()?.column_bytes(columns))
    }

    /// Whether all files are there in their size, which is what can be said without reading them.
    pub(crate) fn check_files(&self) -> Result<(), BlockError> {
        for file in &self.meta.files {
            let found = fs::metadata(self.directory.join(&file.path));
            let bytes = found
                .map_err(|error| self.error(ReadFault::from(error).at(&file.path)))?
                .len();
            if bytes != file.bytes {
                let reason = format!(
                    "{} has {bytes} bytes, was written with {}",
                    file.path, file.bytes
                );
                return Err(self.error(reason.into()));
            }
        }
        Ok(())
    }

    /// Whether all files are as they were written and can be decoded.
    pub(crate) fn verify(&self) -> Result<(), BlockError> {
        self.check_files()?;
        self.profiles()?;
        self.stacks()?;
        self.samples()?;
        Ok(())
    }

    /// Its files go when the last query that reads them is done.
    pub(crate) fn remove_when_unused(&self) {
        self.is_removed.store(true, Ordering::Release);
    }

    /// The samples, open until the value is dropped: there may be more blocks than a process may
    /// have open files.
    fn samples(&self) -> Result<SamplesFile, BlockError> {
        let meta = self.file(Table::Samples)?;
        let path = self.directory.join(&meta.path);
        let fault = |fault: ReadFault| self.error(fault.at("samples"));
        if let Some(CachedTable::Footer(footer)) = self.cached(Table::Samples) {
            return SamplesFile::open(&path, footer).map_err(fault);
        }
        let is_verified = self.is_verified.load(Ordering::Acquire);
        let opened = SamplesFile::open_unknown(&path, meta, is_verified).map_err(fault)?;
        self.is_verified.store(true, Ordering::Release);
        let footer = CachedTable::Footer(Arc::clone(opened.metadata()));
        self.keep(Table::Samples, footer);
        Ok(opened)
    }

    fn cached(&self, table: Table) -> Option<CachedTable> {
        self.cache.get(&self.meta.block_id, table.name())
    }

    fn keep(&self, table: Table, content: CachedTable) {
        self.cache
            .insert(&self.meta.block_id, table.name(), content);
    }

    fn file(&self, table: Table) -> Result<&FileMeta, BlockError> {
        let mut files = self.meta.files.iter();
        files
            .find(|file| file.table == table.name())
            .ok_or_else(|| self.error(format!("it has no table {}", table.name()).into()))
    }

    fn read(&self, table: Table) -> Result<bytes::Bytes, BlockError> {
        let meta = self.file(table)?;
        let content = fs::read(self.directory.join(&meta.path))
            .map_err(|error| self.error(ReadFault::from(error).at(&meta.path)))?;
        super::samples::verify(&mut content.as_slice(), meta).map_err(|fault| self.error(fault))?;
        Ok(content.into())
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
        if self.is_removed.load(Ordering::Acquire) && remove_files(&self.directory, &self.meta) {
            lock(&self.removed).push(std::mem::take(&mut self.meta.block_id));
        }
    }
}

/// Deletes a block's files. What cannot be deleted is tried again when the store opens: the
/// catalog keeps the row until then.
pub(crate) fn remove_files(directory: &Path, meta: &BlockMeta) -> bool {
    let manifest = format!("_blocks/{}.json", meta.block_id);
    let paths = meta.files.iter().map(|file| file.path.as_str());
    let mut is_gone = true;
    for path in paths.chain([manifest.as_str()]) {
        let path = directory.join(path);
        match fs::remove_file(&path) {
            Ok(()) => {}
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {}
            Err(error) => {
                tracing::warn!(path = %path.display(), %error, "cannot delete a block's file");
                is_gone = false;
            }
        }
    }
    is_gone
}
