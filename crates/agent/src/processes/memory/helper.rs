//! A thread beside each of ours that reads memory does the reading, and is left behind when it does not come back.

use std::cell::RefCell;
use std::io;
use std::sync::Arc;
use std::sync::LazyLock;
use std::sync::Mutex;
use std::sync::MutexGuard;
use std::sync::PoisonError;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering;
use std::sync::mpsc::Receiver;
use std::sync::mpsc::RecvTimeoutError;
use std::sync::mpsc::Sender;
use std::sync::mpsc::channel;
use std::time::Duration;
use std::time::Instant;

use hashbrown::HashMap;

/// How long a read may take. Pages that were swapped out come back in milliseconds.
const PATIENCE: Duration = Duration::from_secs(2);

/// How long a user's processes are left alone after one of them did not answer.
const PENALTY: Duration = Duration::from_secs(600);

/// How many users' pages may be waited for, each by a thread, before nobody's are read.
const MOST_STUCK: usize = 8;

static LEFT_ALONE: LazyLock<LeftAlone> = LazyLock::new(LeftAlone::default);

thread_local! {
    static READER: RefCell<Reader> = RefCell::default();
}

/// What one of our threads reads memory with.
#[derive(Debug)]
struct Reader {
    helper: Option<Sender<Request>>,
    left_alone: LeftAlone,
}

/// Users with a process that did not answer.
type LeftAlone = Arc<Mutex<HashMap<u32, Silence>>>;

#[derive(Clone, Copy, Debug)]
struct Silence {
    since: Instant,
    /// A thread still waits.
    goes_on: bool,
}

pub(super) type Work = Box<dyn FnOnce() -> io::Result<Vec<u8>> + Send>;

struct Request {
    work: Work,
    answers: Sender<io::Result<Vec<u8>>>,
    /// Set by whichever comes first: the helper when it has read, the caller when it gives up.
    is_over: Arc<AtomicBool>,
    user: u32,
    left_alone: LeftAlone,
}

/// Does the work, or gives up when it takes too long and leaves this user alone from then on.
///
/// # Errors
/// The work's own; `TimedOut`.
pub(super) fn run(user: u32, work: Work) -> io::Result<Vec<u8>> {
    READER.with_borrow_mut(|reader| reader.run(user, PATIENCE, work))
}

// === impl Reader ===

impl Default for Reader {
    fn default() -> Self {
        Self {
            helper: None,
            left_alone: Arc::clone(&LEFT_ALONE),
        }
    }
}

impl Reader {
    fn run(&mut self, user: u32, patience: Duration, work: Work) -> io::Result<Vec<u8>> {
        if must_leave_alone(&self.left_alone, user) {
            return Err(io::ErrorKind::TimedOut.into());
        }
        let (answers, answer) = channel();
        let is_over = Arc::new(AtomicBool::new(false));
        let request = Request {
            work,
            answers,
            is_over: Arc::clone(&is_over),
            user,
            left_alone: Arc::clone(&self.left_alone),
        };
        let helper = match self.helper.take() {
            Some(helper) => helper,
            None => start_helper()?,
        };
        let gone = || io::Error::other("the thread that reads memory has ended");
        helper.send(request).map_err(|_| gone())?;
        let in_time = answer.recv_timeout(patience);
        let is_late = matches!(in_time, Err(RecvTimeoutError::Timeout));
        if is_late && !is_over.swap(true, Ordering::AcqRel) {
            let since = Instant::now();
            let silence = Silence {
                since,
                goes_on: true,
            };
            lock(&self.left_alone).insert(user, silence);
            tracing::warn!(
                user,
                "memory of a process is not read: a page did not come within {patience:?}"
            );
            return Err(io::ErrorKind::TimedOut.into());
        }
        let result = in_time.or_else(|_| answer.recv()).map_err(|_| gone())?;
        self.helper = Some(helper);
        result
    }
}

fn must_leave_alone(left_alone: &LeftAlone, user: u32) -> bool {
    let mut left_alone = lock(left_alone);
    left_alone.retain(|_, silence| silence.goes_on || silence.since.elapsed() < PENALTY);
    let stuck = left_alone.values().filter(|silence| silence.goes_on);
    stuck.count() >= MOST_STUCK || left_alone.contains_key(&user)
}

fn lock(left_alone: &LeftAlone) -> MutexGuard<'_, HashMap<u32, Silence>> {
    left_alone.lock().unwrap_or_else(PoisonError::into_inner)
}

fn start_helper() -> io::Result<Sender<Request>> {
    let (sender, requests) = channel();
    std::thread::Builder::new()
        .name("candela-memory".to_owned())
        .spawn(move || serve(&requests))?;
    Ok(sender)
}

fn serve(requests: &Receiver<Request>) {
    for request in requests {
        let result = (request.work)();
        if request.is_over.swap(true, Ordering::AcqRel) {
            // Late: another thread has taken our place.
            if let Some(silence) = lock(&request.left_alone).get_mut(&request.user) {
                silence.goes_on = false;
            }
            return;
        }
        let _ = request.answers.send(result);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LONG: Duration = Duration::from_secs(60);

    #[test]
    fn who_does_not_answer_is_left_alone_until_long_after_it_does() {
        let left_alone = LeftAlone::default();
        let mut reader = Reader {
            helper: None,
            left_alone: Arc::clone(&left_alone),
        };
        let at_once = || Box::new(|| Ok(vec![7_u8])) as Work;
        let (release, released) = channel::<()>();
        let never: Work = Box::new(move || {
            let _ = released.recv();
            Ok(Vec::new())
        });
        let error = reader.run(1, Duration::from_millis(1), never);
        let error = error.expect_err("it does not answer");
        assert_eq!(error.kind(), io::ErrorKind::TimedOut);
        assert!(lock(&left_alone)[&1].goes_on);
        assert!(reader.run(1, LONG, at_once()).is_err(), "the same user");
        let of_another = reader.run(2, LONG, at_once()).expect("another user");
        assert_eq!(of_another, [7]);

        drop(release);
        let deadline = Instant::now() + LONG;
        while lock(&left_alone)[&1].goes_on {
            assert!(Instant::now() < deadline, "it came back unnoticed");
            std::thread::yield_now();
        }
        assert!(reader.run(1, LONG, at_once()).is_err(), "for ten minutes");
        for user in 10..10 + MOST_STUCK as u32 {
            let since = Instant::now();
            let silence = Silence {
                since,
                goes_on: true,
            };
            lock(&left_alone).insert(user, silence);
        }
        assert!(
            reader.run(2, LONG, at_once()).is_err(),
            "too many threads wait"
        );
    }
}
