//! A file read at positions, from several threads at once.

use std::fs::File;
use std::io::BufReader;
use std::io::Read;
use std::os::unix::fs::FileExt;
use std::sync::Arc;

use bytes::Bytes;
use parquet::errors::Result;
use parquet::file::reader::ChunkReader;
use parquet::file::reader::Length;

/// `File` itself is a `ChunkReader` too, but its clones share one position and must not be read
/// from two threads.
#[derive(Clone, Debug)]
pub(super) struct PositionedFile {
    file: Arc<File>,
    length: u64,
}

/// Reads on from a position.
#[derive(Debug)]
pub(super) struct PositionedRead {
    file: Arc<File>,
    position: u64,
}

impl PositionedFile {
    pub(super) fn new(file: File) -> std::io::Result<Self> {
        let length = file.metadata()?.len();
        Ok(Self {
            file: Arc::new(file),
            length,
        })
    }
}

impl Length for PositionedFile {
    fn len(&self) -> u64 {
        self.length
    }
}

impl ChunkReader for PositionedFile {
    type T = BufReader<PositionedRead>;

    fn get_read(&self, start: u64) -> Result<Self::T> {
        Ok(BufReader::new(PositionedRead {
            file: Arc::clone(&self.file),
            position: start,
        }))
    }

    fn get_bytes(&self, start: u64, length: usize) -> Result<Bytes> {
        let mut buffer = vec![0; length];
        self.file.read_exact_at(&mut buffer, start)?;
        Ok(buffer.into())
    }
}

impl Read for PositionedRead {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        let count = self.file.read_at(buffer, self.position)?;
        self.position += count as u64;
        Ok(count)
    }
}
