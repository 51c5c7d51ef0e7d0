//! A stored file, read at positions from several threads at once.

use std::io::BufReader;
use std::io::Read;
use std::ops::Range;

use bytes::Bytes;
use parquet::errors::Result;
use parquet::file::reader::ChunkReader;
use parquet::file::reader::Length;

use super::local::LocalFile;
use super::remote_file::RemoteFile;
use crate::error::ReadFault;

/// A file of a block. Clones are the same file.
#[derive(Clone, Debug)]
pub(crate) enum StoredFile {
    Local(LocalFile),
    Remote(RemoteFile),
}

/// Reads on from a position.
#[derive(Debug)]
pub(crate) struct StoredRead {
    file: StoredFile,
    position: u64,
}

impl StoredFile {
    /// Whether what is read is compared with what was written, piece by piece.
    pub(crate) fn verifies_itself(&self) -> bool {
        match self {
            Self::Local(_) => false,
            Self::Remote(file) => file.verifies_itself(),
        }
    }

    /// Whether each read may be a request.
    pub(crate) fn is_remote(&self) -> bool {
        matches!(self, Self::Remote(_))
    }

    /// Says what will be read soon, so that it comes in few requests at once.
    pub(crate) fn will_read(&self, ranges: &[Range<u64>]) -> std::result::Result<(), ReadFault> {
        match self {
            Self::Local(_) => Ok(()),
            Self::Remote(file) => Ok(file.will_read(ranges)?),
        }
    }

    /// From its first byte on.
    pub(crate) fn reader(&self) -> BufReader<StoredRead> {
        self.reader_at(0)
    }

    fn reader_at(&self, position: u64) -> BufReader<StoredRead> {
        BufReader::new(StoredRead {
            file: self.clone(),
            position,
        })
    }
}

impl Length for StoredFile {
    fn len(&self) -> u64 {
        match self {
            Self::Local(file) => file.length(),
            Self::Remote(file) => file.length(),
        }
    }
}

impl ChunkReader for StoredFile {
    type T = BufReader<StoredRead>;

    fn get_read(&self, start: u64) -> Result<Self::T> {
        Ok(self.reader_at(start))
    }

    fn get_bytes(&self, start: u64, length: usize) -> Result<Bytes> {
        match self {
            Self::Local(file) => Ok(file.bytes_at(start, length)?),
            Self::Remote(file) => Ok(file.bytes_at(start, length)?),
        }
    }
}

impl Read for StoredRead {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        let count = match &self.file {
            StoredFile::Local(file) => file.read_at(buffer, self.position)?,
            StoredFile::Remote(file) => file.read_at(buffer, self.position)?,
        };
        self.position += count as u64;
        Ok(count)
    }
}
