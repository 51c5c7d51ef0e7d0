//! Ctrl-C and SIGTERM.

use std::process;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering;
use std::time::Duration;
use std::time::Instant;

use tokio::runtime::Runtime;
use tokio::signal::unix::SignalKind;
use tokio::signal::unix::signal;

use crate::errors::CliError;
use crate::errors::Context;
use crate::errors::ExitStatus;

/// `timeout` sends its signal to the program and to its group, so that the program gets it twice: that is one wish. Nobody's
/// fingers are as quick.
const SAME_WISH: Duration = Duration::from_millis(100);

/// A wish to stop, watched from the moment this is made.
#[cfg(feature = "agent")]
pub(crate) struct StopSignal {
    runtime: Runtime,
    stopped: tokio::sync::oneshot::Receiver<()>,
    flag: Arc<AtomicBool>,
}

/// Completes at the first Ctrl-C or SIGTERM; a second one ends the process at once, for whoever does
/// not want to wait until everything is put away. The handlers are in place when this returns, so that
/// a signal during start is not lost. Must be called, and polled, inside a runtime.
pub(crate) fn stopped() -> Result<impl Future<Output = ()> + Send + 'static, CliError> {
    let what = "cannot watch for signals";
    let mut interrupt = signal(SignalKind::interrupt()).or_exit(ExitStatus::Failed, what)?;
    let mut terminate = signal(SignalKind::terminate()).or_exit(ExitStatus::Failed, what)?;
    let mut next = async move || {
        let kind = tokio::select! {
            _ = interrupt.recv() => SignalKind::interrupt(),
            _ = terminate.recv() => SignalKind::terminate(),
        };
        (kind, Instant::now())
    };
    Ok(async move {
        let (first, at) = next().await;
        tokio::spawn(async move {
            loop {
                if !is_same_wish((first, at), next().await) {
                    process::exit(ExitStatus::Interrupted as i32);
                }
            }
        });
    })
}

fn is_same_wish((first, at): (SignalKind, Instant), (kind, now): (SignalKind, Instant)) -> bool {
    kind == first && now.duration_since(at) <= SAME_WISH
}

/// The same for commands that have no runtime of their own.
#[cfg(feature = "agent")]
pub(crate) fn stop_signal() -> Result<StopSignal, CliError> {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(1)
        .enable_all()
        .build()
        .or_exit(ExitStatus::Failed, "cannot start threads")?;
    let (sender, stopped_receiver) = tokio::sync::oneshot::channel();
    let flag = Arc::new(AtomicBool::new(false));
    let watched = Arc::clone(&flag);
    let entered = runtime.enter();
    let stopped = stopped()?;
    drop(entered);
    runtime.spawn(async move {
        stopped.await;
        watched.store(true, Ordering::SeqCst);
        // Nobody may be waiting: `record` looks at the flag.
        let _ = sender.send(());
    });
    Ok(StopSignal {
        runtime,
        stopped: stopped_receiver,
        flag,
    })
}

#[cfg(feature = "agent")]
impl StopSignal {
    /// Blocks until the signal. The value must live on, so that a second signal is heeded.
    pub(crate) fn wait(&mut self) {
        // The sender lives as long as the runtime does, so this ends with the signal only.
        let _ = self.runtime.block_on(&mut self.stopped);
    }

    /// Becomes true with the signal, while this value lives.
    pub(crate) fn flag(&self) -> Arc<AtomicBool> {
        Arc::clone(&self.flag)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_signal_that_comes_twice_at_once_is_one_wish() {
        let at = Instant::now();
        let first = (SignalKind::terminate(), at);
        let soon = at + SAME_WISH;
        assert!(is_same_wish(first, (SignalKind::terminate(), soon)));
        assert!(!is_same_wish(first, (SignalKind::interrupt(), soon)));
        let later = soon + Duration::from_millis(1);
        assert!(!is_same_wish(first, (SignalKind::terminate(), later)));
    }
}
