//! A ZIP archive as a wrapper of one file, as profiles are attached to issues and kept in test data:
//! "APPNOTE.TXT" of PKWARE, 4.3.

use std::io::Read;

use flate2::read::DeflateDecoder;

use crate::error::ReadError;

/// The header of an entry, which an archive begins with.
pub(crate) const ZIP_MAGIC: [u8; 4] = *b"PK\x03\x04";

const DIRECTORY_MAGIC: [u8; 4] = *b"PK\x01\x02";
const END_MAGIC: [u8; 4] = *b"PK\x05\x06";

/// Without the name, which is of any length, as all that follows it.
const ENTRY_BYTES: usize = 30;
const DIRECTORY_BYTES: usize = 46;
const END_BYTES: usize = 22;

/// The end may be followed by a comment of 16 bits of length.
const MAX_COMMENT: usize = 0xffff;

const STORED: u16 = 0;
const DEFLATED: u16 = 8;

/// An entry as the directory describes it.
#[derive(Clone, Copy, Debug)]
struct Entry {
    method: u16,
    packed_bytes: usize,
    bytes: usize,
    /// Where its own header stands.
    offset: usize,
}

/// The bytes of the largest entry, as `read_capped` reads them.
pub(crate) fn largest_entry(
    archive: &[u8],
    read_capped: impl FnOnce(&mut dyn Read) -> Result<Vec<u8>, ReadError>,
) -> Result<Vec<u8>, ReadError> {
    let entries = directory(archive).ok_or_else(|| damaged("its directory is missing"))?;
    let largest = entries.into_iter().max_by_key(|entry| entry.bytes);
    let entry = largest.ok_or_else(|| damaged("it has no file"))?;
    let (method, data) =
        entry_data(archive, entry.offset).ok_or_else(|| damaged("a file is cut off"))?;
    if method != entry.method {
        return Err(damaged("a file and the directory differ"));
    }
    let packed = data
        .get(..entry.packed_bytes)
        .ok_or_else(|| damaged("a file is cut off"))?;
    match method {
        STORED => read_capped(&mut &packed[..]),
        DEFLATED => read_capped(&mut DeflateDecoder::new(packed)),
        _ => Err(damaged("its file is packed in a way other than deflate")),
    }
}

/// As much of the first entry as there is in the start of an archive.
pub(crate) fn first_entry_prefix(prefix: &[u8], enough: u64) -> Vec<u8> {
    let mut inflated = Vec::new();
    // Writers that do not know it yet leave it at 0.
    let stored_bytes = u32_at(prefix, 18).filter(|&size| size != 0);
    // What came out before the end is the answer.
    match entry_data(prefix, 0) {
        Some((STORED, data)) => {
            let most = stored_bytes.map_or(enough, |size| enough.min(u64::from(size)));
            let _ = data.take(most).read_to_end(&mut inflated);
        }
        Some((DEFLATED, data)) => {
            let decoder = DeflateDecoder::new(data);
            let _ = decoder.take(enough).read_to_end(&mut inflated);
        }
        _ => {}
    }
    inflated
}

/// How an entry is packed, and all that follows its header.
fn entry_data(archive: &[u8], offset: usize) -> Option<(u16, &[u8])> {
    let header = archive.get(offset..)?;
    if !header.starts_with(&ZIP_MAGIC) {
        return None;
    }
    let method = u16_at(header, 8)?;
    let name = usize::from(u16_at(header, 26)?);
    let extra = usize::from(u16_at(header, 28)?);
    Some((method, header.get(ENTRY_BYTES + name + extra..)?))
}

/// All entries. Those of archives beyond 4 GiB (ZIP64) say sizes that are not there.
fn directory(archive: &[u8]) -> Option<Vec<Entry>> {
    let first = archive.len().saturating_sub(END_BYTES + MAX_COMMENT);
    let tail = archive.get(first..)?;
    let end = tail
        .windows(END_MAGIC.len())
        .rposition(|window| window == END_MAGIC)?;
    let end = tail.get(end..)?;
    let mut rest = archive.get(u32_at(end, 16)? as usize..)?;
    let mut entries = Vec::new();
    while rest.starts_with(&DIRECTORY_MAGIC) {
        entries.push(Entry {
            method: u16_at(rest, 10)?,
            packed_bytes: u32_at(rest, 20)? as usize,
            bytes: u32_at(rest, 24)? as usize,
            offset: u32_at(rest, 42)? as usize,
        });
        let lengths = [28, 30, 32].map(|at| u16_at(rest, at).map_or(0, usize::from));
        rest = rest.get(DIRECTORY_BYTES + lengths.iter().sum::<usize>()..)?;
    }
    Some(entries)
}

fn u16_at(bytes: &[u8], at: usize) -> Option<u16> {
    let bytes = bytes.get(at..)?.first_chunk()?;
    Some(u16::from_le_bytes(*bytes))
}

fn u32_at(bytes: &[u8], at: usize) -> Option<u32> {
    let bytes = bytes.get(at..)?.first_chunk()?;
    Some(u32::from_le_bytes(*bytes))
}

fn damaged(reason: &str) -> ReadError {
    ReadError::Compression {
        encoding: "zip",
        reason: reason.to_owned(),
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use std::io::Write;

    use flate2::Compression;
    use flate2::write::DeflateEncoder;

    /// An archive of files, each deflated or stored.
    pub(crate) fn archive(files: &[(&str, &[u8], bool)]) -> Vec<u8> {
        let mut archive = Vec::new();
        let mut directory = Vec::new();
        for &(name, content, is_deflated) in files {
            let mut packed = content.to_vec();
            if is_deflated {
                let mut encoder = DeflateEncoder::new(Vec::new(), Compression::default());
                encoder.write_all(content).expect("a vector takes all");
                packed = encoder.finish().expect("a vector takes all");
            }
            let offset = archive.len() as u32;
            // Version, flags, method, time, date, checksum, sizes.
            let mut common = vec![20, 0, 0, 0];
            common.extend([if is_deflated { 8 } else { 0 }, 0, 0, 0, 0, 0, 0, 0, 0, 0]);
            common.extend((packed.len() as u32).to_le_bytes());
            common.extend((content.len() as u32).to_le_bytes());
            common.extend((name.len() as u16).to_le_bytes());
            common.extend([0, 0]);
            archive.extend(b"PK\x03\x04");
            archive.extend(&common);
            archive.extend(name.as_bytes());
            archive.extend(&packed);
            directory.extend(b"PK\x01\x02\x14\x00");
            directory.extend(&common);
            directory.extend([0; 10]);
            directory.extend(offset.to_le_bytes());
            directory.extend(name.as_bytes());
        }
        let offset = archive.len() as u32;
        let length = directory.len() as u32;
        archive.extend(directory);
        archive.extend(b"PK\x05\x06\0\0\0\0");
        archive.extend((files.len() as u16).to_le_bytes());
        archive.extend((files.len() as u16).to_le_bytes());
        archive.extend(length.to_le_bytes());
        archive.extend(offset.to_le_bytes());
        archive.extend([0, 0]);
        archive
    }
}
