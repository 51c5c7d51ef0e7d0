//! MiniDebugInfo: a whole ELF file with a symbol table, xz-compressed in `.gnu_debugdata` (Fedora
//! and its kin).

use crate::object_file::ObjectFile;
use object::{Object, ObjectSection};
use std::io::Read;

/// Largest file after decompression, in bytes; real ones are below 10 MiB.
const LARGEST: u64 = 256 << 20;

/// Memory limit of the decompressor in KiB; `xz -9` needs 64 MiB.
const DECOMPRESSOR_KIB: u32 = 128 << 10;

/// Decompresses the symbol file inside `object`; `None` without one, or when it is damaged.
pub(crate) fn read(object: &ObjectFile) -> Option<ObjectFile> {
    let elf = object.elf()?;
    let compressed = elf.section_by_name(".gnu_debugdata")?.data().ok()?;
    let reader = lzma_rust2::XzReader::new_mem_limit(compressed, true, DECOMPRESSOR_KIB);
    let mut bytes = Vec::new();
    let read = reader.take(LARGEST + 1).read_to_end(&mut bytes).ok()?;
    if read as u64 > LARGEST {
        return None;
    }
    ObjectFile::from_bytes(bytes, object.path()).ok()
}
