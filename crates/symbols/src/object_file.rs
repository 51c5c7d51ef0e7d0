//! An object file in memory: its bytes, its identity, and where its code lies.

use crate::build_id::BuildId;
use crate::error::Error;
use crate::foreign::{self, Reader};
use crate::mapped_file::MappedFile;
use crate::segments::{self, LoadSegment, MappedRange};
use object::read::elf::{ElfFile, FileHeader};
use object::{CompressionFormat, Object, ObjectSection};
use std::borrow::Cow;
use std::fmt;
use std::fs::{File, Metadata};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// Identity of a file's contents before its build id is known.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct FileKey {
    /// Device number.
    pub device: u64,
    /// Inode number.
    pub inode: u64,
    /// Last modification, nanoseconds since the epoch.
    pub modified_ns: i128,
    /// Size in bytes.
    pub size: u64,
}

impl FileKey {
    /// The key of an opened file.
    pub fn of(metadata: &Metadata) -> Self {
        Self {
            device: metadata.dev(),
            inode: metadata.ino(),
            modified_ns: i128::from(metadata.mtime()) * 1_000_000_000
                + i128::from(metadata.mtime_nsec()),
            size: metadata.size(),
        }
    }
}

/// What the section headers promise.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Contents {
    /// `.debug_info` with contents is present.
    pub dwarf: bool,
    /// `.symtab` with contents is present.
    pub symtab: bool,
    /// `.gnu_debugdata` is present.
    pub mini_debug_info: bool,
    /// Built by Go's toolchain: a pclntab, a Go build id or Go's build information.
    pub go: bool,
}

impl Contents {
    /// How much can be named with it, by the order in which sources are trusted.
    pub fn richness(self) -> (bool, bool, bool, bool) {
        (self.dwarf, self.symtab, self.mini_debug_info, self.go)
    }

    /// The words for what is there, the most trusted first.
    pub fn names(self) -> Vec<&'static str> {
        let names = [
            (self.dwarf, "dwarf"),
            (self.symtab, "symtab"),
            (self.mini_debug_info, "mini_debug_info"),
            (self.go, "go"),
        ];
        let present = names.into_iter().filter(|(is_present, _)| *is_present);
        present.map(|(_, name)| name).collect()
    }
}

/// An ELF file, mapped or held in memory, with everything that is cheap to know about it.
pub struct ObjectFile {
    bytes: ObjectBytes,
    path: PathBuf,
    root: Option<PathBuf>,
    key: Option<FileKey>,
    owner: Option<u32>,
    origin: Origin,
    build_id: BuildId,
    segments: Box<[LoadSegment]>,
    contents: Contents,
}

/// Who led to a file, and with it to those that it names.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Origin {
    /// Whoever runs us.
    Operator,
    /// A process or a profile, for this reader.
    Foreign(Reader),
}

enum ObjectBytes {
    Mapped(MappedFile),
    Owned(Vec<u8>),
}

impl ObjectFile {
    /// Opens and maps the ELF file at `path`, which the operator gave or the caller made. For one that stands in a
    /// profile there is [`open_named_in_profile`](Self::open_named_in_profile).
    ///
    /// # Errors
    /// [`Error::Io`], [`Error::NotRegularFile`] or [`Error::NotElf`].
    pub fn open(path: &Path) -> Result<Self, Error> {
        let file = crate::rooted::open_in_root(Path::new("/"), path)
            .map_err(|error| Error::io(path, error))?;
        Ok(Self::from_file(&file, path)?.with_origin(Origin::Operator))
    }

    /// Opens and maps the ELF file at a path that stands in a profile, as [`crate::foreign::open_named_in_profile`] does. Its
    /// build id must be compared with the one that stands there too.
    ///
    /// # Errors
    /// As [`open`](Self::open), and [`Error::Refused`].
    pub fn open_named_in_profile(path: &Path) -> Result<Self, Error> {
        let file = foreign::open_named_in_profile(path)
            .map_err(|refusal| Error::refused(path, refusal))?;
        Self::from_file(&file, path)
    }

