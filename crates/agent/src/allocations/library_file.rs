//! Whether a file is the library, and where it tells of allocations.
//!
//! Any program may have any file under the library's name: nothing of one is believed that was not looked at, and
//! it is read rather than mapped, because its owner may cut it short meanwhile.

use std::fs::File;
use std::io;
use std::io::Read;
use std::os::unix::fs::MetadataExt;

use candela_ebpf::AllocationProbes;
use candela_preload::probes;
use candela_symbols::foreign::Refusal;
use object::LittleEndian;
use object::Object as _;
use object::ObjectSymbol as _;
use object::elf::FileHeader64;
use object::elf::PF_X;
use object::elf::PT_LOAD;
use object::read::elf::ElfFile;
use object::read::elf::FileHeader;
use object::read::elf::ProgramHeader;

/// Ours has a sixteenth of that.
const MOST_BYTES: u64 = 1 << 20;

/// What both functions are: a nop, which is where they are watched, and a return.
const CODE: [u8; 2] = [0x90, 0xc3];

/// Why a file is not taken for the library.
#[derive(Debug, thiserror::Error)]
pub(crate) enum LibraryError {
    #[error("it cannot be read: {0}")]
    Unreadable(#[from] io::Error),
    #[error("it is not opened: {0}")]
    Refused(#[from] Refusal),
    #[error("it is no file, or has more than 1 MiB")]
    Size,
    #[error("it is no library for x86-64, or not all of one")]
    NoLibrary,
    #[error("it has no function {0}, or another one of this name")]
    OtherFunction(&'static str),
}

/// Which file: one of a stacked file system has as many identities as there are mounts with it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct LibraryIdentity {
    device: u64,
    inode: u64,
}

/// The library in a file that is open.
#[derive(Debug)]
pub(crate) struct LibraryFile {
    file: File,
    sampled: u64,
    freed: u64,
}

// === impl LibraryIdentity ===

impl LibraryIdentity {
    pub(crate) fn of(file: &File) -> io::Result<Self> {
        let metadata = file.metadata()?;
        Ok(Self {
            device: metadata.dev(),
            inode: metadata.ino(),
        })
    }

    #[cfg(test)]
    pub(super) fn of_test(inode: u64) -> Self {
        Self { device: 0, inode }
    }
}

// === impl LibraryFile ===

impl LibraryFile {
    /// Looks into a file from its begin on.
    pub(crate) fn read(file: File) -> Result<Self, LibraryError> {
        let metadata = file.metadata()?;
        if !metadata.is_file() || metadata.len() > MOST_BYTES {
            return Err(LibraryError::Size);
        }
        let mut bytes = Vec::new();
        (&file).take(MOST_BYTES).read_to_end(&mut bytes)?;
        let (sampled, freed) = offsets_in(&bytes)?;
        Ok(Self {
            file,
            sampled,
            freed,
        })
    }

    pub(crate) fn identity(&self) -> io::Result<LibraryIdentity> {
        LibraryIdentity::of(&self.file)
    }

    pub(crate) fn probes(&self) -> AllocationProbes<'_> {
        AllocationProbes {
            file: &self.file,
            sampled: self.sampled,
            freed: self.freed,
        }
    }
}

/// Where in the file the functions of samples and of ends begin.
fn offsets_in(bytes: &[u8]) -> Result<(u64, u64), LibraryError> {
    let file = ElfFile::<FileHeader64<LittleEndian>>::parse(bytes);
    let file = file.map_err(|_| LibraryError::NoLibrary)?;
    if file.architecture() != object::Architecture::X86_64 {
        return Err(LibraryError::NoLibrary);
    }
    let offset_of = |name: &'static str| {
        let mut symbols = file.dynamic_symbols();
        let symbol = symbols.find(|it| it.is_definition() && it.name() == Ok(name));
        let offset = symbol.and_then(|symbol| code_offset(&file, bytes, symbol.address()));
        let offset = offset.filter(|&offset| {
            let start = usize::try_from(offset).unwrap_or(usize::MAX);
            bytes.get(start..).is_some_and(|it| it.starts_with(&CODE))
        });
        offset.ok_or(LibraryError::OtherFunction(name))
    };
    Ok((offset_of(probes::SAMPLED)?, offset_of(probes::FREED)?))
}

/// Where in the file the code of an address is.
fn code_offset(
    file: &ElfFile<'_, FileHeader64<LittleEndian>>,
    bytes: &[u8],
    address: u64,
) -> Option<u64> {
    let endian = LittleEndian;
    let segments = file.elf_header().program_headers(endian, bytes).ok()?;
    let mut code = segments
        .iter()
        .filter(|it| it.p_type(endian) == PT_LOAD && it.p_flags(endian).contains(PF_X));
    code.find_map(|segment| {
        let inside = address.checked_sub(segment.p_vaddr(endian))?;
        let is_inside = inside < segment.p_filesz(endian);
        let offset = segment.p_offset(endian).checked_add(inside)?;
        is_inside.then_some(offset)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;

    fn file_of(bytes: &[u8]) -> File {
        let mut file = tempfile::NamedTempFile::new().expect("a temporary file");
        file.write_all(bytes).expect("written");
        file.reopen().expect("it is there")
    }

    #[test]
    fn ours_is_taken() {
        let library = LibraryFile::read(file_of(candela_preload::LIBRARY)).expect("ours");
        assert_ne!(library.sampled, library.freed);
        for offset in [library.sampled, library.freed] {
            let code = &candela_preload::LIBRARY[offset as usize..];
            assert!(code.starts_with(&CODE));
        }
    }

    #[test]
    fn what_is_cut_or_changed_is_refused_with_its_reason() {
        let refused = |bytes: &[u8]| {
            let refused = LibraryFile::read(file_of(bytes));
            refused.expect_err("not ours").to_string()
        };
        assert!(refused(b"").contains("no library"));
        assert!(refused(&[0xff; 4096]).contains("no library"));
        assert!(refused(&vec![0; MOST_BYTES as usize + 1]).contains("1 MiB"));
        let ours = candela_preload::LIBRARY;
        // Each length that a file may have been cut to, but the last bytes, which are its section table.
        let (sampled, freed) = offsets_in(ours).expect("ours");
        for length in (0..sampled.max(freed) as usize).step_by(61) {
            assert!(offsets_in(&ours[..length]).is_err(), "{length}");
        }
        let mut other = ours.to_vec();
        other[freed as usize] = 0xcc;
        assert!(refused(&other).contains("candela_alloc_freed"));
        let mut machine = ours.to_vec();
        machine[18] = 0xb7;
        assert!(refused(&machine).contains("x86-64"));
    }

    #[test]
    fn any_changed_byte_is_survived() {
        let mut bytes = candela_preload::LIBRARY.to_vec();
        // The headers and the tables behind them.
        for position in 0..2048 {
            let before = bytes[position];
            for value in [0, 0x7f, 0xff] {
                bytes[position] = value;
                if let Ok((sampled, freed)) = offsets_in(&bytes) {
                    assert!(sampled.max(freed) < bytes.len() as u64);
                }
            }
            bytes[position] = before;
        }
    }
}
