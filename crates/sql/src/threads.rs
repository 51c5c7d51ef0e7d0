//! Threads on which queries run.

use std::future::Future;
use std::sync::Mutex;
use std::sync::PoisonError;

use tokio::runtime::Builder;
use tokio::runtime::Runtime;
use tokio::task::JoinError;
use tokio::task::JoinHandle;

/// Plans are trees that are walked and dropped recursively, and the text of a query decides how
/// deep they are. The system gives out the pages of a stack only as they are used.
const STACK_BYTES: usize = 64 << 20;

/// A runtime of their own: planning and computing hold a thread for long. It starts with the first
/// query, for most servers never see one.
#[derive(Debug)]
pub(crate) struct Threads {
    count: usize,
    runtime: Mutex<Option<Runtime>>,
}

/// A task that ends when nobody waits for it any more.
#[derive(Debug)]
pub(crate) struct Task<T> {
    handle: JoinHandle<T>,
}

impl Threads {
    pub(crate) fn new(count: usize) -> Self {
        Self {
            count: count.max(1),
            runtime: Mutex::new(None),
        }
    }

    /// # Errors
    /// When the system gives no threads.
    pub(crate) fn spawn<T: Send + 'static>(
        &self,
        work: impl Future<Output = T> + Send + 'static,
    ) -> std::io::Result<Task<T>> {
        let mut runtime = self.runtime.lock().unwrap_or_else(PoisonError::into_inner);
        let runtime = match &mut *runtime {
            Some(runtime) => runtime,
            none => none.insert(self.start()?),
        };
        Ok(Task {
            handle: runtime.spawn(work),
        })
    }

    fn start(&self) -> std::io::Result<Runtime> {
        Builder::new_multi_thread()
            .worker_threads(self.count)
            .thread_name("candela-sql")
            .thread_stack_size(STACK_BYTES)
            .enable_all()
            .build()
    }
}

impl<T> Task<T> {
    /// What comes of it. When this future is dropped, the task stops at its next await.
    pub(crate) async fn outcome(mut self) -> Result<T, JoinError> {
        (&mut self.handle).await
    }
}

impl<T> Drop for Task<T> {
    fn drop(&mut self) {
        self.handle.abort();
    }
}

impl Drop for Threads {
    fn drop(&mut self) {
        // The last owner may be a task of another runtime, which must not block.
        let runtime = self
            .runtime
            .get_mut()
            .unwrap_or_else(PoisonError::into_inner);
        if let Some(runtime) = runtime.take() {
            runtime.shutdown_background();
        }
    }
}
