//! Those who wait for a snapshot, and the one request that is made for all of them.

use std::sync::Arc;
use std::sync::Mutex;
use std::sync::MutexGuard;
use std::sync::PoisonError;
use std::sync::mpsc::Sender;

use tokio::sync::oneshot;

use crate::daemon::SnapshotRequest;

/// The name of the file, or why there is none.
pub(crate) type Answer = Result<String, String>;

type Client = oneshot::Sender<Answer>;

/// One snapshot at a time: a buffer may be gigabytes, and a client that asks again and again would fill the disk with
/// copies of it. All who ask while one is on its way share the next one, which is triggered after they have asked.
#[derive(Debug)]
pub(crate) struct Desk {
    requests: Sender<SnapshotRequest>,
    waiting: Mutex<Waiting>,
}

#[derive(Debug, Default)]
struct Waiting {
    /// Those whose snapshot is on its way.
    now: Vec<Client>,
    /// Those who have asked since.
    next: Vec<Client>,
    is_asked: bool,
}

/// A request that the daemon has. One that it lets go of is answered all the same.
struct Ticket(Option<Arc<Desk>>);

impl Desk {
    pub(crate) fn new(requests: Sender<SnapshotRequest>) -> Arc<Self> {
        Arc::new(Self {
            requests,
            waiting: Mutex::default(),
        })
    }

    /// Asks for a snapshot.
    pub(crate) fn ask(self: &Arc<Self>) -> oneshot::Receiver<Answer> {
        let (client, answer) = oneshot::channel();
        let mut waiting = self.waiting();
        if waiting.is_asked {
            waiting.next.push(client);
            return answer;
        }
        waiting.is_asked = true;
        waiting.now.push(client);
        drop(waiting);
        self.request();
        answer
    }

    fn request(self: &Arc<Self>) {
        let mut ticket = Ticket(Some(Arc::clone(self)));
        let request = SnapshotRequest {
            answer: Box::new(move |answer| ticket.answer(&answer)),
        };
        // One that cannot be sent is dropped, which answers it.
        let _ = self.requests.send(request);
    }

    fn answered(self: &Arc<Self>, answer: &Answer) {
        let mut waiting = self.waiting();
        let clients = std::mem::take(&mut waiting.now);
        waiting.now = std::mem::take(&mut waiting.next);
        waiting.is_asked = !waiting.now.is_empty();
        let is_asked = waiting.is_asked;
        drop(waiting);
        for client in clients {
            // Whoever went away has no use for it.
            let _ = client.send(answer.clone());
        }
        if is_asked {
            self.request();
        }
    }

    fn waiting(&self) -> MutexGuard<'_, Waiting> {
        // Each change is whole.
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Ticket {
    fn answer(&mut self, answer: &Answer) {
        if let Some(desk) = self.0.take() {
            desk.answered(answer);
        }
    }
}

impl Drop for Ticket {
    fn drop(&mut self) {
        self.answer(&Err("the daemon ends; ask again when it runs".to_owned()));
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::channel;

    use super::*;

    #[test]
    fn there_is_one_snapshot_at_a_time_and_the_next_is_shared() {
        let (sender, requests) = channel();
        let desk = Desk::new(sender);
        let (mut first, mut second, mut third) = (desk.ask(), desk.ask(), desk.ask());
        let request = requests.try_recv().expect("one request");
        assert!(requests.try_recv().is_err(), "and no other");
        (request.answer)(Ok("a.pb".to_owned()));
        assert_eq!(first.try_recv(), Ok(Ok("a.pb".to_owned())));
        assert!(second.try_recv().is_err(), "it asked later");
        let request = requests.try_recv().expect("the next one");
        (request.answer)(Ok("b.pb".to_owned()));
        let next = Ok(Ok("b.pb".to_owned()));
        assert_eq!((second.try_recv(), third.try_recv()), (next.clone(), next));

        let mut later = desk.ask();
        let request = requests.try_recv().expect("another one");
        (request.answer)(Err("the disk is full".to_owned()));
        assert_eq!(later.try_recv(), Ok(Err("the disk is full".to_owned())));
    }

    #[test]
    fn a_daemon_that_ends_answers() {
        let (sender, requests) = channel();
        let desk = Desk::new(sender);
        let mut dropped = desk.ask();
        drop(requests.try_recv().expect("a request"));
        assert!(dropped.try_recv().expect("told").is_err());
        drop(requests);
        assert!(desk.ask().try_recv().expect("told").is_err());
    }
}
