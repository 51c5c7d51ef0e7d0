//! A bucket for threads that may block.

use std::sync::Arc;
use std::sync::mpsc;
use std::time::Duration;

use bytes::Bytes;
use object_store::ObjectStore;
use object_store::ObjectStoreExt;
use object_store::PutMode;
use object_store::PutOptions;
use object_store::PutPayload;
use object_store::path::Path;
use tokio::runtime::Handle;
use tokio::runtime::Runtime;
use tokio::time::timeout;

use super::location::ObjectLocation;
use crate::error::StoreError;

/// How long one request may take with all its retries. The clients give up sooner by themselves;
/// this is for those that do not.
const REQUEST_LIMIT: Duration = Duration::from_secs(120);
/// Threads that move bytes; the work on them is done elsewhere.
const IO_THREADS: usize = 2;
/// Where what [`Bucket::probe`] writes is.
const PROBES: &str = "_probe";
const PROBE_CONTENT: &[u8] = b"candela writes, reads and removes this object when it starts\n";

/// A folder of a bucket, and threads of its own that talk to it: the store's threads are plain
/// ones, and a caller's runtime may end before the store does. Clones share the threads.
#[derive(Clone, Debug)]
pub(crate) struct Bucket {
    location: ObjectLocation,
    threads: Arc<IoThreads>,
    /// For messages: `s3://profiles/prod`.
    name: Arc<str>,
}

#[derive(Debug)]
struct IoThreads {
    handle: Handle,
    /// `None` only while it is dropped.
    runtime: Option<Runtime>,
}

impl Bucket {
    pub(crate) fn new(location: ObjectLocation, name: &str) -> std::io::Result<Self> {
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(IO_THREADS)
            .thread_name("candela-bucket")
            .enable_all()
            .build()?;
        let threads = IoThreads {
            handle: runtime.handle().clone(),
            runtime: Some(runtime),
        };
        Ok(Self {
            location,
            threads: Arc::new(threads),
            name: name.into(),
        })
    }

    /// The same bucket, a folder further down.
    pub(crate) fn folder(&self, relative: &str) -> Result<Self, StoreError> {
        let location = self.location.folder(relative);
        Ok(Self {
            location: location.map_err(|error| self.error("use", relative, &error.into()))?,
            threads: Arc::clone(&self.threads),
            name: format!("{}/{relative}", self.name).into(),
        })
    }

    pub(crate) fn location(&self) -> &ObjectLocation {
        &self.location
    }

    pub(crate) fn client(&self) -> Arc<dyn ObjectStore> {
        Arc::clone(&self.location.store)
    }

    /// The object at a path below the folder.
    pub(crate) fn path(&self, relative: &str) -> object_store::Result<Path> {
        Ok(self.location.path(relative)?)
    }

    /// Waits for work on the bucket. The thread blocks, so it must not be one that others count on;
    /// unlike `Runtime::block_on` it may be one of a runtime.
    pub(crate) fn run<T: Send + 'static>(
        &self,
        work: impl Future<Output = object_store::Result<T>> + Send + 'static,
    ) -> object_store::Result<T> {
        let (sender, receiver) = mpsc::sync_channel(1);
        self.threads.handle.spawn(async move {
            let result = match timeout(REQUEST_LIMIT, work).await {
                Ok(result) => result,
                Err(_) => Err(failure(&format!("no answer within {REQUEST_LIMIT:?}"))),
            };
            // Nobody waits any more only when the waiting thread is gone.
            let _ = sender.send(result);
        });
        let answer = receiver.recv();
        answer.unwrap_or_else(|_| Err(failure("the request ended in a panic")))
    }

    /// Writes an object as a whole: replacing one that is there, or only where there is none.
    pub(crate) fn put(
        &self,
        relative: &str,
        content: Bytes,
        mode: PutMode,
    ) -> object_store::Result<()> {
        let (path, client) = (self.path(relative)?, self.client());
        self.run(async move {
            let options = PutOptions::from(mode);
            let payload = PutPayload::from_bytes(content);
            client.put_opts(&path, payload, options).await.map(drop)
        })
    }

    /// Does once what the store will do, so that what is wrong shows at the start.
    pub(crate) fn probe(&self) -> Result<(), StoreError> {
        let name = format!("{PROBES}/{}", std::process::id());
        let failed = |action| {
            let name = &name;
            move |error| self.error(action, name, &error)
        };
        // First of all: some services take objects for buckets that they do not have.
        let client = self.client();
        let folder = self.path(PROBES).map_err(failed("use"))?;
        let listed = self.run(async move { client.list_with_delimiter(Some(&folder)).await });
        listed.map_err(|error| self.error("list", "", &error))?;
        let content = Bytes::from_static(PROBE_CONTENT);
        let written = self.put(&name, content, PutMode::Overwrite);
        written.map_err(failed("write"))?;
        let path = self.path(&name).map_err(failed("use"))?;
        let (client, key) = (self.client(), path.clone());
        let read = self.run(async move { client.get(&key).await?.bytes().await });
        read.map_err(failed("read"))?;
        let client = self.client();
        let removed = self.run(async move { client.delete(&path).await });
        removed.map_err(failed("remove"))
    }

    /// An object or folder as messages name it.
    pub(crate) fn place(&self, relative: &str) -> String {
        match relative {
            "" => self.name.to_string(),
            _ => format!("{}/{relative}", self.name),
        }
    }

    /// What went wrong with an object or folder, for people.
    pub(crate) fn error(
        &self,
        action: &'static str,
        relative: &str,
        error: &object_store::Error,
    ) -> StoreError {
        StoreError::Bucket {
            action,
            place: self.place(relative),
            reason: explain(error),
        }
    }
}

