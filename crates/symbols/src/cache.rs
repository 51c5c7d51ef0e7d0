//! Opened objects, their symbolizers and their answers, shared by threads and bounded in memory.

use crate::build_id::BuildId;
use crate::error::Error;
use crate::foreign::Reader;
use crate::frame::{Resolution, SourceFrame, SymbolSource};
use crate::generations::Generations;
use crate::object_file::{Contents, FileKey, ObjectFile, Origin};
use crate::rooted::open_in_root;
use crate::symbolizer::{Symbolizer, SymbolizerOptions};
use std::collections::HashMap;
use std::fs::File;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Files whose identity is remembered, so that the same library in a thousand processes is opened
/// once.
const REMEMBERED_FILES: usize = 16 * 1024;

/// Objects that are remembered at all. What is kept of one without symbolizer is about a hundred
/// bytes.
const REMEMBERED_OBJECTS: usize = 8 * 1024;

/// Bounds of a [`SymbolCache`], and where its symbolizers look.
#[derive(Debug, Clone)]
pub struct SymbolCacheOptions {
    /// Bound for parsed symbols in bytes of heap. The object used last is always kept, even when it
    /// alone is larger.
    pub max_symbol_bytes: usize,
    /// Bound for remembered answers in bytes of heap.
    pub max_answer_bytes: usize,
    /// Where symbolizers look beside the object itself.
    pub symbolizer: SymbolizerOptions,
}

impl Default for SymbolCacheOptions {
    fn default() -> Self {
        Self {
            max_symbol_bytes: 32 << 20,
            max_answer_bytes: 16 << 20,
            symbolizer: SymbolizerOptions::default(),
        }
    }
}

/// What a [`SymbolCache`] has done since it was made, and what it holds now.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct SymbolCacheStats {
    /// Addresses answered from memory.
    pub hits: u64,
    /// Addresses that had to be looked up.
    pub misses: u64,
    /// Looked-up addresses that nothing names.
    pub unnamed: u64,
    /// Looked-up addresses whose answer waits for debuginfod.
    pub pending: u64,
    /// Files refused because they are known not to be readable ELF files.
    pub refused_files: u64,
    /// Objects whose compressed DWARF was too large to be unpacked; their symbol tables name them.
    pub skipped_debug_info: u64,
    /// Parsed objects dropped to stay within the bound.
    pub evicted_objects: u64,
    /// Answers dropped to stay within the bound.
    pub evicted_answers: u64,
    /// Parsed objects held now.
    pub objects: usize,
    /// Estimated heap of parsed objects now, in bytes.
    pub symbol_bytes: usize,
    /// Answers held now.
    pub answers: usize,
    /// Estimated heap of answers now, in bytes.
    pub answer_bytes: usize,
}

/// Symbolizers by build id, answers by address.
///
/// Callers keep no object longer than they need it: an [`ObjectFile`] pins its file, and with it a
/// container's file system.
#[derive(Debug)]
pub struct SymbolCache {
    options: SymbolCacheOptions,
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    files: Generations<FileKey, FileIdentity>,
    objects: HashMap<BuildId, Entry>,
    answers: Generations<(u32, u64), Resolution>,
    next_number: u32,
    clock: u64,
    stats: SymbolCacheStats,
}

#[derive(Debug, Clone)]
enum FileIdentity {
    Object(BuildId, Contents),
    NotElf(Arc<str>),
}

#[derive(Debug)]
struct Entry {
    /// Stands for the build id in the keys of answers.
    number: u32,
    last_used: u64,
    /// Of the file that answers came from, the last of several with one build id.
    contents: Contents,
    symbolizer: Option<Arc<Symbolizer>>,
}

impl Entry {
    /// Whether `contents` of another file with the build id promise more than what answered so far,
    /// or that was cut short, as by `cp` over it, or the search for debug files can only go better
    /// from another root directory.
    fn is_outdone_by(&self, contents: Contents) -> bool {
        if contents.richness() > self.contents.richness() {
            return true;
        }
        let held = self.symbolizer.as_deref();
        held.is_some_and(|held| held.object().has_lost_pages() || has_lost_its_root(held))
    }
}

/// Whether the process is gone in whose root directory debug files were searched in vain. The look
/// at the file system is only taken for stripped objects of containers.
fn has_lost_its_root(symbolizer: &Symbolizer) -> bool {
    let object = symbolizer.object();
    let contents = object.contents();
    let is_named = contents.dwarf || contents.symtab || symbolizer.has_debug_info();
    !is_named
        && object
            .root()
            .is_some_and(|root| root.try_exists().is_ok_and(|exists| !exists))
}

