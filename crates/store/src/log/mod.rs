//! The durable log: what is acknowledged is here before it is anywhere else.
//!
//! A directory of segments, each a header and records, written by one thread with group commit.
//! The head is rebuilt from it when the store opens; segments whose records are all in blocks are
//! deleted.

mod queue;
mod record;
mod replay;
mod segment;
mod writer;

pub(crate) use queue::PushError;
pub(crate) use queue::Queue;
pub(crate) use record::MAX_PAYLOAD_BYTES;
pub(crate) use record::RecordRef;
pub(crate) use record::encode_record;
pub(crate) use replay::Replay;
pub(crate) use replay::replay;
pub(crate) use replay::writer_id_of_log;
pub(crate) use segment::first_sequence_of_log;
pub(crate) use segment::remove_segments_before;
pub(crate) use writer::LogCounters;
pub(crate) use writer::LogWriter;
pub(crate) use writer::PendingAppend;

/// Position of a record in the log: 1 for the first one ever, then up by one.
pub(crate) type Sequence = u64;