impl Drop for IoThreads {
    fn drop(&mut self) {
        // The last clone may be dropped on a thread of another runtime, which must not wait.
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }
}

fn failure(reason: &str) -> object_store::Error {
    object_store::Error::Generic {
        store: "bucket",
        source: reason.into(),
    }
}

/// How refusals show in errors that have no kind of their own, those of listings.
const REFUSALS: [&str; 3] = ["401 Unauthorized", "403 Forbidden", "InvalidAccessKeyId"];

/// Who is asked for keys when nobody else has any.
const METADATA_HOSTS: [&str; 3] = [
    "169.254.169.254",
    "169.254.170.2",
    "metadata.google.internal",
];

/// Whether an answer "not found" is about the bucket, and says nothing about the object.
pub(crate) fn is_bucket_missing(error: &object_store::Error) -> bool {
    let text = error.to_string();
    text.contains("NoSuchBucket") || text.contains("bucket does not exist")
}

/// The reason on one line, with what to do about it.
pub(crate) fn explain(error: &object_store::Error) -> String {
    let text = error.to_string();
    let details = text.split_whitespace().collect::<Vec<_>>().join(" ");
    let is_refused = matches!(
        error,
        object_store::Error::PermissionDenied { .. } | object_store::Error::Unauthenticated { .. }
    ) || REFUSALS.iter().any(|refusal| details.contains(refusal));
    let is_keyless = METADATA_HOSTS.iter().any(|host| details.contains(host));
    let advice = if is_keyless {
        "no keys were found in the configuration, the environment or on this machine; set them"
    } else if is_bucket_missing(error) {
        "the bucket does not exist; create it or correct its name"
    } else if is_refused {
        "the credentials are wrong or lack the right to do this; check them"
    } else if details.contains("error sending request") {
        "it cannot be reached; check the endpoint and the network"
    } else {
        return details;
    };
    format!("{advice} ({details})")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_goes_wrong_comes_with_what_to_do() {
        let cases = [
            (
                "Error performing PUT http://169.254.169.254/latest/api/token in 5s - HTTP error: error sending request",
                "no keys were found",
            ),
            (
                "Error performing GET http://minio:9000/profiles in 5s - HTTP error: error sending request",
                "it cannot be reached",
            ),
            (
                "Server returned non-2xx status code: 403 Forbidden:\n<Error>\n</Error>",
                "the credentials are wrong",
            ),
            (
                "Server returned non-2xx status code: 404 Not Found: <Code>NoSuchBucket</Code>",
                "the bucket does not exist",
            ),
        ];
        for (reason, advice) in cases {
            let explained = explain(&failure(reason));
            assert!(explained.starts_with(advice), "{explained}");
            assert!(!explained.contains('\n'), "{explained}");
        }
        assert_eq!(
            explain(&failure("500 Internal Server Error")),
            "Generic bucket error: 500 Internal Server Error"
        );
    }

    async fn broken() -> object_store::Result<()> {
        panic!("for a test")
    }

    #[test]
    fn work_may_be_waited_for_on_a_thread_of_another_runtime() {
        let location = ObjectLocation {
            store: Arc::new(object_store::memory::InMemory::new()),
            prefix: Path::default(),
        };
        let other = tokio::runtime::Builder::new_current_thread()
            .build()
            .expect("a runtime");
        other.block_on(async {
            let bucket = Bucket::new(location, "memory").expect("threads");
            bucket.probe().expect("it can be used");
            let panicked = bucket.run(broken());
            let error = panicked.expect_err("it panicked").to_string();
            assert!(error.contains("ended in a panic"), "{error}");
            bucket.probe().expect("it goes on");
        });
    }
}
