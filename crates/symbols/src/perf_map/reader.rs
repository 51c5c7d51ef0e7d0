//! Following a process's map file as it grows.

use super::intervals::PerfMap;
use crate::error::Error;
use crate::foreign::ForeignProcess;
use std::io::{Read, Seek, SeekFrom};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// Most bytes of a map file that are read; a runtime that writes more has names without bound.
const LARGEST_FILE: u64 = 256 << 20;

/// Most heap one map may hold, in bytes.
const LARGEST_HEAP: usize = 64 << 20;

/// The most that is read of a map before others have their turn, bytes; the rest comes with the next refresh.
const MOST_AT_ONCE: u64 = 64 << 20;

/// Bytes read at once.
const CHUNK: usize = 256 * 1024;

/// What [`PerfMapReader::refresh`] found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Refresh {
    /// The process has written no map.
    NoFile,
    /// Nothing new.
    Unchanged,
    /// New lines were read; earlier misses are worth another look.
    Grown,
    /// The file or the map has reached its bound; what is beyond stays unnamed.
    Full,
}

/// Reads `/tmp/perf-PID.map` of one process, with the pid and the `/tmp` that the process itself
/// sees.
#[derive(Debug)]
pub struct PerfMapReader {
    process: PathBuf,
    map: PerfMap,
    /// Device and inode of the file read so far.
    identity: Option<(u64, u64)>,
    read_to: u64,
    /// Bytes read since the start, of this file and of those before it.
    read_bytes: u64,
    /// A line whose end was not written yet.
    partial_line: Vec<u8>,
}

impl PerfMapReader {
    /// A reader for the process whose directory in `/proc` is given, e.g. `/proc/123`. Reads
    /// nothing yet.
    pub fn new(process: &Path) -> Self {
        Self {
            process: process.into(),
            map: PerfMap::default(),
            identity: None,
            read_to: 0,
            read_bytes: 0,
            partial_line: Vec::new(),
        }
    }

    /// The names read so far.
    pub fn map(&self) -> &PerfMap {
        &self.map
    }

    /// The names in a file that nobody writes to any more, as far as they are read of any.
    ///
    /// # Errors
    /// The system's reason.
    pub fn read_whole(file: impl Read) -> std::io::Result<PerfMap> {
        let mut reader = Self::new(Path::new(""));
        reader.append(file, LARGEST_FILE)?;
        reader.take_lines(b"\n");
        Ok(reader.map)
    }

    /// The names read so far, for whoever reads no more.
    pub fn into_map(self) -> PerfMap {
        self.map
    }

    /// Bytes that were read since the start, also of files that were replaced.
    pub fn read_bytes(&self) -> u64 {
        self.read_bytes
    }

    /// Reads what was appended since the last call; starts over when the file was replaced or cut.
    ///
    /// # Errors
    /// [`Error::Io`], also when the process is gone; [`Error::Refused`] when the file is not one that the process's user
    /// made there: `/tmp` is open to everybody, and names decide what a reader believes.
    pub fn refresh(&mut self) -> Result<Refresh, Error> {
        let process = ForeignProcess::open(&self.process)
            .map_err(|error| Error::io(self.process.join("status"), error))?;
        let path = PathBuf::from(format!("/tmp/perf-{}.map", process.innermost_pid()));
        let mut file = match process.open_own(&path) {
            Ok(file) => file,
            Err(refusal) if refusal.is_not_found() => return Ok(Refresh::NoFile),
            Err(refusal) => return Err(Error::refused(path, refusal)),
        };
        let metadata = file.metadata().map_err(|error| Error::io(&path, error))?;
        let identity = Some((metadata.dev(), metadata.ino()));
        if self.identity != identity || metadata.len() < self.read_to {
            *self = Self {
                identity,
                read_bytes: self.read_bytes,
                ..Self::new(&self.process)
            };
        }
        if metadata.len() == self.read_to {
            return Ok(Refresh::Unchanged);
        }
        if self.read_to >= LARGEST_FILE || self.map.heap_bytes() >= LARGEST_HEAP {
            return Ok(Refresh::Full);
        }
        file.seek(SeekFrom::Start(self.read_to))
            .map_err(|error| Error::io(&path, error))?;
        self.append(file, MOST_AT_ONCE)
            .map_err(|error| Error::io(&path, error))
    }

