//! Takes what waits in an outbox to the bucket, one after the other.

use std::sync::Arc;
use std::sync::Mutex;
use std::sync::PoisonError;
use std::thread::JoinHandle;
use std::time::Duration;

use candela_fleet::Destination;

use crate::backoff::Backoff;
use crate::backoff::spread_of;
use crate::error::DaemonError;
use crate::error::UploadError;
use crate::outbox::Outbox;
use crate::stop::Stop;
use crate::upload::ObjectSink;

const THREAD: &str = "candela-upload";
const FIRST_WAIT: Duration = Duration::from_secs(1);
/// A bucket that is back is used again after two minutes at most.
const LONGEST_WAIT: Duration = Duration::from_secs(120);

/// How uploading goes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct UploadStatus {
    /// Why the oldest file still waits; `None` when nothing is wrong.
    pub error: Option<UploadError>,
    /// The keys of the last objects, the latest last.
    pub last_keys: Vec<String>,
}

/// Keys that a status has.
const LAST_KEYS: usize = 16;

/// What a turn came to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Turn {
    /// Nothing waits.
    Empty,
    /// One is in the bucket; the next may go at once.
    Uploaded,
    /// One is not: so long to wait.
    Wait(Duration),
}

/// Uploads of one outbox.
#[derive(Debug)]
pub struct Uploader {
    outbox: Arc<Outbox>,
    sink: Arc<dyn ObjectSink>,
    destination: Destination,
    node: String,
    backoff: Backoff,
    status: Arc<Mutex<UploadStatus>>,
}

/// A thread that uploads. It ends when this is dropped.
#[derive(Debug)]
pub struct UploaderHandle {
    stop: Stop,
    status: Arc<Mutex<UploadStatus>>,
    thread: Option<JoinHandle<()>>,
}

impl Uploader {
    /// Uploads of `outbox` to `destination`, in the folder of `node`.
    #[must_use]
    pub fn new(
        outbox: Arc<Outbox>,
        sink: Arc<dyn ObjectSink>,
        destination: Destination,
        node: &str,
    ) -> Self {
        Self {
            outbox,
            sink,
            destination,
            node: node.to_owned(),
            backoff: Backoff::new(FIRST_WAIT, LONGEST_WAIT),
            status: Arc::default(),
        }
    }

    /// How it goes.
    #[must_use]
    pub fn status(&self) -> UploadStatus {
        locked(&self.status).clone()
    }

    /// Uploads the file that has waited longest. A later one never overtakes it: an hour of a bucket is read in the
    /// order of its keys, by people who think that what is there is all there was.
    pub async fn turn(&mut self, stop: &Stop) -> Turn {
        let waiting = match self.outbox.oldest_waiting() {
            Ok(Some(waiting)) => waiting,
            Ok(None) => {
                locked(&self.status).error = None;
                return Turn::Empty;
            }
            Err(error) => {
                let object = self.destination.to_string();
                let reason = error.to_string();
                return self.wait_after(UploadError::Unavailable { object, reason }, stop);
            }
        };
        let key = self.destination.object_key(&self.node, waiting.name());
        let put = self.sink.put(&key, waiting.bytes.clone());
        let put = tokio::select! {
            // What is written after a stop is not uploaded, however quick the bucket is.
            biased;
            () = stop.wait() => {
                let object = key.clone();
                Err(UploadError::Stopped { object })
            }
            put = put => put,
        };
        match put {
            Ok(()) => {
                tracing::debug!(key, "uploaded");
                self.outbox.uploaded(waiting);
                self.backoff.succeeded();
                let mut status = locked(&self.status);
                status.error = None;
                status.last_keys.push(key);
                let surplus = status.last_keys.len().saturating_sub(LAST_KEYS);
                status.last_keys.drain(..surplus);
                Turn::Uploaded
            }
            Err(error) => {
                self.outbox.not_uploaded(waiting);
                self.wait_after(error, stop)
            }
        }
    }

    fn wait_after(&mut self, error: UploadError, stop: &Stop) -> Turn {
        let is_new = locked(&self.status).error.as_ref() != Some(&error);
        if is_new && !stop.is_set() {
            tracing::warn!(%error, "a file waits on the node");
        }
        locked(&self.status).error = Some(error);
        Turn::Wait(self.backoff.failed(spread_of(&self.node)))
    }

    /// Goes on in a thread of its own.
    ///
    /// # Errors
    /// [`DaemonError::Thread`].
    pub fn spawn(self) -> Result<UploaderHandle, DaemonError> {
        let failed = |source| DaemonError::Thread {
            name: THREAD,
            source,
        };
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .map_err(failed)?;
        let stop = Stop::default();
        let status = Arc::clone(&self.status);
        let until = stop.clone();
        let thread = std::thread::Builder::new()
            .name(THREAD.to_owned())
            .spawn(move || runtime.block_on(self.run(&until)))
            .map_err(failed)?;
        Ok(UploaderHandle {
            stop,
            status,
            thread: Some(thread),
        })
    }

    async fn run(mut self, stop: &Stop) {
        while !stop.is_set() {
            match self.turn(stop).await {
                Turn::Uploaded => (),
                Turn::Empty => {
                    tokio::select! {
                        () = self.outbox.news() => (),
                        () = stop.wait() => (),
                    }
                }
                Turn::Wait(wait) => {
                    tokio::select! {
                        () = tokio::time::sleep(wait) => (),
                        () = stop.wait() => (),
                    }
                }
            }
        }
    }
}

impl UploaderHandle {
    /// How it goes.
    #[must_use]
    pub fn status(&self) -> UploadStatus {
        locked(&self.status).clone()
    }

    /// Ends it without waiting for the end.
    pub(crate) fn stop(&self) {
        self.stop.set();
    }
}

impl Drop for UploaderHandle {
    fn drop(&mut self) {
        self.stop.set();
        let thread = self.thread.take();
        if thread.is_some_and(|thread| thread.join().is_err()) {
            tracing::error!("the thread of uploads died; files wait for the next start");
        }
    }
}

fn locked(status: &Mutex<UploadStatus>) -> std::sync::MutexGuard<'_, UploadStatus> {
    // Each change is whole.
    status.lock().unwrap_or_else(PoisonError::into_inner)
}
