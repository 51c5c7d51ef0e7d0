//! Object files that processes have mapped.

use std::fs::File;
use std::path::Path;
use std::path::PathBuf;
use std::sync::OnceLock;
use std::sync::atomic::AtomicBool;

use candela_symbols::BuildId;
use candela_symbols::LoadSegment;
use candela_symbols::ObjectFile;
use candela_symbols::foreign::ForeignProcess;
use candela_symbols::foreign::MappedFileLine;
use candela_symbols::foreign::Reader;
use candela_symbols::foreign::Refusal;
use candela_symbols::foreign::open_mapped_here;
use candela_symbols::foreign::open_regular;

use crate::processes::thread_context::ContextAccess;

/// Which file a mapping is of, as the kernel reports it. On stacked file systems (overlay, btrfs)
/// these numbers differ from those of `stat`, so they are compared with each other only.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct FileNumber {
    pub(crate) device: (u32, u32),
    pub(crate) inode: u64,
}

/// A file with code. It is opened when it is first seen and stays open while anything refers to it,
/// so that a deleted binary and one of a process that has ended can still be read.
#[derive(Debug)]
pub(crate) struct Object {
    /// Unique during the life of the agent.
    pub(crate) number: u32,
    /// The path as the process sees it.
    pub(crate) path: String,
    /// The process's root directory, for separate debug files.
    pub(crate) root: PathBuf,
    /// For whom they are read.
    pub(crate) reader: Reader,
    pub(crate) source: ObjectSource,
    /// Whether a process that runs it as its program was sampled.
    pub(crate) was_sampled: AtomicBool,
    description: OnceLock<Option<Description>>,
}

/// Where the bytes come from.
#[derive(Debug)]
pub(crate) enum ObjectSource {
    File(File),
    /// The kernel's vDSO: the image in our own memory is the one that every process has.
    Vdso,
    /// It could not be opened: only its name is known.
    Unreadable,
}

/// What the headers of an object say.
#[derive(Clone, Debug)]
pub(crate) struct Description {
    pub(crate) build_id: BuildId,
    segments: Box<[LoadSegment]>,
    /// Where threads that run it tell of their spans.
    pub(crate) thread_context: Option<ContextAccess>,
}

// === impl Object ===

impl Object {
    pub(crate) fn new(number: u32, path: String, root: PathBuf, source: ObjectSource) -> Self {
        Self {
            number,
            path,
            root,
            reader: Reader::Everybody,
            source,
            was_sampled: AtomicBool::new(false),
            description: OnceLock::new(),
        }
    }

    /// For the user of the process that was seen first.
    pub(crate) fn read_for(mut self, reader: Reader) -> Self {
        self.reader = reader;
        self
    }

    /// The description, once the loader has been here; `Some(None)` when there is none to be had.
    pub(crate) fn description(&self) -> Option<Option<&Description>> {
        self.description.get().map(Option::as_ref)
    }

    /// Reads the headers, unless that was done.
    pub(crate) fn describe(&self) -> Option<&Description> {
        let description = self.description.get_or_init(|| {
            self.open()
                .inspect_err(
                    |error| tracing::debug!(%error, path = %self.path, "object has no description"),
                )
                .ok()
                .map(|object| Description::of(&object))
        });
        description.as_ref()
    }

    /// Maps the file anew. Nobody keeps the mapping, as it would pin pages of big binaries.
    pub(crate) fn open(&self) -> Result<ObjectFile, candela_symbols::Error> {
        let path = Path::new(&self.path);
        match &self.source {
            ObjectSource::File(file) => ObjectFile::from_file(file, path),
            ObjectSource::Vdso => candela_symbols::vdso::own_vdso(),
            ObjectSource::Unreadable => {
                Err(candela_symbols::Error::NotRegularFile { path: path.into() })
            }
        }
    }

    /// Size of the file, bytes; 0 where there is none.
    pub(crate) fn size(&self) -> u64 {
        match &self.source {
            ObjectSource::File(file) => file.metadata().map_or(0, |metadata| metadata.len()),
            ObjectSource::Vdso | ObjectSource::Unreadable => 0,
        }
    }

    pub(crate) fn is_readable(&self) -> bool {
        !matches!(self.source, ObjectSource::Unreadable)
    }
}

// === impl Description ===

impl Description {
    fn of(object: &ObjectFile) -> Self {
        Self {
            build_id: object.build_id().clone(),
            segments: object.segments().into(),
            thread_context: ContextAccess::of(object),
        }
    }

    /// What to subtract from an address in the mapping of `length` bytes at `start` to get the
    /// address in the object file.
    ///
    /// The first page of a mapping may belong to two segments (the end of one, the start of the
    /// next), so the executable segment that the mapping is of decides, not its first byte.
    pub(crate) fn bias(&self, start: u64, length: u64, file_offset: u64) -> Option<u64> {
        let end_offset = file_offset.saturating_add(length);
        let segment = self.segments.iter().find(|segment| {
            let segment_end = segment.file_offset.saturating_add(segment.file_size);
            segment.executable && segment.file_offset < end_offset && file_offset < segment_end
        })?;
        let address_minus_offset = segment.address.wrapping_sub(segment.file_offset);
        Some(
            start
                .wrapping_sub(file_offset)
                .wrapping_sub(address_minus_offset),
        )
    }

