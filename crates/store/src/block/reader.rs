//! A block that queries read.

use std::any::Any;
use std::fs;
use std::ops::ControlFlow;
use std::ops::Range;
use std::path::Path;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::OnceLock;
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
use crate::locations::LocationTable;

/// Files are opened and decoded when they are first needed. A query that holds a block can read
/// it to the end, even when retention removes it meanwhile.
#[derive(Debug)]
pub struct Block {
    meta: BlockMeta,
    directory: PathBuf,
    cache: Arc<TableCache>,
    samples: OnceLock<SamplesFile>,
    is_removed: AtomicBool,
}

impl Block {
    pub(crate) fn new(meta: BlockMeta, directory: PathBuf, cache: Arc<TableCache>) -> Self {
        Self {
            meta,
            directory,
            cache,
            samples: OnceLock::new(),
            is_removed: AtomicBool::new(false),
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
        let table = Arc::new(table.map_err(|reason| self.error(reason))?);
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
        let table = load::label_sets(content).map_err(|reason| self.error(reason))?;
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
        let table = Arc::new(table.map_err(|reason| self.error(reason))?);
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
        let table = load::locations(content).map_err(|reason| self.error(reason))?;
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
            .map_err(|reason| self.error(format!("samples: {reason}")))
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
                .map_err(|error| self.error(format!("{}: {error}", file.path)))?
                .len();
            if bytes != file.bytes {
                let reason = format!(
                    "{} has {bytes} bytes, was written with {}",
                    file.path, file.bytes
                );
                return Err(self.error(reason));
            }
        }
        Ok(())
    }

    /// Its files go when the last query that reads them is done.
    pub(crate) fn remove_when_unused(&self) {
        self.is_removed.store(true, Ordering::Release);
    }

    fn samples(&self) -> Result<&SamplesFile, BlockError> {
        if let Some(samples) = self.samples.get() {
            return Ok(samples);
        }
        let meta = self.file(Table::Samples)?;
        let opened = SamplesFile::open(&self.directory.join(&meta.path), meta);
        let opened = opened.map_err(|reason| self.error(format!("samples: {reason}")))?;
        Ok(self.samples.get_or_init(|| opened))
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
            .ok_or_else(|| self.error(format!("it has no table {}", table.name())))
    }

    fn read(&self, table: Table) -> Result<bytes::Bytes, BlockError> {
        let meta = self.file(table)?;
        let content = fs::read(self.directory.join(&meta.path))
            .map_err(|error| self.error(format!("{}: {error}", meta.path)))?;
        super::samples::verify(&mut content.as_slice(), meta)
            .map_err(|reason| self.error(reason))?;
        Ok(content.into())
    }

    fn error(&self, reason: String) -> BlockError {
        BlockError {
            block_id: self.meta.block_id.clone(),
            reason,
        }
    }
}

impl Drop for Block {
    fn drop(&mut self) {
        if self.is_removed.load(Ordering::Acquire) {
            remove_files(&self.directory, &self.meta);
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
