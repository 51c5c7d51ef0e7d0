//! Which log a directory has, in a file beside its segments: the id in 16 hexadecimal digits, and
//! the checksum of these in 8.
//!
//! Each segment says it too, but at first there is one segment only. With its header damaged and
//! nothing beside it, nobody would know which of its records are in blocks.

use std::fs;
use std::io::ErrorKind;
use std::path::Path;
use std::path::PathBuf;

use crate::data_dir::write_atomically;
use crate::error::StoreError;
use crate::flush::writer_name;

/// `None` when there is no such file, or it is damaged: it is only asked where no segment knows.
pub(super) fn read(directory: &Path) -> Result<Option<u64>, StoreError> {
    let path = path(directory);
    let content = match fs::read(&path) {
        Ok(content) => content,
        // A log of before there was this file, or a new one.
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(StoreError::io("read", &path)(error)),
    };
    let writer_id = parse(&content);
    if writer_id.is_none() {
        let path = path.display();
        tracing::warn!(%path, "the file that identifies the log is damaged");
    }
    Ok(writer_id)
}

/// Writes it so that after a crash it is there as a whole or not at all.
pub(super) fn write(directory: &Path, writer_id: u64) -> Result<(), StoreError> {
    write_atomically(&path(directory), encode(writer_id).as_bytes())
}

fn path(directory: &Path) -> PathBuf {
    directory.join("identity")
}

fn encode(writer_id: u64) -> String {
    let name = writer_name(writer_id);
    let checksum = crc32c::crc32c(name.as_bytes());
    format!("{name} {checksum:08x}\n")
}

fn parse(content: &[u8]) -> Option<u64> {
    let name = std::str::from_utf8(content.get(..16)?).ok()?;
    let writer_id = u64::from_str_radix(name, 16).ok()?;
    (content == encode(writer_id).as_bytes()).then_some(writer_id)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_other_byte_is_seen() {
        let content = encode(0x00ab_0000_0000_0001).into_bytes();
        assert_eq!(parse(&content), Some(0x00ab_0000_0000_0001));
        for position in 0..content.len() {
            for mask in 1..=u8::MAX {
                let mut damaged = content.clone();
                damaged[position] ^= mask;
                assert_eq!(parse(&damaged), None, "byte {position} with {mask:#x}");
            }
            assert_eq!(parse(&content[..position]), None, "cut at {position}");
        }
    }
}
