//! What the loader is asked for, in the order in which it should be done.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::Condvar;
use std::sync::Mutex;
use std::sync::MutexGuard;
use std::sync::PoisonError;

use crate::processes::Object;

/// What the loader is asked for.
#[derive(Debug)]
pub(crate) enum Request {
    /// Read the headers of these.
    Describe(Vec<Arc<Object>>),
    /// Build a table and upload it.
    Build { slot: u32, object: Arc<Object> },
    /// Take a table out of the kernel.
    Forget { slot: u32 },
}

/// Requests of one thread for another. What takes microseconds goes before what takes milliseconds,
/// and small files go before large ones: a browser must not keep everything else waiting.
#[derive(Debug, Default)]
pub(crate) struct RequestQueue {
    state: Mutex<State>,
    has_news: Condvar,
}

#[derive(Debug, Default)]
struct State {
    quick: VecDeque<Request>,
    /// Size of the file, slot and object; the largest first.
    builds: Vec<(u64, u32, Arc<Object>)>,
    is_closed: bool,
}

impl RequestQueue {
    pub(crate) fn push(&self, request: Request) {
        let mut state = self.lock();
        match request {
            Request::Build { slot, object } => {
                let size = object.size();
                let position = state.builds.partition_point(|(other, ..)| *other > size);
                state.builds.insert(position, (size, slot, object));
            }
            quick => state.quick.push_back(quick),
        }
        self.has_news.notify_one();
    }

    /// Waits for a request; `None` when the queue is closed.
    pub(crate) fn next(&self) -> Option<Request> {
        let state = self.lock();
        let mut state = self
            .has_news
            .wait_while(state, |state| {
                state.quick.is_empty() && state.builds.is_empty() && !state.is_closed
            })
            .unwrap_or_else(PoisonError::into_inner);
        if state.is_closed {
            return None;
        }
        let quick = state.quick.pop_front();
        quick.or_else(|| {
            let (_, slot, object) = state.builds.pop()?;
            Some(Request::Build { slot, object })
        })
    }

    /// Ends the waiting; requests that are still there are forgotten.
    pub(crate) fn close(&self) {
        self.lock().is_closed = true;
        self.has_news.notify_one();
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        // Nothing that can panic runs while it is held.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::processes::ObjectSource;
    use std::io::Write;

    fn object(bytes: usize) -> Arc<Object> {
        let mut file = tempfile::tempfile().expect("a temporary file");
        file.write_all(&vec![0; bytes]).expect("room for it");
        let source = ObjectSource::File(file);
        Arc::new(Object::new(0, String::new(), "/".into(), source))
    }

    #[test]
    fn small_goes_before_large_and_quick_before_both() {
        let queue = RequestQueue::default();
        for (slot, bytes) in [(1, 500), (2, 20), (3, 9000), (4, 100)] {
            let object = object(bytes);
            queue.push(Request::Build { slot, object });
        }
        queue.push(Request::Forget { slot: 7 });
        let order: Vec<u32> = (0..5)
            .map(|_| match queue.next().expect("a request") {
                Request::Build { slot, .. } | Request::Forget { slot } => slot,
                Request::Describe(_) => panic!("nobody asked for it"),
            })
            .collect();
        assert_eq!(order, [7, 2, 4, 1, 3]);
        queue.close();
        assert!(queue.next().is_none());
    }
}
