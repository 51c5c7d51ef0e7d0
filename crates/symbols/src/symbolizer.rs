//! Names for the addresses of one object, from the best source that knows them.

use crate::build_id::BuildId;
use crate::debug_files::{DebugFileSearch, supplement_link};
use crate::debuginfod::{Debuginfod, Lookup};
#[cfg(feature = "disassembly")]
use crate::disassembly::FunctionRange;
use crate::dwarf::{DwarfFrame, DwarfLookup, TooLarge};
use crate::frame::{FrameLanguage, Resolution, SourceFrame, SymbolSource};
use crate::gopclntab::GoTable;
use crate::mini_debug_info;
use crate::names::NamePool;
use crate::object_file::ObjectFile;
use crate::symbol_table::{SymbolTable, TableKind};
use std::cell::OnceCell;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Where a [`Symbolizer`] may look beside the object itself.
#[derive(Debug, Clone, Default)]
pub struct SymbolizerOptions {
    /// Directories of separate debug files.
    pub debug_files: DebugFileSearch,
    /// The client that fetches debug files by build id; `None` never asks the network.
    pub debuginfod: Option<Arc<Debuginfod>>,
}

/// Resolves addresses of one object. Everything is loaded when first needed, and nothing blocks on
/// the network.
///
/// Order of the sources: DWARF (own, by debuglink, by build id) with inlined calls, `.symtab`,
/// `.gnu_debugdata`, Go's pclntab, debuginfod, `.dynsym`. In a Go object the pclntab is asked
/// before `.symtab`, because it has the same names and lines and inlined calls besides.
#[derive(Debug)]
pub struct Symbolizer {
    object: Arc<ObjectFile>,
    sources: Mutex<Sources>,
    heap_bytes: AtomicUsize,
    has_debug_info: AtomicBool,
}

impl Symbolizer {
    /// A symbolizer for `object`; costs nothing until the first address.
    pub fn new(object: Arc<ObjectFile>, options: SymbolizerOptions) -> Self {
        let heap_bytes = AtomicUsize::new(object.heap_bytes());
        let sources = Mutex::new(Sources::new(Arc::clone(&object), options));
        Self {
            object,
            sources,
            heap_bytes,
            has_debug_info: AtomicBool::new(false),
        }
    }

    /// The object whose addresses are resolved.
    pub fn object(&self) -> &Arc<ObjectFile> {
        &self.object
    }

    /// Resolves `elf_address`, an address as linked (see [`ObjectFile::elf_address`]). For a return
    /// address pass the address minus one, so that the call and not what follows it is named.
    pub fn resolve(&self, elf_address: u64) -> Resolution {
        self.answer(elf_address).resolution
    }

    /// As [`resolve`](Self::resolve), and whether to keep the answer.
    pub(crate) fn answer(&self, elf_address: u64) -> Answer {
        let mut sources = self.lock();
        let answer = sources.resolve(elf_address);
        self.has_debug_info
            .store(sources.has_debug_info(), Ordering::Relaxed);
        self.heap_bytes
            .store(sources.heap_bytes(), Ordering::Relaxed);
        answer
    }

    /// The function at `elf_address` with its addresses.
    #[cfg(feature = "disassembly")]
    pub fn function_range(&self, elf_address: u64) -> Option<FunctionRange> {
        self.lock().function_range(elf_address)
    }

    /// Estimated heap in bytes of everything loaded so far.
    pub fn heap_bytes(&self) -> usize {
        self.heap_bytes.load(Ordering::Relaxed)
    }

    /// Gives the pages of the object and of all its debug files that were read back to the page
    /// cache. Waits for a lookup that is under way.
    pub fn release_pages(&self) {
        self.lock().release_pages();
    }

    /// Whether DWARF or a full symbol table was found so far, wherever it lies.
    pub(crate) fn has_debug_info(&self) -> bool {
        self.has_debug_info.load(Ordering::Relaxed)
    }

