//! Asking the runtimes, one after the other.

use std::sync::Arc;
use std::time::Duration;

use candela_ebpf::monotonic_ns;
use hashbrown::HashSet;
use tokio::sync::mpsc::Receiver;
use tokio::time::Instant;
use tokio::time::timeout;

use crate::containers::answers::Answers;
use crate::containers::answers::Finding;
use crate::containers::cri;
use crate::containers::docker;
use crate::containers::error::RuntimeError;
use crate::containers::facts::ContainerFacts;
use crate::containers::socket::ContainerSocket;
use crate::ledger::DropReason;
use crate::ledger::Ledger;

/// How long one runtime may take for one container.
const PATIENCE: Duration = Duration::from_secs(2);

/// How long a runtime is left alone that has not answered: each container would wait for it anew.
const REST: Duration = Duration::from_secs(30);

/// How long it is remembered that no runtime knows a container, nanoseconds.
const UNKNOWN_FOR_NS: u64 = 60_000_000_000;

/// More containers without names are not counted.
const MOST_COUNTED: usize = 4096;

/// Asks for containers whose ids come.
#[derive(Debug)]
pub(super) struct Asking {
    runtimes: Vec<Runtime>,
    answers: Arc<Answers>,
    ledger: Arc<Ledger>,
    /// Those whose names are counted as missing.
    counted: HashSet<String>,
}

#[derive(Debug)]
struct Runtime {
    socket: ContainerSocket,
    rests_until: Option<Instant>,
    has_warned: bool,
}

// === impl Asking ===

impl Asking {
    pub(super) fn new(
        sockets: Vec<ContainerSocket>,
        answers: Arc<Answers>,
        ledger: Arc<Ledger>,
    ) -> Self {
        let runtimes = sockets.into_iter().map(|socket| Runtime {
            socket,
            rests_until: None,
            has_warned: false,
        });
        Self {
            runtimes: runtimes.collect(),
            answers,
            ledger,
            counted: HashSet::new(),
        }
    }

    /// Until nobody can ask any more.
    pub(super) async fn run(mut self, mut ids: Receiver<String>) {
        while let Some(id) = ids.recv().await {
            let finding = match self.ask(&id).await {
                Some(facts) => Finding::Known(Arc::new(facts)),
                None => Finding::Unknown {
                    again_ns: monotonic_ns().saturating_add(UNKNOWN_FOR_NS),
                },
            };
            self.answers.set(&id, finding);
        }
    }

    async fn ask(&mut self, id: &str) -> Option<ContainerFacts> {
        let mut has_failed = false;
        for runtime in &mut self.runtimes {
            match runtime.ask(id).await {
                Ok(Some(facts)) => return Some(facts),
                Ok(None) => {}
                Err(()) => has_failed = true,
            }
        }
        // Where all runtimes answer and none knows it, there is no name to be had.
        if has_failed && self.counted.len() < MOST_COUNTED && self.counted.insert(id.to_owned()) {
            self.ledger.add(DropReason::ContainerUnnamed, 1);
        }
        None
    }
}

// === impl Runtime ===

impl Runtime {
    /// `Err` when it has not answered, which was said.
    async fn ask(&mut self, id: &str) -> Result<Option<ContainerFacts>, ()> {
        if self.rests_until.is_some_and(|until| Instant::now() < until) {
            return Err(());
        }
        if std::fs::symlink_metadata(self.socket.path()).is_err() {
            return Ok(None);
        }
        let asked = async {
            match &self.socket {
                ContainerSocket::Docker(path) => docker::ask(path, id).await,
                ContainerSocket::Cri(path) => cri::ask(path, id).await,
            }
        };
        let answer = timeout(PATIENCE, asked).await;
        let error = match answer.unwrap_or(Err(RuntimeError::Late(PATIENCE))) {
            Ok(facts) => return Ok(facts),
            Err(error) => error,
        };
        self.rests_until = Some(Instant::now() + REST);
        if !self.has_warned {
            self.has_warned = true;
            tracing::warn!(socket = %self.socket, %error, "a container runtime does not tell the names of containers");
        }
        tracing::debug!(socket = %self.socket, %error, id, "container not named");
        Err(())
    }
}
