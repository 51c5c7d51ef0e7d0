//! What a program was started with: `/proc/PID/environ`.

use std::io;
use std::path::Path;

use crate::processes::memory::read_file_in_memory;

/// Bytes that are read. The kernel hands over no more than 6 MiB to a program; but any process may tell it later
/// (`PR_SET_MM`) that its environment lies in mappings of any size.
const LARGEST: u64 = 8 << 20;

/// The environment of a process, as it tells it.
#[derive(Debug)]
pub(crate) struct ProcessEnvironment {
    bytes: Vec<u8>,
}

// === impl ProcessEnvironment ===

impl ProcessEnvironment {
    /// `directory` is `/proc/PID`.
    pub(crate) fn read(directory: &Path) -> io::Result<Self> {
        let bytes = read_file_in_memory(directory, "environ", LARGEST)?;
        Ok(Self { bytes })
    }

    /// Whether this text is in it, or may be, where it is longer than what is read.
    pub(crate) fn may_have(&self, text: &[u8]) -> bool {
        let mut parts = self.bytes.windows(text.len());
        self.bytes.len() as u64 >= LARGEST || parts.any(|part| part == text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(bytes: &[u8]) -> ProcessEnvironment {
        let directory = tempfile::tempdir().expect("a folder");
        std::fs::write(directory.path().join("environ"), bytes).expect("written");
        ProcessEnvironment::read(directory.path()).expect("it is there")
    }

    #[test]
    fn one_that_is_longer_than_any_may_have_everything() {
        let short = of(b"HOME=/root\0LANG=C\0");
        assert!(short.may_have(b"LANG=C") && !short.may_have(b"LANG=D"));
        let endless = of(&vec![b'x'; LARGEST as usize + 1]);
        assert_eq!(endless.bytes.len() as u64, LARGEST);
        assert!(endless.may_have(b"LANG=D"));
    }
}
