//! The vDSO: a small ELF image that the kernel maps into every process and that no file holds.

use crate::error::Error;
use crate::object_file::ObjectFile;
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

/// Name of the mapping in `/proc/PID/maps`.
pub const VDSO_NAME: &str = "[vdso]";

/// Largest image accepted, in bytes; real ones have two to four pages.
const LARGEST: u64 = 1 << 20;

/// The vDSO of this process, which is that of every 64-bit process on the host. An address in
/// another process's vDSO is translated by its distance from the start of that process's `[vdso]`
/// mapping, taken as a file offset.
///
/// # Errors
/// [`Error::Io`] when `/proc/self` cannot be read or maps no vDSO, [`Error::NotElf`] when the image
/// is damaged.
pub fn own_vdso() -> Result<ObjectFile, Error> {
    read_vdso(Path::new("/proc/self"))
}

/// The vDSO of the process whose directory in `/proc` is given, e.g. of a 32-bit one. Needs the
/// right to read its memory.
///
/// # Errors
/// As [`own_vdso`].
pub fn read_vdso(process: &Path) -> Result<ObjectFile, Error> {
    let maps_path = process.join("maps");
    let maps = std::fs::read_to_string(&maps_path).map_err(|error| Error::io(&maps_path, error))?;
    let absent = || {
        let reason = io::Error::new(io::ErrorKind::NotFound, "no [vdso] mapping");
        Error::io(&maps_path, reason)
    };
    let (start, end) = maps.lines().find_map(vdso_range).ok_or_else(absent)?;
    let size = end
        .checked_sub(start)
        .filter(|size| *size <= LARGEST)
        .ok_or_else(absent)?;
    let memory_path: PathBuf = process.join("mem");
    let mut image = vec![0; size as usize];
    File::open(&memory_path)
        .and_then(|memory| memory.read_exact_at(&mut image, start))
        .map_err(|error| Error::io(&memory_path, error))?;
    ObjectFile::from_bytes(image, Path::new(VDSO_NAME))
}

fn vdso_range(line: &str) -> Option<(u64, u64)> {
    let range = line.strip_suffix(VDSO_NAME)?.split(' ').next()?;
    let (start, end) = range.split_once('-')?;
    Some((
        u64::from_str_radix(start, 16).ok()?,
        u64::from_str_radix(end, 16).ok()?,
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{FrameLanguage, Symbolizer, SymbolizerOptions};
    use object::{Object, ObjectSymbol};
    use std::sync::Arc;

    #[test]
    fn exported_functions_are_named() {
        let vdso = Arc::new(own_vdso().expect("Linux maps a vDSO into this process"));
        let elf = vdso.elf().expect("it is ELF");
        let symbol = elf
            .dynamic_symbols()
            .find(|symbol| symbol.name() == Ok("__vdso_clock_gettime"))
            .expect("every x86-64 vDSO exports it");
        let symbolizer = Symbolizer::new(Arc::clone(&vdso), SymbolizerOptions::default());
        let resolution = symbolizer.resolve(symbol.address());
        let name = &resolution.frames[0].function;
        assert!(name.contains("clock_gettime"), "{name}");
        assert_eq!(resolution.frames[0].language, FrameLanguage::Native);
    }
}
