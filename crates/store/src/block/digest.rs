//! What a manifest says of a file's content, so that later reads can be compared with it.

use std::hash::Hasher;

use twox_hash::XxHash3_64;

use super::manifest::FileMeta;

/// Bytes of the pieces that have a checksum of their own: what is fetched from a bucket at once, and
/// may not be less than the pages of a table usually are.
pub(crate) const CHUNK_BYTES: usize = 1 << 20;

/// Takes a file's bytes as they are written.
#[derive(Default)]
pub(crate) struct FileDigest {
    whole: XxHash3_64,
    chunk: XxHash3_64,
    chunk_bytes: usize,
    chunk_hashes: Vec<String>,
    bytes: u64,
}

impl FileDigest {
    pub(crate) fn add(&mut self, mut content: &[u8]) {
        self.whole.write(content);
        self.bytes += content.len() as u64;
        while !content.is_empty() {
            let (now, later) = content.split_at(content.len().min(CHUNK_BYTES - self.chunk_bytes));
            self.chunk.write(now);
            self.chunk_bytes += now.len();
            content = later;
            if self.chunk_bytes == CHUNK_BYTES {
                self.end_chunk();
            }
        }
    }

    /// The entry of the file in its block's manifest.
    pub(crate) fn finish(mut self, table: &str, path: String) -> FileMeta {
        if self.chunk_bytes > 0 {
            self.end_chunk();
        }
        FileMeta {
            table: table.to_owned(),
            path,
            bytes: self.bytes,
            hash: hex(self.whole.finish()),
            chunk_hashes: self.chunk_hashes,
        }
    }

    fn end_chunk(&mut self) {
        let chunk = std::mem::take(&mut self.chunk);
        self.chunk_hashes.push(hex(chunk.finish()));
        self.chunk_bytes = 0;
    }
}

impl FileMeta {
    /// The entry of a file with this content.
    pub(crate) fn of(table: &str, path: String, content: &[u8]) -> Self {
        let mut digest = FileDigest::default();
        digest.add(content);
        digest.finish(table, path)
    }

    /// Whether each piece has its checksum. Blocks of older versions have them not.
    pub(crate) fn has_chunk_hashes(&self) -> bool {
        self.chunk_hashes.len() as u64 == self.bytes.div_ceil(CHUNK_BYTES as u64)
    }

    /// Whether a piece is as it was written; `None` when that is not known.
    pub(crate) fn is_sound_chunk(&self, index: usize, content: &[u8]) -> Option<bool> {
        let hash = self.chunk_hashes.get(index)?;
        Some(*hash == hex(XxHash3_64::oneshot(content)))
    }
}

fn hex(hash: u64) -> String {
    format!("{hash:016x}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_do_not_depend_on_how_bytes_come() {
        let content: Vec<u8> = (0..CHUNK_BYTES * 2 + 5).map(|it| (it * 7) as u8).collect();
        let whole = FileMeta::of("samples", "a".to_owned(), &content);
        assert_eq!(whole.chunk_hashes.len(), 3);
        assert!(whole.has_chunk_hashes());
        let mut digest = FileDigest::default();
        content.chunks(999_983).for_each(|part| digest.add(part));
        assert_eq!(digest.finish("samples", "a".to_owned()), whole);
        let last = &content[CHUNK_BYTES * 2..];
        assert_eq!(whole.is_sound_chunk(2, last), Some(true));
        assert_eq!(whole.is_sound_chunk(2, &last[1..]), Some(false));
        assert_eq!(whole.is_sound_chunk(3, last), None);
    }

    #[test]
    fn whole_pieces_and_nothing_have_no_rest() {
        let whole = FileMeta::of("samples", "a".to_owned(), &vec![1; CHUNK_BYTES]);
        assert_eq!(whole.chunk_hashes.len(), 1);
        let empty = FileMeta::of("samples", "a".to_owned(), &[]);
        assert!(empty.chunk_hashes.is_empty() && empty.has_chunk_hashes());
    }
}
