//! Following a process's map file as it grows.

use super::intervals::PerfMap;
use crate::error::Error;
use crate::rooted::open_in_root;
use std::io::{Read, Seek, SeekFrom};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// Most bytes of a map file that are read; a runtime that writes more has names without bound.
const LARGEST_FILE: u64 = 256 << 20;

/// Most heap one map may hold, in bytes.
const LARGEST_HEAP: usize = 64 << 20;

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
            partial_line: Vec::new(),
        }
    }

    /// The names read so far.
    pub fn map(&self) -> &PerfMap {
        &self.map
    }

    /// Reads what was appended since the last call; starts over when the file was replaced or cut.
    ///
    /// # Errors
    /// [`Error::Io`], also when the process is gone; [`Error::ForeignPerfMap`] when the file
    /// belongs to neither the process's user nor root: `/tmp` is open to everybody, and names
    /// decide what a reader believes.
    pub fn refresh(&mut self) -> Result<Refresh, Error> {
        let status = ProcessStatus::read(&self.process)?;
        let path = PathBuf::from(format!("/tmp/perf-{}.map", status.innermost_pid));
        let mut file = match open_in_root(&self.process.join("root"), &path) {
            Ok(file) => file,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
                return Ok(Refresh::NoFile);
            }
            Err(error) => return Err(Error::io(path, error)),
        };
        let metadata = file.metadata().map_err(|error| Error::io(&path, error))?;
        if !metadata.is_file() {
            return Err(Error::NotRegularFile { path });
        }
        let owner = metadata.uid();
        if owner != status.user && owner != 0 {
            return Err(Error::ForeignPerfMap {
                path,
                owner,
                process_owner: status.user,
            });
        }
        let identity = Some((metadata.dev(), metadata.ino()));
        if self.identity != identity || metadata.len() < self.read_to {
            *self = Self {
                identity,
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
        self.append(file).map_err(|error| Error::io(&path, error))
    }

    fn append(&mut self, mut reader: impl Read) -> std::io::Result<Refresh> {
        let mut chunk = vec![0; CHUNK];
        loop {
            let size = reader.read(&mut chunk)?;
            if size == 0 {
                return Ok(Refresh::Grown);
            }
            self.read_to += size as u64;
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

/// What `/proc/PID/status` says about names of files.
struct ProcessStatus {
    /// The pid in the process's own (innermost) pid namespace.
    innermost_pid: u32,
    /// Effective user id.
    user: u32,
}

impl ProcessStatus {
    fn read(process: &Path) -> Result<Self, Error> {
        let path = process.join("status");
        let text = std::fs::read_to_string(&path).map_err(|error| Error::io(&path, error))?;
        let field = |name: &str| text.lines().find_map(|line| line.strip_prefix(name));
        let innermost_pid = field("NSpid:")
            .or_else(|| field("Pid:"))
            .and_then(|pids| pids.split_whitespace().last());
        let user = field("Uid:").and_then(|users| users.split_whitespace().nth(1));
        let (Some(innermost_pid), Some(user)) = (
            innermost_pid.and_then(|pid| pid.parse().ok()),
            user.and_then(|user| user.parse().ok()),
        ) else {
            let reason =
                std::io::Error::new(std::io::ErrorKind::InvalidData, "no NSpid and Uid lines");
            return Err(Error::io(path, reason));
        };
        Ok(Self {
            innermost_pid,
            user,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::fs::{CWD, Mode, mkfifoat};
    use std::fs::OpenOptions;
    use std::io::Write;
    use std::os::unix::fs::chown;

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

    #[test]
    fn a_pipe_in_place_of_the_map_does_not_block() {
        let process = container();
        let pipe = process.path().join("root/tmp/perf-7.map");
        let made = mkfifoat(CWD, &pipe, Mode::RWXU);
        made.expect("a pipe");
        let refused = PerfMapReader::new(process.path())
            .refresh()
            .expect_err("a pipe is no map");
        assert!(matches!(refused, Error::NotRegularFile { .. }), "{refused}");
    }

    mod host_tests {
        use super::*;

        #[test]
        fn files_of_strangers_are_refused() {
            let process = container();
            let file = process.path().join("root/tmp/perf-7.map");
            std::fs::write(&file, "1000 10 planted\n").expect("a write");
            if chown(&file, Some(12_345), None).is_err() {
                eprintln!("skipped: only root can give files away");
                return;
            }
            let refused = PerfMapReader::new(process.path())
                .refresh()
                .expect_err("the owner is a stranger");
            assert!(
                matches!(refused, Error::ForeignPerfMap { owner: 12_345, .. }),
                "{refused}"
            );
        }
    }
}
