//! Reading the memory of other processes, which may never answer.
//!
//! A page may be of a file whose file system is a program of some user (FUSE). Whoever reads such a page waits for that
//! program, maybe for ever, and no signal ends the wait (Linux 6.18). So only resident pages are read: those that are mapped
//! in or swapped out. A process may put another page there between our look and our read, and the look itself may wait for a
//! thread of the process that waits for a page: a helper thread does both, and is left behind when it does not come back. A
//! page under userfaultfd is an error at once.

mod helper;
mod page_map;

use std::fs::File;
use std::io;
use std::io::Read;
use std::os::unix::fs::FileExt;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::path::PathBuf;
use std::sync::Arc;

use self::helper::run;
use self::page_map::PageMap;

/// The memory of a process.
#[derive(Debug)]
pub(crate) struct ProcessMemory {
    files: Arc<Files>,
    user: u32,
}

#[derive(Debug)]
struct Files {
    memory: File,
    pages: PageMap,
}

// === impl ProcessMemory ===

impl ProcessMemory {
    /// # Errors
    /// When the process is gone, or may not be looked into.
    pub(crate) fn open(pid: u32) -> io::Result<Self> {
        let directory = PathBuf::from(format!("/proc/{pid}"));
        let files = Files {
            memory: File::open(directory.join("mem"))?,
            pages: PageMap::open(&directory)?,
        };
        Ok(Self {
            files: Arc::new(files),
            user: user_of(&directory)?,
        })
    }

    /// Up to so many bytes from an address on; fewer where what follows is not resident.
    pub(crate) fn read(&self, address: u64, length: usize) -> io::Result<Vec<u8>> {
        let files = Arc::clone(&self.files);
        run(self.user, Box::new(move || files.read(address, length)))
    }

    /// Fills a buffer from an address on.
    pub(crate) fn read_exact(&self, address: u64, buffer: &mut [u8]) -> io::Result<()> {
        let bytes = self.read(address, buffer.len())?;
        if bytes.len() < buffer.len() {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        buffer.copy_from_slice(&bytes);
        Ok(())
    }
}

impl Files {
    fn read(&self, address: u64, length: usize) -> io::Result<Vec<u8>> {
        let resident = self.pages.resident(address, length)?;
        if resident == 0 && length > 0 {
            return Err(not_resident());
        }
        let mut bytes = vec![0; resident];
        let count = self.memory.read_at(&mut bytes, address)?;
        bytes.truncate(count);
        Ok(bytes)
    }
}

/// Reads a file of a process that is in its memory: its arguments or its environment. The kernel reads no pages of files for
/// these (since Linux 4.17), but waits for the process like the look at pages. `directory` is `/proc/PID`.
///
/// # Errors
/// When the process is gone, may not be looked into, or does not answer.
pub(crate) fn read_file_in_memory(
    directory: &Path,
    name: &str,
    most_bytes: u64,
) -> io::Result<Vec<u8>> {
    let file = File::open(directory.join(name))?;
    let work = move || {
        let mut bytes = Vec::new();
        file.take(most_bytes).read_to_end(&mut bytes)?;
        Ok(bytes)
    };
    run(user_of(directory)?, Box::new(work))
}

/// The effective user of a process. Of its files only the directory always tells.
fn user_of(directory: &Path) -> io::Result<u32> {
    Ok(std::fs::metadata(directory)?.uid())
}

fn not_resident() -> io::Error {
    io::Error::other("these pages are not resident")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn our_own_memory_is_read_and_what_is_not_mapped_is_an_error() {
        let memory = ProcessMemory::open(std::process::id()).expect("our own");
        let known = *b"known to be here";
        let mut bytes = [0; 16];
        memory
            .read_exact(known.as_ptr() as u64, &mut bytes)
            .expect("mapped");
        assert_eq!(bytes, known);
        assert!(memory.read(8, 8).is_err());
        assert!(memory.read(8, 0).is_ok_and(|bytes| bytes.is_empty()));
        assert!(ProcessMemory::open(u32::MAX).is_err());
    }

    #[test]
    fn a_file_in_memory_is_read_as_far_as_it_may_be() {
        let own = Path::new("/proc/self");
        let whole = read_file_in_memory(own, "cmdline", 1 << 20).expect("our own");
        let begin = read_file_in_memory(own, "cmdline", 3).expect("our own");
        assert!(whole.starts_with(&begin) && begin.len() == 3);
        assert!(read_file_in_memory(Path::new("/proc/0"), "cmdline", 3).is_err());
    }
}