    fn lock(&self) -> MutexGuard<'_, Sources> {
        self.sources.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// An answer, and whether a later one may be better.
pub(crate) struct Answer {
    pub(crate) resolution: Resolution,
    pub(crate) is_final: bool,
    /// This lookup found that the object's DWARF is too large to be unpacked.
    pub(crate) skipped_debug_info: bool,
}

#[derive(Debug)]
struct Sources {
    object: Arc<ObjectFile>,
    options: SymbolizerOptions,
    /// The separate debug file, from disk or from debuginfod.
    debug_file: OnceCell<Option<Arc<ObjectFile>>>,
    dwarf: OnceCell<Option<DwarfLookup>>,
    symtab: OnceCell<Option<NamedTable>>,
    mini_debug_info: OnceCell<Option<NamedTable>>,
    go: OnceCell<Option<GoTable>>,
    dynsym: OnceCell<Option<NamedTable>>,
    debuginfod_answered: bool,
    /// The supplement that the DWARF refers to and that is not here yet.
    missing_supplement: Option<BuildId>,
    skipped_debug_info: bool,
    names: NamePool,
}

/// A symbol table together with the file that holds its names.
#[derive(Debug)]
struct NamedTable {
    object: Arc<ObjectFile>,
    table: SymbolTable,
}

impl NamedTable {
    fn read(object: Arc<ObjectFile>, kind: TableKind) -> Option<Self> {
        let table = SymbolTable::read(&object, kind);
        (!table.is_empty()).then_some(Self { object, table })
    }

    fn find(&self, address: u64) -> Option<String> {
        self.table.find(&self.object, address)
    }

    #[cfg(feature = "disassembly")]
    fn addresses_at(&self, address: u64) -> Option<std::ops::Range<u64>> {
        self.table.addresses_at(address)
    }
}

/// What the object's files say, before the network is asked.
enum Local {
    Known(Resolution),
    /// A position from a line table alone, still without a function.
    Nameless(Option<SourceFrame>),
}

impl Sources {
    fn new(object: Arc<ObjectFile>, options: SymbolizerOptions) -> Self {
        Self {
            object,
            options,
            debug_file: OnceCell::new(),
            dwarf: OnceCell::new(),
            symtab: OnceCell::new(),
            mini_debug_info: OnceCell::new(),
            go: OnceCell::new(),
            dynsym: OnceCell::new(),
            debuginfod_answered: false,
            missing_supplement: None,
            skipped_debug_info: false,
            names: NamePool::default(),
        }
    }

    fn resolve(&mut self, address: u64) -> Answer {
        if !self
            .object
            .segments()
            .iter()
            .any(|segment| segment.contains_address(address))
        {
            return Answer {
                resolution: Resolution::unknown(false),
                is_final: true,
                skipped_debug_info: false,
            };
        }
        let mut local = self.resolve_locally(address);
        let mut asked = Asked::NothingNew;
        if matches!(local, Local::Nameless(_)) {
            asked = self.ask_debuginfod();
        }
        if matches!(asked, Asked::NewDebugFile) {
            local = self.resolve_locally(address);
        }
        let asked_for_supplement = self.ask_for_supplement();
        if matches!(asked_for_supplement, Asked::NewDebugFile) {
            local = self.resolve_locally(address);
        }
        let asked = [asked, asked_for_supplement];
        let pending = asked.iter().any(|it| matches!(it, Asked::Pending));
        let is_unreachable = asked.iter().any(|it| matches!(it, Asked::Unreachable));
        Answer {
            resolution: self.resolution(local, address, pending),
            is_final: !pending && !is_unreachable,
            skipped_debug_info: std::mem::take(&mut self.skipped_debug_info),
        }
    }

    /// The answer as far as it is known, with `.dynsym` as the last resort.
    fn resolution(&mut self, local: Local, address: u64, pending: bool) -> Resolution {
        let position = match local {
            Local::Known(resolution) => {
                return Resolution {
                    pending,
                    ..resolution
                };
            }
            Local::Nameless(position) => position,
        };
        let Some(name) = self.dynsym_name(address) else {
            return Resolution::unknown(pending);
        };
        let frame = named_frame(&name, position, &mut self.names);
        Resolution {
            frames: Arc::from([frame]),
            source: SymbolSource::Dynsym,
            pending,
        }
    }

    fn resolve_locally(&mut self, address: u64) -> Local {
        let mut frames = self.dwarf_frames(address);
        if let Some(outermost) = frames.last_mut()
            && outermost.wants_linkage_name
            && let Some(raw_name) = self.symtab_name(address)
        {
            let function = self.names.function(&raw_name);
            if function.name != function.system_name {
                (outermost.frame.function, outermost.frame.system_name) =
                    (function.name, function.system_name);
            }
        }
        // Only the line table covers assembly: the position is kept and the name comes from a
        // symbol table.
        let position = match frames.last() {
            Some(outermost) if !outermost.has_name => frames.pop().map(|nameless| nameless.frame),
            Some(_) => {
                let frames = frames.into_iter().map(|found| found.frame).collect();
                return known(frames, SymbolSource::Dwarf);
            }
            None => None,
        };
        if self.object.is_go()
            && let Some(frames) = self.go_frames(address)
        {
            return known(frames, SymbolSource::GoPclntab);
        }
        let has_position = position.is_some();
        if let Some(name) = self.symtab_name(address) {
            let frame = named_frame(&name, position, &mut self.names);
            return known(
                vec![frame],
                if has_position {
                    SymbolSource::Dwarf
                } else {
                    SymbolSource::Symtab
                },
            );
        }
        if let Some(name) = self.mini_debug_info_name(address) {
            let frame = named_frame(&name, position, &mut self.names);
            return known(vec![frame], SymbolSource::MiniDebugInfo);
        }
        Local::Nameless(position)
    }

