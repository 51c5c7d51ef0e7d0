//! A file in memory that may shrink meanwhile.

mod lost_pages;

use lost_pages::Guard;
use memmap2::Mmap;
use std::fs::File;
use std::io;

/// A file, mapped privately and read-only. Bytes that the file loses while it is mapped read as
/// zeros, which every reader here takes for damage.
#[derive(Debug)]
pub(crate) struct MappedFile {
    /// Dropped before the mapping, as fields are dropped in this order: the guard must know no
    /// address that may belong to somebody else.
    guard: Guard,
    bytes: Mmap,
}

impl MappedFile {
    pub(crate) fn map(file: &File) -> io::Result<Self> {
        // SAFETY: two things can befall a mapping of a file that others may write.
        // It may be cut short: `cp` over a library and a hostile owner do that, and the next access
        // raises SIGBUS. The guard below answers with a page of zeros.
        // Its bytes may change between two reads. Every read here is of integers and byte slices
        // and is checked against the mapped length, which stays; no value read once is relied on to
        // be read again, and text is copied before it is checked to be UTF-8.
        let bytes = unsafe { Mmap::map(file) }?;
        let guard = Guard::of(&bytes)?;
        Ok(Self { guard, bytes })
    }

    /// Whether zeros were read in place of bytes that the file had lost. They stay even if the file
    /// grows again.
    pub(crate) fn has_lost_pages(&self) -> bool {
        self.guard.has_lost_pages()
    }

    pub(crate) fn as_slice(&self) -> &[u8] {
        &self.bytes
    }

    /// Gives the pages that were read back to the page cache.
    pub(crate) fn release_pages(&self) -> io::Result<()> {
        // SAFETY: the mapping is never written, so dropping its pages loses no content: the next
        // access reads the same bytes from the file, or zeros again where the guard put zeros.
        unsafe {
            self.bytes
                .unchecked_advise(memmap2::UncheckedAdvice::DontNeed)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;
    use std::os::unix::process::ExitStatusExt;
    use std::process::Command;

    const PAGE: usize = 4096;

    /// Set in the process that is to end.
    const UNGUARDED: &str = "CANDELA_TEST_READ_UNGUARDED";

    fn file_of_pages(count: usize) -> File {
        let mut file = tempfile::tempfile().expect("a temporary file");
        file.write_all(&vec![1; count * PAGE])
            .expect("there is space");
        file
    }

    #[test]
    fn what_a_file_loses_reads_as_zeros() {
        let file = file_of_pages(64);
        let mapped = MappedFile::map(&file).expect("a file can be mapped");
        let other = MappedFile::map(&file).expect("a file can be mapped twice");
        assert!(!mapped.has_lost_pages());
        file.set_len(PAGE as u64 + 10).expect("own file");
        for mapped in [&mapped, &other] {
            let sum: usize = mapped
                .as_slice()
                .iter()
                .map(|byte| usize::from(*byte))
                .sum();
            assert_eq!(sum, PAGE + 10);
            assert!(mapped.has_lost_pages());
        }
        mapped.release_pages().expect("own mapping");
        assert_eq!(mapped.as_slice()[PAGE], 1);
        assert_eq!(mapped.as_slice()[64 * PAGE - 1], 0);
    }

    #[test]
    fn mappings_come_and_go_in_any_number() {
        let file = file_of_pages(2);
        let mut mapped: Vec<MappedFile> = (0..1500)
            .map(|_| MappedFile::map(&file).expect("a file can be mapped"))
            .collect();
        mapped.drain(100..700);
        mapped.extend((0..50).map(|_| MappedFile::map(&file).expect("once more")));
        file.set_len(0).expect("own file");
        assert!(mapped.iter().all(|mapped| mapped.as_slice()[PAGE] == 0));
    }

    #[test]
    fn a_bus_error_elsewhere_still_ends_the_process() {
        if std::env::var_os(UNGUARDED).is_some() {
            let file = file_of_pages(2);
            let _guarded = MappedFile::map(&file).expect("a file can be mapped");
            // SAFETY: that reading it raises SIGBUS is what is tested.
            let unguarded = unsafe { Mmap::map(&file) }.expect("a file can be mapped");
            file.set_len(0).expect("own file");
            std::process::exit(i32::from(unguarded[PAGE]));
        }
        let test = "mapped_file::tests::a_bus_error_elsewhere_still_ends_the_process";
        let status = Command::new(std::env::current_exe().expect("/proc is mounted"))
            .args(["--exact", test])
            .env(UNGUARDED, "1")
            .output()
            .expect("the test program starts")
            .status;
        assert_eq!(status.signal(), Some(libc::SIGBUS), "{status}");
    }
}
