//! Where the log in a bucket goes on, and whether it is still ours.

use std::time::Duration;

use bytes::Bytes;
use object_store::Error;
use twox_hash::XxHash3_128;

use super::LogCounters;
use super::Sequence;
use super::object_segments::Created;
use super::object_segments::FoundSegment;
use super::object_segments::ObjectSegments;
use super::record::encode_claim;
use super::replay::SegmentName;
use super::replay::end_of_segment;
use super::segment::SegmentHeader;
use crate::error::StoreError;

/// How often a start tries to get ahead of a process that writes the same log.
const CLAIMS: u32 = 20;

/// What is held while a segment is written.
#[derive(Debug)]
pub(super) struct Tail {
    pub(super) next_sequence: Sequence,
    /// Segments that were refused because the bucket did not answer, and may be there all the same.
    refused: Vec<Refused>,
    /// The segment of another process where ours should have been.
    fenced_by: Option<SegmentName>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Refused {
    content: u128,
    records: u64,
}

/// Whose a segment is that is there and was not to be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Taken {
    /// A refused one of ours, which arrived late: what is written next comes behind it.
    ByUs,
    ByAnother,
}

impl Tail {
    /// Writes a segment behind all others which says that the log is this process's. Whoever else
    /// writes it wants the same name for its next one, and learns of us.
    pub(super) fn claim(
        segments: &ObjectSegments,
        writer_id: u64,
        process_id: u64,
        after: Sequence,
        pause: Duration,
    ) -> Result<Self, StoreError> {
        for _ in 0..CLAIMS {
            let first_sequence = end(segments)?.max(after + 1);
            let header = SegmentHeader {
                writer_id,
                first_sequence,
            };
            let name = ObjectSegments::name(first_sequence);
            let content = [header.encode(), encode_claim(process_id)].concat().into();
            let failed = |error| segments.error("write", &name, &error);
            let created = segments.create(&name, &content, pause).map_err(failed)?;
            if created == Created::Written {
                check_condition(segments, &name, content)?;
                return Ok(Self {
                    next_sequence: first_sequence + 1,
                    refused: Vec::new(),
                    fenced_by: None,
                });
            }
        }
        Err(StoreError::Fenced {
            segment: segments.place(&ObjectSegments::name(end(segments)?)),
        })
    }

    pub(super) fn fenced_by(&self) -> Option<&SegmentName> {
        self.fenced_by.as_ref()
    }

    /// The segments, when all of them are ours.
    pub(super) fn check(
        &mut self,
        segments: &ObjectSegments,
        counters: &LogCounters,
    ) -> Result<Vec<FoundSegment>, StoreError> {
        let found = segments.list()?;
        if self.fenced_by.is_none() {
            // Of a refused one that arrived late, and of a successor's claim, the name is the same.
            let mut names = found.iter().map(|segment| &segment.name);
            let next = names.find(|name| name.first_sequence == self.next_sequence);
            if let Some(name) = next
                && !self.refused.is_empty()
            {
                let content = segments.read(name)?;
                if self.taken(name, &content) == Taken::ByUs {
                    counters.grow(content.len() as u64);
                }
            }
        }
        if self.fenced_by.is_none() {
            let mut names = found.iter().map(|segment| &segment.name);
            let foreign = names.find(|name| name.first_sequence >= self.next_sequence);
            self.fenced_by = foreign.cloned();
        }
        match &self.fenced_by {
            None => Ok(found),
            Some(name) => Err(StoreError::Fenced {
                segment: segments.place(name),
            }),
        }
    }

    pub(super) fn written(&mut self, records: u64) {
        self.next_sequence += records;
        self.refused.clear();
    }

    pub(super) fn refused(&mut self, content: &Bytes, records: u64) {
        let refused = Refused {
            content: XxHash3_128::oneshot(content),
            records,
        };
        if !self.refused.contains(&refused) {
            self.refused.push(refused);
        }
    }

    /// Finds out whose the segment is that has this content.
    pub(super) fn taken(&mut self, name: &SegmentName, content: &Bytes) -> Taken {
        let content = XxHash3_128::oneshot(content);
        let refused = self.refused.iter().find(|known| known.content == content);
        if let Some(&Refused { records, .. }) = refused {
            self.written(records);
            return Taken::ByUs;
        }
        self.fenced_by = Some(name.clone());
        Taken::ByAnother
    }
}

/// The sequence behind the last record.
fn end(segments: &ObjectSegments) -> Result<Sequence, StoreError> {
    let found = segments.list()?;
    let Some(FoundSegment { name, .. }) = found.last() else {
        return Ok(1);
    };
    let content = segments.read(name)?;
    end_of_segment(&segments.place(name), &content, name.first_sequence)
}

/// Whether the bucket refuses what it should refuse. One that does not would have two processes
/// overwrite each other's segments, and nobody would know.
fn check_condition(
    segments: &ObjectSegments,
    name: &SegmentName,
    content: Bytes,
) -> Result<(), StoreError> {
    match segments.put_new(name, content) {
        Err(Error::AlreadyExists { .. } | Error::Precondition { .. }) => Ok(()),
        Err(error) => Err(segments.error("write", name, &error)),
        Ok(()) => Err(StoreError::Bucket {
            action: "keep the log in",
            place: segments.place(name).display().to_string(),
            reason: "it overwrites objects although it is asked not to (If-None-Match), so a \
                     second writer would not be noticed; set store.log to local"
                .to_owned(),
        }),
    }
}