    fn dwarf_frames(&mut self, address: u64) -> Vec<DwarfFrame> {
        self.load_dwarf_once();
        match self.dwarf.get_mut() {
            Some(Some(dwarf)) => dwarf.frames(address, &mut self.names),
            _ => Vec::new(),
        }
    }

    fn load_dwarf_once(&mut self) {
        if self.dwarf.get().is_none() {
            self.dwarf = OnceCell::from(self.load_dwarf(None));
        }
    }

    /// Symbol tables are asked first: parts of one function that lie apart have names of their own
    /// there.
    #[cfg(feature = "disassembly")]
    fn function_range(&mut self, address: u64) -> Option<FunctionRange> {
        let own = |name: Option<String>, addresses| {
            let name = name?;
            Some(FunctionRange {
                name: crate::demangle::demangle(&name).name.into_owned(),
                addresses,
            })
        };
        let named = self.symtab().and_then(|table| table.addresses_at(address));
        if let Some(addresses) = named {
            return own(self.symtab_name(address), addresses);
        }
        self.load_dwarf_once();
        if let Some(Some(dwarf)) = self.dwarf.get_mut()
            && let Some(addresses) = dwarf.function_addresses(address)
        {
            let frames = dwarf.frames(address, &mut self.names);
            let name = frames.last().map(|found| found.frame.function.to_string());
            return own(name, addresses);
        }
        let name = self.dynsym_name(address);
        let table = self.dynsym.get()?.as_ref()?;
        own(name, table.addresses_at(address)?)
    }

    /// Loads the DWARF with the supplement that was fetched for it, or with the one on disk.
    fn load_dwarf(&mut self, fetched_supplement: Option<Arc<ObjectFile>>) -> Option<DwarfLookup> {
        let file = match self.object.contents().dwarf {
            true => Arc::clone(&self.object),
            false => Arc::clone(self.debug_file()?),
        };
        let supplement =
            fetched_supplement.or_else(|| self.options.debug_files.find_supplement(&file));
        self.missing_supplement = match supplement {
            Some(_) => None,
            None => supplement_link(&file).map(|(_, build_id)| build_id),
        };
        DwarfLookup::load(file, supplement).unwrap_or_else(|TooLarge { unpacked_bytes }| {
            self.skipped_debug_info = true;
            tracing::warn!(
                path = %self.object.path().display(), unpacked_bytes,
                "compressed DWARF is too large to be unpacked; functions are named by symbol tables"
            );
            None
        })
    }

    fn debug_file(&self) -> Option<&Arc<ObjectFile>> {
        self.debug_file
            .get_or_init(|| self.options.debug_files.find(&self.object))
            .as_ref()
    }

    fn symtab(&self) -> Option<&NamedTable> {
        let table = self.symtab.get_or_init(|| {
            let own = self
                .object
                .contents()
                .symtab
                .then(|| Arc::clone(&self.object));
            let holder = own.or_else(|| self.debug_file().map(Arc::clone))?;
            NamedTable::read(holder, TableKind::Full)
        });
        table.as_ref()
    }

    fn symtab_name(&self, address: u64) -> Option<String> {
        self.symtab()?.find(address)
    }

    /// Only of objects without a full symbol table: what is in `.dynsym` is in `.symtab` too.
    fn dynsym_name(&self, address: u64) -> Option<String> {
        if self.symtab().is_some() {
            return None;
        }
        let table = self
            .dynsym
            .get_or_init(|| NamedTable::read(Arc::clone(&self.object), TableKind::Dynamic));
        table.as_ref()?.find(address)
    }

    fn mini_debug_info_name(&self, address: u64) -> Option<String> {
        if !self.object.contents().mini_debug_info {
            return None;
        }
        let table = self.mini_debug_info.get_or_init(|| {
            let inner = Arc::new(mini_debug_info::read(&self.object)?);
            NamedTable::read(inner, TableKind::Full)
        });
        table.as_ref()?.find(address)
    }

