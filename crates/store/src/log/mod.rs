//! The durable log: what is acknowledged is here before it is anywhere else.
//!
//! Segments, each a header and records, written by one thread with group commit. The head is
//! rebuilt from them when the store opens; segments whose records are all in blocks are deleted.
//! [`DurableLog`] is what the store needs of it; [`LocalLog`] keeps it in the data directory,
//! [`ObjectLog`] in a bucket.

mod durable;
mod identity;
mod local;
mod local_end;
mod object;
#[cfg(test)]
mod object_damage_tests;
mod object_end;
mod object_segments;
mod object_tail;
mod queue;
mod record;
mod replay;
mod scan;
mod segment;
mod writer;

pub(crate) use durable::DurableLog;
pub(crate) use durable::LogCounters;
pub(crate) use durable::LogEnd;
pub(crate) use durable::LogFailure;
pub(crate) use durable::Patience;
pub(crate) use durable::Visit;
pub(crate) use local::LocalLog;
pub(crate) use local::LocalSettings;
pub(crate) use object::ObjectLog;
pub(crate) use object::ObjectSettings;
pub(crate) use object_segments::writers_of_bucket;
pub(crate) use queue::PushError;
pub(crate) use queue::Queue;
pub(crate) use record::MAX_PAYLOAD_BYTES;
pub(crate) use record::RecordKind;
pub(crate) use record::RecordRef;
pub(crate) use record::encode_mark;
pub(crate) use record::encode_record;
pub(crate) use replay::Replay;
pub(crate) use writer::Durable;
pub(crate) use writer::PendingAppend;
pub(crate) use writer::write_log;

/// Position of a record in the log: 1 for the first one ever, then up by one.
pub(crate) type Sequence = u64;
