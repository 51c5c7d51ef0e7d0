//! What waits for the log's writer.

use std::sync::Condvar;
use std::sync::Mutex;

use super::Patience;
use crate::sync::lock;

/// A queue with a bound in bytes, which the consumer empties in batches.
#[derive(Debug)]
pub(crate) struct Queue<T> {
    state: Mutex<State<T>>,
    changed: Condvar,
    max_bytes: u64,
}

#[derive(Debug)]
struct State<T> {
    items: Vec<T>,
    bytes: u64,
    is_closed: bool,
}

/// Why an item was not queued.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum PushError {
    /// So many bytes wait already.
    Full(u64),
    Closed,
}

impl<T> Queue<T> {
    pub(crate) fn new(max_bytes: u64) -> Self {
        Self {
            state: Mutex::new(State {
                items: Vec::new(),
                bytes: 0,
                is_closed: false,
            }),
            changed: Condvar::new(),
            max_bytes,
        }
    }

    pub(crate) fn push(&self, item: T, bytes: u64) -> Result<(), PushError> {
        let mut state = lock(&self.state);
        if state.is_closed {
            return Err(PushError::Closed);
        }
        // One item larger than the bound must be able to pass an empty queue.
        if !state.items.is_empty() && state.bytes + bytes > self.max_bytes {
            return Err(PushError::Full(state.bytes));
        }
        state.items.push(item);
        state.bytes += bytes;
        self.changed.notify_one();
        Ok(())
    }

    /// Everything that waits, in the order in which it came; `None` once the queue is closed and
    /// empty. `patience` is asked when there is something: what arrives until it ends is taken
    /// along.
    pub(crate) fn take_batch(&self, patience: impl FnOnce() -> Patience) -> Option<Vec<T>> {
        let state = self
            .changed
            .wait_while(lock(&self.state), |state| {
                state.items.is_empty() && !state.is_closed
            })
            .unwrap_or_else(std::sync::PoisonError::into_inner);
        let patience = patience();
        let mut state = if patience.linger.is_zero() {
            state
        } else {
            let is_short =
                |state: &mut State<T>| state.bytes < patience.enough_bytes && !state.is_closed;
            let waited = self
                .changed
                .wait_timeout_while(state, patience.linger, is_short);
            waited.unwrap_or_else(std::sync::PoisonError::into_inner).0
        };
        state.bytes = 0;
        let batch = std::mem::take(&mut state.items);
        (!batch.is_empty()).then_some(batch)
    }

    /// Nothing is taken any more; what waits is still handed out.
    pub(crate) fn close(&self) {
        lock(&self.state).is_closed = true;
        self.changed.notify_all();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_bound_holds_and_a_batch_empties() {
        let queue = Queue::new(10);
        assert_eq!(queue.push('a', 100), Ok(()), "alone it may be any size");
        assert_eq!(queue.push('b', 1), Err(PushError::Full(100)));
        assert_eq!(queue.take_batch(Patience::none), Some(vec!['a']));
        assert_eq!(queue.push('c', 4), Ok(()));
        assert_eq!(queue.push('d', 4), Ok(()));
        queue.close();
        assert_eq!(queue.push('e', 1), Err(PushError::Closed));
        assert_eq!(queue.take_batch(Patience::none), Some(vec!['c', 'd']));
        assert_eq!(queue.take_batch(Patience::none), None);
    }
}