    fn go_frames(&mut self, address: u64) -> Option<Vec<SourceFrame>> {
        let object = &self.object;
        let table = self.go.get_or_init(|| GoTable::load(object)).as_ref()?;
        table.frames(object, address, &mut self.names)
    }

    /// Asks debuginfod where neither DWARF nor a full symbol table is at hand.
    fn ask_debuginfod(&mut self) -> Asked {
        let Some(client) = self
            .options
            .debuginfod
            .as_ref()
            .filter(|_| !self.debuginfod_answered)
        else {
            return Asked::NothingNew;
        };
        if self.has_debug_info() || self.symtab().is_some() {
            self.debuginfod_answered = true;
            return Asked::NothingNew;
        }
        let path = match client.debug_file(self.object.build_id()) {
            Lookup::Found(path) => path,
            Lookup::Pending => return Asked::Pending,
            Lookup::Unreachable => return Asked::Unreachable,
            // Asked again when the client has forgotten; until then it answers at once.
            Lookup::Absent => return Asked::NothingNew,
        };
        self.debuginfod_answered = true;
        let Some(file) = open_fetched(&path, self.object.build_id()) else {
            return Asked::NothingNew;
        };
        self.debug_file = OnceCell::from(Some(Arc::new(file)));
        self.dwarf = OnceCell::new();
        self.symtab = OnceCell::new();
        Asked::NewDebugFile
    }

    /// Asks debuginfod for the parts that `dwz` moved out of the DWARF at hand.
    fn ask_for_supplement(&mut self) -> Asked {
        let (Some(build_id), Some(client)) = (&self.missing_supplement, &self.options.debuginfod)
        else {
            return Asked::NothingNew;
        };
        let path = match client.debug_file(build_id) {
            Lookup::Found(path) => path,
            Lookup::Pending => return Asked::Pending,
            Lookup::Unreachable => return Asked::Unreachable,
            Lookup::Absent => return Asked::NothingNew,
        };
        let opened = open_fetched(&path, build_id);
        self.missing_supplement = None;
        let Some(file) = opened else {
            return Asked::NothingNew;
        };
        self.dwarf = OnceCell::from(self.load_dwarf(Some(Arc::new(file))));
        Asked::NewDebugFile
    }

    fn has_debug_info(&self) -> bool {
        let has_dwarf = matches!(self.dwarf.get(), Some(Some(_)));
        has_dwarf || matches!(self.symtab.get(), Some(Some(_)))
    }

    fn release_pages(&self) {
        self.object.release_pages();
        if let Some(Some(debug_file)) = self.debug_file.get() {
            debug_file.release_pages();
        }
        if let Some(Some(dwarf)) = self.dwarf.get() {
            dwarf.release_pages();
        }
        if let Some(Some(symtab)) = self.symtab.get() {
            symtab.object.release_pages();
        }
    }

    fn heap_bytes(&self) -> usize {
        let tables = [&self.symtab, &self.mini_debug_info, &self.dynsym];
        let tables: usize = tables
            .into_iter()
            .filter_map(|cell| cell.get()?.as_ref())
            .map(|named| named.table.heap_bytes() + named.object.heap_bytes())
            .sum();
        let dwarf = self
            .dwarf
            .get()
            .and_then(Option::as_ref)
            .map_or(0, DwarfLookup::heap_bytes);
        size_of::<Self>() + self.object.heap_bytes() + tables + dwarf + self.names.heap_bytes()
    }
}

enum Asked {
    NewDebugFile,
    Pending,
    Unreachable,
    NothingNew,
}

fn known(frames: Vec<SourceFrame>, source: SymbolSource) -> Local {
    Local::Known(Resolution {
        frames: frames.into(),
        source,
        pending: false,
    })
}

/// A frame named by a symbol table, at the position that a line table gave, if any.
fn named_frame(
    system_name: &str,
    position: Option<SourceFrame>,
    names: &mut NamePool,
) -> SourceFrame {
    let function = names.function(system_name);
    let blank = || SourceFrame::named("", FrameLanguage::Native);
    SourceFrame {
        function: function.name,
        system_name: function.system_name,
        language: function.language,
        ..position.unwrap_or_else(blank)
    }
}

fn open_fetched(path: &Path, wanted: &BuildId) -> Option<ObjectFile> {
    match ObjectFile::open(path) {
        Ok(file) if file.build_id() == wanted => Some(file),
        Ok(file) => {
            tracing::warn!(
                path = %path.display(), %wanted, given = %file.build_id(),
                "debuginfod served a file with another build id; it is not used"
            );
            None
        }
        Err(error) => {
            tracing::warn!(%error, "a file from debuginfod is not usable");
            None
        }
    }
}