impl SymbolCache {
    /// An empty cache.
    pub fn new(options: SymbolCacheOptions) -> Self {
        let state = State {
            files: Generations::new(REMEMBERED_FILES),
            objects: HashMap::new(),
            answers: Generations::new(options.max_answer_bytes),
            next_number: 0,
            clock: 0,
            stats: SymbolCacheStats::default(),
        };
        Self {
            options,
            state: Mutex::new(state),
        }
    }

    /// The object in `file`, mapped once however many processes and paths lead to it. `path` is the
    /// path as the process knows it and `root` the process's root directory (`/proc/PID/root`);
    /// both serve the search for debug files, which are read for `reader`.
    ///
    /// # Errors
    /// As [`ObjectFile::from_file`]. That a file is no ELF file is remembered until it changes.
    pub fn open(
        &self,
        file: &File,
        path: &Path,
        root: &Path,
        reader: Reader,
    ) -> Result<Arc<ObjectFile>, Error> {
        self.open_as(file, path, |object| object.with_root(root.into(), reader))
    }

    fn open_as(
        &self,
        file: &File,
        path: &Path,
        complete: impl FnOnce(ObjectFile) -> ObjectFile,
    ) -> Result<Arc<ObjectFile>, Error> {
        let metadata = file.metadata().map_err(|error| Error::io(path, error))?;
        let key = FileKey::of(&metadata);
        if let Some(known) = self.known_file(&key, path) {
            return known;
        }
        let opened = ObjectFile::from_file(file, path).map(complete);
        let mut state = self.lock();
        match opened {
            Ok(object) => {
                let object = Arc::new(object);
                state.files.insert(key, FileIdentity::of(&object), 1);
                state.replace_outdone(&object);
                let symbolizer = state.symbolizer(&object, &self.options);
                state.evict(&self.options);
                Ok(Arc::clone(symbolizer.object()))
            }
            Err(Error::NotElf { path, reason }) => {
                state
                    .files
                    .insert(key, FileIdentity::NotElf(Arc::from(reason.as_str())), 1);
                Err(Error::NotElf { path, reason })
            }
            Err(other) => Err(other),
        }
    }

    /// Opens `path`, which the operator gave, as seen from `root` (`/` for this mount namespace), then as
    /// [`open`](Self::open).
    ///
    /// # Errors
    /// As [`ObjectFile::open`].
    pub fn open_path(&self, path: &Path, root: &Path) -> Result<Arc<ObjectFile>, Error> {
        let file = open_in_root(root, path).map_err(|error| Error::io(path, error))?;
        self.open_as(&file, path, |object| {
            let object = object.with_root(root.into(), Reader::Everybody);
            object.with_origin(Origin::Operator)
        })
    }

    /// Resolves an address of `object` as [`Symbolizer::resolve`] does, from memory where the
    /// answer is known.
    pub fn resolve(&self, object: &Arc<ObjectFile>, elf_address: u64) -> Resolution {
        let (number, symbolizer) = {
            let mut state = self.lock();
            let number = state.number(object.build_id());
            if let Some(answer) = state.answers.get(&(number, elf_address)) {
                state.stats.hits += 1;
                return answer;
            }
            state.stats.misses += 1;
            (number, state.symbolizer(object, &self.options))
        };
        // Outside of the lock: parsing one large object must not keep the others waiting.
        let answered = symbolizer.answer(elf_address);
        let answer = answered.resolution;
        let mut state = self.lock();
        state.stats.unnamed += u64::from(answer.source == SymbolSource::None);
        state.stats.pending += u64::from(answer.pending);
        if answered.is_final {
            state
                .answers
                .insert((number, elf_address), answer.clone(), weight(&answer));
        }
        state.stats.skipped_debug_info += u64::from(answered.skipped_debug_info);
        state.evict(&self.options);
        answer
    }

    /// Gives the pages of all files read so far back to the page cache: for the end of a batch.
    pub fn release_pages(&self) {
        let held: Vec<Arc<Symbolizer>> = {
            let state = self.lock();
            let entries = state.objects.values();
            entries
                .filter_map(|entry| entry.symbolizer.clone())
                .collect()
        };
        // Outside of the lock: each waits for its lookup under way.
        for symbolizer in held {
            symbolizer.release_pages();
        }
    }

    /// Counts since the start, and sizes now.
    pub fn stats(&self) -> SymbolCacheStats {
        let state = self.lock();
        let held = state
            .objects
            .values()
            .filter(|entry| entry.symbolizer.is_some());
        SymbolCacheStats {
            objects: held.count(),
            symbol_bytes: state.symbol_bytes(),
            answers: state.answers.len(),
            answer_bytes: state.answers.weight(),
            evicted_answers: state.answers.evicted(),
            ..state.stats
        }
    }

