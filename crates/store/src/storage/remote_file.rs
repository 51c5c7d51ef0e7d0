//! A file of a bucket, read in pieces that are compared with what was written and kept.

use std::collections::VecDeque;
use std::fmt;
use std::io::Error;
use std::io::ErrorKind;
use std::io::Result;
use std::ops::Range;
use std::sync::Arc;
use std::sync::Mutex;

use bytes::Bytes;
use bytes::BytesMut;
use futures::StreamExt;
use futures::TryStreamExt;
use futures::stream;
use object_store::GetOptions;
use object_store::GetRange;
use object_store::ObjectStore;
use object_store::path::Path;

use super::bucket::Bucket;
use super::cache::ChunkCache;
use super::remote::io_error;
use crate::block::CHUNK_BYTES;
use crate::block::FileMeta;
use crate::sync::lock;

/// Pieces that one request fetches at most.
const CHUNKS_PER_REQUEST: usize = 8;
/// Requests on their way at once for one reader.
const REQUESTS_AT_ONCE: usize = 8;
/// Pieces in memory for each open file: the columns that a scan reads side by side, and the next of
/// each.
const RECENT_CHUNKS: usize = 8;

/// A file whose length is known, so that nothing has to be asked before it is read.
#[derive(Clone)]
pub(crate) struct RemoteFile {
    inner: Arc<Inner>,
}

struct Inner {
    bucket: Bucket,
    cache: Arc<ChunkCache>,
    key: Path,
    meta: FileMeta,
    recent: Mutex<VecDeque<(usize, Bytes)>>,
}

impl RemoteFile {
    pub(super) fn new(bucket: Bucket, cache: Arc<ChunkCache>, file: &FileMeta) -> Result<Self> {
        let key = bucket.path(&file.path).map_err(|error| io_error(&error))?;
        Ok(Self {
            inner: Arc::new(Inner {
                bucket,
                cache,
                key,
                meta: file.clone(),
                recent: Mutex::default(),
            }),
        })
    }

    pub(super) fn length(&self) -> u64 {
        self.inner.meta.bytes
    }

    pub(super) fn verifies_itself(&self) -> bool {
        self.inner.meta.has_chunk_hashes()
    }

    pub(super) fn bytes_at(&self, start: u64, length: usize) -> Result<Bytes> {
        let end = start.checked_add(length as u64);
        let Some(end) = end.filter(|&end| end <= self.length()) else {
            let what = "a read goes behind its end";
            return Err(Error::new(ErrorKind::UnexpectedEof, what));
        };
        if length == 0 {
            return Ok(Bytes::new());
        }
        let chunks = chunks_of(&(start..end));
        let pieces = self.inner.chunks(&chunks)?;
        let skipped = usize::try_from(start - (chunks.start * CHUNK_BYTES) as u64).unwrap_or(0);
        if let [piece] = &pieces[..] {
            return Ok(piece.slice(skipped..skipped + length));
        }
        let mut whole = BytesMut::with_capacity(pieces.iter().map(Bytes::len).sum());
        pieces
            .iter()
            .for_each(|piece| whole.extend_from_slice(piece));
        Ok(whole.freeze().slice(skipped..skipped + length))
    }

    pub(super) fn read_at(&self, buffer: &mut [u8], position: u64) -> Result<usize> {
        let left = self.length().saturating_sub(position);
        let in_chunk = CHUNK_BYTES as u64 - position % CHUNK_BYTES as u64;
        let length = (buffer.len() as u64).min(left).min(in_chunk);
        let length = usize::try_from(length).unwrap_or(0);
        let content = self.bytes_at(position, length)?;
        buffer[..length].copy_from_slice(&content);
        Ok(length)
    }

    /// Fetches what is missing of the ranges, as far as it would stay until it is read.
    pub(super) fn will_read(&self, ranges: &[Range<u64>]) -> Result<()> {
        let inner = &self.inner;
        let most = usize::try_from(inner.cache.max_bytes() / 4).unwrap_or(usize::MAX) / CHUNK_BYTES;
        let mut missing: Vec<usize> = ranges
            .iter()
            .filter(|range| range.start < range.end && range.end <= self.length())
            .flat_map(chunks_of)
            .filter(|&index| !inner.cache.contains(&inner.meta.path, index))
            .collect();
        missing.sort_unstable();
        missing.dedup();
        missing.truncate(most);
        inner.fetch(&missing).map(drop)
    }
}