    /// Maps an ELF file that is already open, e.g. from `/proc/PID/map_files` for a deleted binary.
    /// `path` is the path as the process knows it: it names the object in errors and leads to its
    /// separate debug file.
    ///
    /// # Errors
    /// [`Error::Io`], [`Error::NotRegularFile`] or [`Error::NotElf`].
    pub fn from_file(file: &File, path: &Path) -> Result<Self, Error> {
        let metadata = file.metadata().map_err(|error| Error::io(path, error))?;
        if !metadata.is_file() {
            return Err(Error::NotRegularFile { path: path.into() });
        }
        if metadata.len() == 0 {
            return Err(Error::not_elf(path, &"it is empty"));
        }
        let mapped = MappedFile::map(file).map_err(|error| Error::io(path, error))?;
        let mut object = Self::from_object_bytes(ObjectBytes::Mapped(mapped), path)?;
        object.key = Some(FileKey::of(&metadata));
        object.owner = Some(metadata.uid());
        Ok(object)
    }

    /// Takes an ELF image from memory, e.g. the vDSO or a decompressed section. `name` stands in
    /// for the path.
    ///
    /// # Errors
    /// [`Error::NotElf`].
    pub fn from_bytes(bytes: Vec<u8>, name: &Path) -> Result<Self, Error> {
        Self::from_object_bytes(ObjectBytes::Owned(bytes), name)
    }

    fn from_object_bytes(bytes: ObjectBytes, path: &Path) -> Result<Self, Error> {
        let parsed = match parse(bytes.as_slice()).map_err(|error| Error::not_elf(path, &error))? {
            ParsedElf::Elf32(elf) => Basics::of(&elf, bytes.as_slice()),
            ParsedElf::Elf64(elf) => Basics::of(&elf, bytes.as_slice()),
        };
        Ok(Self {
            bytes,
            path: path.into(),
            root: None,
            key: None,
            owner: None,
            origin: Origin::Foreign(Reader::Everybody),
            build_id: parsed.build_id,
            segments: parsed.segments,
            contents: parsed.contents,
        })
    }

    /// Says that [`path`](Self::path) is meant inside `root`, usually `/proc/PID/root`: separate
    /// debug files are then searched there before they are searched on the host, and only those are used that `reader` could
    /// read: the user of the process when it had mapped the object.
    #[must_use]
    pub fn with_root(mut self, root: PathBuf, reader: Reader) -> Self {
        self.origin = Origin::Foreign(reader);
        self.root = (root != Path::new("/")).then_some(root);
        self
    }

    /// The path under which the object was opened, as its process knows it.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The root directory that [`path`](Self::path) is meant in, when it is not ours.
    pub fn root(&self) -> Option<&Path> {
        self.root.as_deref()
    }

    pub(crate) fn with_origin(mut self, origin: Origin) -> Self {
        self.origin = origin;
        self
    }

    pub(crate) fn origin(&self) -> Origin {
        self.origin
    }

    /// Whose the file is; `None` for an image from memory.
    pub(crate) fn owner(&self) -> Option<u32> {
        self.owner
    }

    /// The identity of the file; `None` for an image from memory.
    pub(crate) fn key(&self) -> Option<FileKey> {
        self.key
    }

    /// The identity of the contents.
    pub fn build_id(&self) -> &BuildId {
        &self.build_id
    }

    /// What the section headers promise.
    pub fn contents(&self) -> Contents {
        self.contents
    }

    /// Whether it has code, and not symbols alone as a debug file.
    #[cfg(feature = "disassembly")]
    pub fn has_code(&self) -> bool {
        let Some(elf) = self.elf() else {
            return false;
        };
        let has_code = |section: &object::Section<'_, '_>| {
            section.kind() == object::SectionKind::Text
                && section.file_range().is_some_and(|(_, size)| size > 0)
        };
        elf.sections().any(|section| has_code(&section))
    }

    /// Whether Go's toolchain built it.
    pub fn is_go(&self) -> bool {
        self.contents.go
    }

    /// All loadable segments.
    pub fn segments(&self) -> &[LoadSegment] {
        &self.segments
    }

    /// The address (as linked, before any load bias) of the byte at `file_offset`; `None` outside
    /// of all segments.
    pub fn elf_address(&self, file_offset: u64) -> Option<u64> {
        segments::address_of(&self.segments, file_offset)
    }

    /// The address as linked of code at `address` of a profile whose mapping is `range`, whichever
    /// kind of address its profiler writes; `None` where that is not in the object's code. A
    /// separate debug file will do.
    pub fn linked_address(&self, address: u64, range: MappedRange) -> Option<u64> {
        segments::linked_address(&self.segments, address, range)
    }

    /// Where the byte at `elf_address` lies in the file; `None` outside of all segments and in
    /// zero-filled memory.
    pub fn file_offset(&self, elf_address: u64) -> Option<u64> {
        segments::file_offset_of(&self.segments, elf_address)
    }