    fn append(&mut self, mut reader: impl Read, most_bytes: u64) -> std::io::Result<Refresh> {
        let mut chunk = vec![0; CHUNK];
        let end = self.read_to + most_bytes;
        loop {
            if self.read_to >= end {
                return Ok(Refresh::Grown);
            }
            let size = reader.read(&mut chunk)?;
            if size == 0 {
                return Ok(Refresh::Grown);
            }
            self.read_to += size as u64;
            self.read_bytes += size as u64;
            self.take_lines(&chunk[..size]);
            if self.read_to >= LARGEST_FILE || self.map.heap_bytes() >= LARGEST_HEAP {
                return Ok(Refresh::Full);
            }
        }
    }

    fn take_lines(&mut self, bytes: &[u8]) {
        let mut lines = bytes.split_inclusive(|byte| *byte == b'\n');
        for line in &mut lines {
            self.partial_line.extend_from_slice(line);
            if line.ends_with(b"\n") {
                // A runtime may cut a name in the middle of a character; the rest of it still tells
                // something.
                self.map
                    .add_line(&String::from_utf8_lossy(&self.partial_line));
                self.partial_line.clear();
            } else if self.partial_line.len() > CHUNK {
                // No line is that long: what is kept of it makes one malformed line when its end
                // comes.
                self.partial_line.clear();
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::OpenOptions;
    use std::io::Write;

    /// A directory that looks like `/proc/PID` of a process with pid 7 in its container.
    fn container() -> tempfile::TempDir {
        let process = tempfile::tempdir().expect("a temporary directory");
        std::fs::create_dir_all(process.path().join("root/tmp")).expect("directories in it");
        let user = std::fs::metadata(process.path())
            .expect("it was just made")
            .uid();
        let status = format!(
            "Name:\tnode\nPid:\t4711\nUid:\t{user}\t{user}\t{user}\t{user}\nNSpid:\t4711\t7\n"
        );
        std::fs::write(process.path().join("status"), status).expect("a file in it");
        process
    }

    fn name(reader: &PerfMapReader, address: u64) -> Option<String> {
        reader
            .map()
            .find(address)
            .map(|symbol| symbol.name.to_owned())
    }

    #[test]
    fn appended_lines_are_found_and_replaced_files_start_over() {
        let process = container();
        let file = process.path().join("root/tmp/perf-7.map");
        let mut reader = PerfMapReader::new(process.path());
        assert_eq!(
            reader.refresh().expect("no file is no error"),
            Refresh::NoFile
        );

        let mut appender = OpenOptions::new()
            .create(true)
            .append(true)
            .open(&file)
            .expect("the map file");
        appender
            .write_all(b"1000 10 first\n2000 10 sec")
            .expect("a write");
        assert_eq!(reader.refresh().expect("readable"), Refresh::Grown);
        assert_eq!(name(&reader, 0x1005), Some("first".into()));
        assert_eq!(
            name(&reader, 0x2005),
            None,
            "the second line is not complete"
        );

        appender.write_all(b"ond\n").expect("a write");
        assert_eq!(reader.refresh().expect("readable"), Refresh::Grown);
        assert_eq!(name(&reader, 0x2005), Some("second".into()));
        assert_eq!(reader.refresh().expect("readable"), Refresh::Unchanged);

        std::fs::write(&file, "3000 10 third\n").expect("a write");
        assert_eq!(reader.refresh().expect("readable"), Refresh::Grown);
        assert_eq!(
            (name(&reader, 0x1005), name(&reader, 0x3005)),
            (None, Some("third".into()))
        );
    }
}