    fn known_file(&self, key: &FileKey, path: &Path) -> Option<Result<Arc<ObjectFile>, Error>> {
        let mut state = self.lock();
        match state.files.get(key)? {
            FileIdentity::Object(id, contents) => {
                let entry = state.objects.get(&id)?;
                if entry.is_outdone_by(contents) {
                    return None;
                }
                let symbolizer = entry.symbolizer.as_ref()?;
                Some(Ok(Arc::clone(symbolizer.object())))
            }
            FileIdentity::NotElf(reason) => {
                state.stats.refused_files += 1;
                Some(Err(Error::not_elf(path, &reason)))
            }
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        // A panic while the lock is held leaves at worst a missing entry, which is looked up again.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl FileIdentity {
    fn of(object: &ObjectFile) -> Self {
        Self::Object(object.build_id().clone(), object.contents())
    }
}

impl State {
    /// Lets `object` answer for its build id from now on when it is better than the file that did,
    /// under a new number: what the other could not name must not stay nameless.
    fn replace_outdone(&mut self, object: &ObjectFile) {
        let number = self.next_number;
        let Some(entry) = self.objects.get_mut(object.build_id()) else {
            return;
        };
        if !entry.is_outdone_by(object.contents()) {
            return;
        }
        (entry.number, entry.symbolizer) = (number, None);
        self.next_number = self.next_number.wrapping_add(1);
    }

    fn entry(&mut self, id: &BuildId) -> &mut Entry {
        self.clock += 1;
        if !self.objects.contains_key(id) {
            if self.objects.len() >= REMEMBERED_OBJECTS {
                self.forget_oldest();
            }
            let entry = Entry {
                number: self.next_number,
                last_used: 0,
                contents: Contents::default(),
                symbolizer: None,
            };
            self.next_number = self.next_number.wrapping_add(1);
            self.objects.insert(id.clone(), entry);
        }
        let entry = self.objects.get_mut(id).expect("found or just inserted");
        entry.last_used = self.clock;
        entry
    }

    fn number(&mut self, id: &BuildId) -> u32 {
        self.entry(id).number
    }

    fn symbolizer(
        &mut self,
        object: &Arc<ObjectFile>,
        options: &SymbolCacheOptions,
    ) -> Arc<Symbolizer> {
        let entry = self.entry(object.build_id());
        if let Some(held) = &entry.symbolizer {
            return Arc::clone(held);
        }
        let made = Symbolizer::new(Arc::clone(object), options.symbolizer.clone());
        let made = Arc::new(made);
        entry.contents = object.contents();
        entry.symbolizer = Some(Arc::clone(&made));
        made
    }

    fn symbol_bytes(&self) -> usize {
        let held = self
            .objects
            .values()
            .filter_map(|entry| entry.symbolizer.as_ref());
        held.map(|symbolizer| symbolizer.heap_bytes()).sum()
    }

    /// Drops symbolizers, least recently used first, until the rest fits. Runs after a miss only,
    /// where a walk over some hundred objects is lost in the cost of the lookup.
    fn evict(&mut self, options: &SymbolCacheOptions) {
        let mut bytes = self.symbol_bytes();
        while bytes > options.max_symbol_bytes {
            let mut held: Vec<_> = self
                .objects
                .values_mut()
                .filter(|entry| entry.symbolizer.is_some())
                .collect();
            if held.len() <= 1 {
                return;
            }
            let Some(oldest) = held.iter_mut().min_by_key(|entry| entry.last_used) else {
                return;
            };
            bytes -= oldest
                .symbolizer
                .take()
                .map_or(0, |symbolizer| symbolizer.heap_bytes());
            self.stats.evicted_objects += 1;
        }
    }

    fn forget_oldest(&mut self) {
        let oldest = self
            .objects
            .iter()
            .min_by_key(|(_, entry)| entry.last_used)
            .map(|(id, _)| id.clone());
        if let Some(entry) = oldest.and_then(|id| self.objects.remove(&id)) {
            self.stats.evicted_objects += u64::from(entry.symbolizer.is_some());
        }
    }
}

/// Heap of one answer: its frames with their names, the reference counts and the map's slot. Names
/// are shared with the symbolizer's pool, but live on with the answer when that is dropped.
fn weight(answer: &Resolution) -> usize {
    let frames = answer.frames.iter().map(|frame| {
        let system_name = match Arc::ptr_eq(&frame.system_name, &frame.function) {
            true => 0,
            false => frame.system_name.len(),
        };
        let file = frame.file.as_ref().map_or(0, |file| file.len());
        size_of::<SourceFrame>() + frame.function.len() + system_name + file
    });
    frames.sum::<usize>() + 96
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::frame::FrameLanguage;

    #[test]
    fn names_count_in_the_weight_of_an_answer() {
        let answer = |name: &str| Resolution {
            frames: Arc::from([SourceFrame::named(name, FrameLanguage::Native)]),
            source: SymbolSource::Symtab,
            pending: false,
        };
        let (short, long) = (answer("f"), answer(&"f".repeat(10_001)));
        assert!(weight(&long) >= weight(&short) + 10_000);
    }
}
