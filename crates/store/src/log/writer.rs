//! The one thread that writes the log.

use candela_model::Profile;
use tokio::sync::oneshot;

use super::LogEnd;
use super::LogFailure;
use super::Queue;
use super::Sequence;
use crate::duplicates::ReceivedKey;
use crate::duplicates::Ticket;
use crate::error::AppendError;
use crate::failpoint::failpoint;

/// A profile on its way to the log.
#[derive(Debug)]
pub(crate) struct PendingAppend {
    pub(crate) tenant: String,
    pub(crate) profile: Profile,
    /// The record, ready to be written.
    pub(crate) record: Vec<u8>,
    /// Where its key is reserved, if it has one. It is here and not with whoever waits, who may go
    /// away while the record becomes durable all the same.
    pub(crate) ticket: Option<Ticket>,
    pub(crate) done: oneshot::Sender<Result<(), AppendError>>,
}

/// A record that is durable and not visible yet.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Durable<'a> {
    pub(crate) sequence: Sequence,
    pub(crate) tenant: &'a str,
    pub(crate) profile: &'a Profile,
    pub(crate) key: Option<ReceivedKey>,
}

/// Writes batches until the queue is closed and empty. `apply` makes a durable profile visible;
/// after that it is acknowledged.
pub(crate) fn write_log(
    mut end: Box<dyn LogEnd>,
    queue: &Queue<PendingAppend>,
    mut apply: impl FnMut(Durable<'_>),
) {
    let mut last_batch = 0;
    while let Some(batch) = queue.take_batch(|| end.patience(last_batch)) {
        last_batch = batch.len();
        let records: Vec<&[u8]> = batch.iter().map(|append| &*append.record).collect();
        match end.append(&records) {
            Ok(first) => acknowledge(first, batch, &mut apply),
            Err(failure) => refuse(batch, &failure),
        }
    }
    end.close();
}

fn acknowledge(first: Sequence, batch: Vec<PendingAppend>, apply: &mut impl FnMut(Durable<'_>)) {
    for (sequence, append) in (first..).zip(batch) {
        apply(Durable {
            sequence,
            tenant: &append.tenant,
            profile: &append.profile,
            key: append.ticket.as_ref().map(Ticket::received),
        });
        failpoint!("log.apply.after");
        append.ticket.into_iter().for_each(Ticket::durable);
        // Whoever went away does not want to know.
        let _ = append.done.send(Ok(()));
    }
}

fn refuse(batch: Vec<PendingAppend>, failure: &LogFailure) {
    let (error, refused) = (failure.refusal(), batch.len());
    tracing::error!(%error, refused, "the log takes no profiles");
    for append in batch {
        let _ = append.done.send(Err(failure.refusal()));
    }
}