    /// The address in the object file of the code byte at `file_offset`.
    pub(crate) fn elf_address(&self, file_offset: u64) -> Option<u64> {
        let of_code = self.segments.iter().filter(|segment| segment.executable);
        of_code.into_iter().find_map(|segment| {
            let inside = file_offset.checked_sub(segment.file_offset)?;
            (inside < segment.file_size).then(|| segment.address.wrapping_add(inside))
        })
    }

    /// The address range of all code and the file offset of its first byte.
    pub(crate) fn code_range(&self) -> (u64, u64, u64) {
        let code = || self.segments.iter().filter(|segment| segment.executable);
        let first = code().min_by_key(|segment| segment.address);
        let end = code()
            .map(|segment| segment.address.saturating_add(segment.memory_size))
            .max();
        first.map_or((0, 0, 0), |first| {
            (
                first.address,
                end.unwrap_or(first.address),
                first.file_offset,
            )
        })
    }
}

/// Opens the file of a mapping: by the mapping itself, which works for deleted files and in every
/// mount namespace, else by its path. Beside it is the user who has mapped it: debug files are read for them.
pub(crate) fn open_mapped(
    pid: u32,
    range: (u64, u64),
    file: FileNumber,
    path: &str,
) -> Result<(File, Reader), Refusal> {
    let (start, end) = range;
    let directory = PathBuf::from(format!("/proc/{pid}"));
    // One that has ended since leaves its files behind.
    let process = ForeignProcess::open(&directory).ok();
    let mapping = directory.join(format!("map_files/{start:x}-{end:x}"));
    let opened = match open_regular(&mapping) {
        // It is gone, or only others may use it.
        Err(Refusal::System(_)) => {
            let line = MappedFileLine {
                path: Path::new(path),
                device: file.device,
                inode: file.inode,
            };
            match &process {
                Some(process) => process.open_mapped(&line),
                None => open_mapped_here(&line, Reader::Everybody),
            }
        }
        opened_or_refused => opened_or_refused,
    }?;
    let user = process.map(|process| process.user());
    // It may have become another user's meanwhile.
    let user_now = ForeignProcess::open(&directory).map(|process| process.user());
    let reader = match (user, user_now) {
        (Some(user), Ok(user_now)) if user == user_now => Reader::User(user),
        _ => Reader::Everybody,
    };
    Ok((opened, reader))
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::MetadataExt;

    use super::*;

    fn own_executable() -> Object {
        let path = std::env::current_exe().expect("our own path");
        let file = File::open(&path).expect("our own executable");
        let path = path.to_str().expect("an UTF-8 path").to_owned();
        Object::new(0, path, PathBuf::from("/"), ObjectSource::File(file))
    }

    #[test]
    fn bias_and_offset_agree_on_our_own_code() {
        let here = bias_and_offset_agree_on_our_own_code as fn() as usize as u64;
        let maps = std::fs::read("/proc/self/maps").expect("our own maps");
        let line = super::super::maps_file::parse_maps(&maps)
            .find(|line| (line.start..line.end).contains(&here))
            .expect("our own mapping");
        let object = own_executable();
        let description = object.describe().expect("our own headers");
        let bias = description
            .bias(line.start, line.end - line.start, line.file_offset)
            .expect("an executable segment");
        let by_offset = description.elf_address(here - line.start + line.file_offset);
        assert_eq!(by_offset, Some(here - bias));
        let (first, end, _) = description.code_range();
        assert!((first..end).contains(&(here - bias)));
    }

    #[test]
    fn a_mapped_file_is_opened_by_its_mapping() {
        let maps = std::fs::read("/proc/self/maps").expect("our own maps");
        let line = super::super::maps_file::parse_maps(&maps)
            .find(|line| line.is_executable && line.inode != 0)
            .expect("some code");
        let number = FileNumber {
            device: line.device,
            inode: line.inode,
        };
        let path = String::from_utf8_lossy(line.path);
        let (file, _) = open_mapped(std::process::id(), (line.start, line.end), number, &path)
            .expect("the file");
        assert_eq!(file.metadata().expect("its metadata").ino(), line.inode);
    }

    #[test]
    fn a_file_that_an_ended_process_had_mapped_is_opened_by_its_path() {
        let path = std::env::current_exe().expect("our own path");
        let metadata = std::fs::metadata(&path).expect("our own executable");
        let device = metadata.dev();
        let number = FileNumber {
            device: (rustix::fs::major(device), rustix::fs::minor(device)),
            inode: metadata.ino(),
        };
        let path = path.to_str().expect("an UTF-8 path");
        let (file, reader) = open_mapped(u32::MAX, (0, 1), number, path).expect("the file");
        assert_eq!(file.metadata().expect("its metadata").ino(), number.inode);
        assert_eq!(reader, Reader::Everybody);
    }

    #[test]
    fn another_file_of_the_same_path_is_refused() {
        let number = FileNumber {
            device: (0, 0),
            inode: u64::MAX,
        };
        assert!(open_mapped(std::process::id(), (0, 1), number, "/bin/sh").is_err());
    }
}