impl Inner {
    /// Consecutive pieces.
    fn chunks(&self, chunks: &Range<usize>) -> Result<Vec<Bytes>> {
        let mut known: Vec<Option<Bytes>> = chunks.clone().map(|index| self.known(index)).collect();
        let missing = chunks
            .clone()
            .zip(&known)
            .filter(|(_, piece)| piece.is_none());
        let missing: Vec<usize> = missing.map(|(index, _)| index).collect();
        for (index, piece) in self.fetch(&missing)? {
            known[index - chunks.start] = Some(piece);
        }
        let pieces = known.into_iter();
        Ok(pieces
            .map(|piece| piece.expect("known or fetched"))
            .collect())
    }

    /// A piece that needs no request.
    fn known(&self, index: usize) -> Option<Bytes> {
        let recent = lock(&self.recent);
        let found = recent.iter().find(|(other, _)| *other == index);
        if let Some((_, piece)) = found {
            return Some(piece.clone());
        }
        drop(recent);
        let piece = self.cache.get(&self.meta.path, index)?;
        // Without a checksum a copy that a crash cut could not be told from a whole one.
        if self.meta.is_sound_chunk(index, &piece) != Some(true) {
            return None;
        }
        self.remember(index, &piece);
        Some(piece)
    }

    /// Pieces from the bucket, in ascending order, in few requests.
    fn fetch(&self, missing: &[usize]) -> Result<Vec<(usize, Bytes)>> {
        if missing.is_empty() {
            return Ok(Vec::new());
        }
        let runs = missing.chunk_by(|left, right| left + 1 == *right);
        let requests: Vec<Range<usize>> = runs
            .flat_map(|run| run.chunks(CHUNKS_PER_REQUEST))
            .map(|run| run[0]..run[0] + run.len())
            .collect();
        let bytes = self.meta.bytes;
        let gets = requests.clone().into_iter().map(move |chunks| {
            let (start, end) = (chunks.start * CHUNK_BYTES, chunks.end * CHUNK_BYTES);
            start as u64..bytes.min(end as u64)
        });
        let (client, key) = (self.bucket.client(), self.key.clone());
        let work = async move {
            let gets = gets.map(|range| get(Arc::clone(&client), key.clone(), range));
            let answers = stream::iter(gets).buffered(REQUESTS_AT_ONCE);
            answers.try_collect::<Vec<_>>().await
        };
        let answers = self.bucket.run(work).map_err(|error| io_error(&error))?;
        let mut pieces = Vec::with_capacity(missing.len());
        for (chunks, (size, content)) in requests.into_iter().zip(answers) {
            if size != bytes {
                let what = format!("it has {size} bytes, was written with {bytes}");
                return Err(Error::new(ErrorKind::InvalidData, what));
            }
            for index in chunks.clone() {
                let start = (index - chunks.start) * CHUNK_BYTES;
                let end = content.len().min(start + CHUNK_BYTES);
                if start >= end {
                    return Err(Error::new(ErrorKind::InvalidData, "an answer is too short"));
                }
                let piece = content.slice(start..end);
                self.keep(index, &piece)?;
                pieces.push((index, piece));
            }
        }
        Ok(pieces)
    }

    fn keep(&self, index: usize, piece: &Bytes) -> Result<()> {
        match self.meta.is_sound_chunk(index, piece) {
            Some(false) => {
                let what =
                    format!("MiB {index} of it does not have the checksum of what was written");
                return Err(Error::new(ErrorKind::InvalidData, what));
            }
            Some(true) => self.cache.insert(&self.meta.path, index, piece),
            None => {}
        }
        self.remember(index, piece);
        Ok(())
    }

    fn remember(&self, index: usize, piece: &Bytes) {
        let mut recent = lock(&self.recent);
        recent.push_back((index, piece.clone()));
        if recent.len() > RECENT_CHUNKS {
            recent.pop_front();
        }
    }
}

impl fmt::Debug for RemoteFile {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = &self.inner.key;
        formatter.debug_tuple("RemoteFile").field(name).finish()
    }
}

/// A range of an object, and the size of all of it.
async fn get(
    client: Arc<dyn ObjectStore>,
    key: Path,
    range: Range<u64>,
) -> object_store::Result<(u64, Bytes)> {
    let options = GetOptions {
        range: Some(GetRange::Bounded(range)),
        ..GetOptions::default()
    };
    let answer = client.get_opts(&key, options).await?;
    let size = answer.meta.size;
    Ok((size, answer.bytes().await?))
}

/// The pieces that a range of bytes, which is not empty, touches.
fn chunks_of(range: &Range<u64>) -> Range<usize> {
    let chunk = CHUNK_BYTES as u64;
    let (first, end) = (range.start / chunk, range.end.div_ceil(chunk));
    usize::try_from(first).unwrap_or(usize::MAX)..usize::try_from(end).unwrap_or(usize::MAX)
}
