//! One binary: its file, and its unwind table once a stack led through it.

use std::path::Path;
use std::sync::Arc;

use candela_symbols::LoadSegment;
use candela_symbols::ObjectFile;
use candela_symbols::SymbolCache;
use candela_symbols::foreign::Reader;
use candela_symbols::foreign::open_regular;
use candela_unwind::RuleSet;
use candela_unwind::Table;

/// What the kernel maps into each process.
const VDSO: &str = "[vdso]";

/// A binary that is on this machine.
pub(super) struct Binary {
    object: Arc<ObjectFile>,
    table: Unwinding,
}

/// How stacks get through a binary.
pub(super) enum Unwinding {
    /// Nobody asked.
    Unknown,
    FramePointers,
    Table(Table),
}

impl Binary {
    /// The binary that was mapped from `path`, from perf's cache or from that path; `None` when it is
    /// in neither, or another build.
    pub(super) fn open(
        path: &str,
        build_id: &str,
        perf_cache: Option<&Path>,
        cache: &SymbolCache,
    ) -> Option<Self> {
        let root = Path::new("/");
        let is_same = |object: &ObjectFile| is_same_build(object, build_id);
        let cached = perf_cache.and_then(|folder| {
            let (first, rest) = build_id.split_at_checked(2)?;
            let name = if path == VDSO { "vdso" } else { "elf" };
            let path = folder.join(first).join(rest).join(name);
            cache.open_path(&path, root).ok().filter(|it| is_same(it))
        });
        let object = match cached {
            Some(object) => Some(object),
            None if path == VDSO => candela_symbols::vdso::own_vdso().ok().map(Arc::new),
            // The programs that were recorded chose the path.
            None => open_regular(Path::new(path)).ok().and_then(|file| {
                cache
                    .open(&file, Path::new(path), root, Reader::Everybody)
                    .ok()
            }),
        };
        Some(Self {
            object: object.filter(|it| is_same(it))?,
            table: Unwinding::Unknown,
        })
    }

    pub(super) fn object(&self) -> &Arc<ObjectFile> {
        &self.object
    }

    pub(super) fn unwinding(&self) -> &Unwinding {
        &self.table
    }

    pub(super) fn build_table(&mut self, rules: &mut RuleSet) {
        if !matches!(self.table, Unwinding::Unknown) {
            return;
        }
        self.table = match Table::build(self.object.data(), rules) {
            Ok(table) => Unwinding::Table(table),
            Err(error) => {
                let path = self.object.path().display();
                tracing::debug!(%error, %path, "no unwind table");
                Unwinding::FramePointers
            }
        };
    }

    /// The linked address of the code byte at `file_offset`.
    pub(super) fn elf_address(&self, file_offset: u64) -> Option<u64> {
        self.code().find_map(|segment| {
            let inside = file_offset.checked_sub(segment.file_offset)?;
            (inside < segment.file_size).then(|| segment.address.wrapping_add(inside))
        })
    }

    /// The linked addresses of all code and the offset of the first byte in the file.
    pub(super) fn code_range(&self) -> (u64, u64, u64) {
        let first = self.code().min_by_key(|segment| segment.address);
        let ends = self
            .code()
            .map(|it| it.address.saturating_add(it.memory_size));
        match (first, ends.max()) {
            (Some(first), Some(end)) => (first.address, end, first.file_offset),
            _ => (0, 0, 0),
        }
    }

    fn code(&self) -> impl Iterator<Item = &LoadSegment> {
        self.object.segments().iter().filter(|it| it.executable)
    }
}

/// Whether a file is the one that was recorded, as far as the recording tells. perf keeps twenty bytes
/// of a build id.
fn is_same_build(object: &ObjectFile, build_id: &str) -> bool {
    let found = object.build_id().gnu_hex().unwrap_or_default();
    build_id.is_empty() || !found.is_empty() && found.starts_with(build_id)
}
