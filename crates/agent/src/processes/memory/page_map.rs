//! Which pages of a process are in memory: `/proc/PID/pagemap`, which reads none of them
//! (Documentation/admin-guide/mm/pagemap.rst).

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::Path;

/// In RAM, and mapped.
const PRESENT: u64 = 1 << 63;
/// Swapped out: the system's own disk has it.
const SWAPPED: u64 = 1 << 62;
/// Watched for writes. Such a page may be noted as swapped although its file has it.
const WRITE_PROTECTED: u64 = 1 << 57;

/// The pages of a process.
#[derive(Debug)]
pub(super) struct PageMap {
    file: File,
    page_bytes: u64,
}

// === impl PageMap ===

impl PageMap {
    /// `directory` is `/proc/PID`.
    pub(super) fn open(directory: &Path) -> io::Result<Self> {
        Ok(Self {
            file: File::open(directory.join("pagemap"))?,
            page_bytes: rustix::param::page_size() as u64,
        })
    }

    /// How many of these bytes, from the first on, lie in pages that no file system has to bring.
    pub(super) fn resident(&self, address: u64, length: usize) -> io::Result<usize> {
        let Some(end) = address.checked_add(length as u64) else {
            return Err(io::ErrorKind::InvalidInput.into());
        };
        let first = address / self.page_bytes;
        let pages = end.div_ceil(self.page_bytes) - first;
        let mut entries = vec![0; pages as usize * size_of::<u64>()];
        let count = self
            .file
            .read_at(&mut entries, first * size_of::<u64>() as u64)?;
        let (entries, _) = entries[..count].as_chunks();
        let there = entries.iter().map(|entry| u64::from_ne_bytes(*entry));
        let there = there.take_while(|entry| is_resident(*entry)).count();
        let bytes = ((first + there as u64) * self.page_bytes).saturating_sub(address);
        Ok(usize::try_from(bytes).map_or(length, |bytes| bytes.min(length)))
    }
}

fn is_resident(entry: u64) -> bool {
    let is_swapped = entry & SWAPPED != 0 && entry & WRITE_PROTECTED == 0;
    entry & PRESENT != 0 || is_swapped
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_written_is_there_and_what_is_not_mapped_is_not() {
        let pages = PageMap::open(Path::new("/proc/self")).expect("our own");
        let written = vec![1_u8; 100_000];
        let address = written.as_ptr() as u64;
        assert_eq!(pages.resident(address, 100_000).expect("ours"), 100_000);
        assert_eq!(pages.resident(address + 7, 1).expect("ours"), 1);
        assert_eq!(pages.resident(8, 8).expect("ours"), 0);
        assert!(pages.resident(u64::MAX, 8).is_err());
    }

    #[test]
    fn a_page_is_read_when_memory_or_swap_has_it() {
        assert!(is_resident(PRESENT));
        assert!(is_resident(SWAPPED));
        assert!(is_resident(PRESENT | WRITE_PROTECTED));
        assert!(!is_resident(0));
        assert!(!is_resident(SWAPPED | WRITE_PROTECTED));
    }
}