    /// The whole file.
    pub fn data(&self) -> &[u8] {
        self.bytes.as_slice()
    }

    /// Whether the file was cut short while it was read, so that what is known of it is damaged.
    pub(crate) fn has_lost_pages(&self) -> bool {
        match &self.bytes {
            ObjectBytes::Mapped(mapped) => mapped.has_lost_pages(),
            ObjectBytes::Owned(_) => false,
        }
    }

    /// Gives the pages that were read back to the page cache. They count as ours while mapped, and
    /// are read again without a disk access when needed soon.
    pub(crate) fn release_pages(&self) {
        let ObjectBytes::Mapped(mapped) = &self.bytes else {
            return;
        };
        if let Err(error) = mapped.release_pages() {
            tracing::debug!(path = %self.path.display(), %error, "pages not released");
        }
    }

    /// Bytes on the heap, for the budget of a cache; mapped bytes belong to the page cache.
    pub(crate) fn heap_bytes(&self) -> usize {
        match &self.bytes {
            ObjectBytes::Mapped(_) => size_of::<Self>(),
            ObjectBytes::Owned(bytes) => size_of::<Self>() + bytes.capacity(),
        }
    }

    /// The parsed headers. Parsing again each time costs microseconds and spares a self-reference.
    pub(crate) fn elf(&self) -> Option<object::File<'_>> {
        object::File::parse(self.data()).ok()
    }
}

impl fmt::Debug for ObjectFile {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("ObjectFile")
            .field("path", &self.path)
            .field("root", &self.root)
            .field("build_id", &format_args!("{}", self.build_id))
            .field("bytes", &self.data().len())
            .field("contents", &self.contents)
            .finish_non_exhaustive()
    }
}

impl ObjectBytes {
    fn as_slice(&self) -> &[u8] {
        match self {
            Self::Mapped(mapped) => mapped.as_slice(),
            Self::Owned(bytes) => bytes,
        }
    }
}

/// The contents of a section, decompressed where they are compressed; `None` when the section is
/// absent, empty or damaged. How much it may cost is for the caller to know, by
/// [`unpacked_size`].
pub(crate) fn section_data<'data>(
    elf: &object::File<'data>,
    name: &str,
) -> Option<Cow<'data, [u8]>> {
    let compressed = elf.section_by_name(name)?.compressed_data().ok()?;
    let data = compressed.decompress().ok()?;
    (!data.is_empty()).then_some(data)
}

/// How much memory [`section_data`] takes; nothing for a section that is not compressed.
pub(crate) fn unpacked_size(elf: &object::File<'_>, name: &str) -> u64 {
    let section = elf.section_by_name(name);
    let contents = section.and_then(|section| section.compressed_data().ok());
    contents
        .filter(|contents| contents.format != CompressionFormat::None)
        .map_or(0, |contents| contents.uncompressed_size)
}

enum ParsedElf<'data> {
    Elf32(ElfFile<'data, object::elf::FileHeader32<object::Endianness>>),
    Elf64(ElfFile<'data, object::elf::FileHeader64<object::Endianness>>),
}

fn parse(data: &[u8]) -> Result<ParsedElf<'_>, object::Error> {
    match object::FileKind::parse(data)? {
        object::FileKind::Elf32 => ElfFile::parse(data).map(ParsedElf::Elf32),
        _ => ElfFile::parse(data).map(ParsedElf::Elf64),
    }
}

struct Basics {
    build_id: BuildId,
    segments: Box<[LoadSegment]>,
    contents: Contents,
}

impl Basics {
    fn of<'data, Header: FileHeader>(elf: &ElfFile<'data, Header>, data: &'data [u8]) -> Self {
        let mut contents = Contents::default();
        for section in elf.sections() {
            let Ok(name) = section.name_bytes() else {
                continue;
            };
            // A debug file keeps the headers of the sections it does not carry; those have no bytes
            // in the file.
            let present = section.file_range().is_some_and(|(_, size)| size > 0);
            match name {
                b".debug_info" | b".zdebug_info" => contents.dwarf |= present,
                b".symtab" => contents.symtab |= present,
                b".gnu_debugdata" => contents.mini_debug_info |= present,
                b".gopclntab"
                | b".data.rel.ro.gopclntab"
                | b".note.go.buildid"
                | b".go.buildinfo" => {
                    contents.go = true;
                }
                _ => {}
            }
        }
        Self {
            build_id: BuildId::of_elf(elf, data),
            segments: segments::load_segments(elf),
            contents,
        }
    }
}
