//! The one signal that threads and tasks of a daemon end by.

use std::sync::Arc;
use std::sync::Condvar;
use std::sync::Mutex;
use std::sync::PoisonError;
use std::time::Duration;

use tokio::sync::Notify;

/// Set once, for all that hold a copy.
#[derive(Clone, Debug, Default)]
pub struct Stop(Arc<Signal>);

#[derive(Debug, Default)]
struct Signal {
    is_set: Mutex<bool>,
    /// For threads.
    condition: Condvar,
    /// For tasks.
    notify: Notify,
}

impl Stop {
    /// Asks everybody to end.
    pub fn set(&self) {
        *self.0.is_set.lock().unwrap_or_else(PoisonError::into_inner) = true;
        self.0.condition.notify_all();
        self.0.notify.notify_waiters();
    }

    /// Whether everybody was asked to end.
    #[must_use]
    pub fn is_set(&self) -> bool {
        *self.0.is_set.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits so long at most, and says whether everybody was asked to end.
    #[must_use]
    pub fn wait_timeout(&self, timeout: Duration) -> bool {
        let is_set = self.0.is_set.lock().unwrap_or_else(PoisonError::into_inner);
        let waited = self
            .0
            .condition
            .wait_timeout_while(is_set, timeout, |is_set| !*is_set);
        let (is_set, _) = waited.unwrap_or_else(PoisonError::into_inner);
        *is_set
    }

    /// Ends when everybody was asked to end.
    pub async fn wait(&self) {
        // Before the look at the flag: what is set in between wakes it.
        let notified = self.0.notify.notified();
        if self.is_set() {
            return;
        }
        notified.await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn threads_and_tasks_are_woken() {
        let stop = Stop::default();
        assert!(!stop.wait_timeout(Duration::ZERO));
        let (of_thread, of_task) = (stop.clone(), stop.clone());
        let thread = std::thread::spawn(move || of_thread.wait_timeout(Duration::from_secs(60)));
        let task = std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().build();
            runtime.expect("a runtime").block_on(of_task.wait());
        });
        stop.set();
        assert!(thread.join().expect("it ends"));
        task.join().expect("it ends");
        assert!(stop.is_set());
    }
}
