//! The thread that asks container runtimes and the API server, and its handle.

use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Instant;

use tokio::sync::mpsc;
use tokio::sync::oneshot;

use crate::containers::answers::Answers;
use crate::containers::answers::Finding;
use crate::containers::asking::Asking;
use crate::containers::kubernetes::KubernetesOptions;
use crate::containers::pods::Pods;
use crate::containers::question::Question;
use crate::containers::socket::ContainerSocket;
use crate::cost::ThreadClocks;
use crate::error::AgentError;
use crate::ledger::Ledger;

const THREAD: &str = "candela-places";

/// Containers that wait to be asked for. What finds no room is asked for with a later sample.
const QUEUE: usize = 256;

/// When that is, nanoseconds: later than whoever is asked at that time may take.
const AGAIN_NS: u64 = 3_000_000_000;

/// Finds what container runtimes and the API server tell. Nothing here waits for them but [`wait`](Self::wait).
#[derive(Debug)]
pub(crate) struct Containers {
    answers: Arc<Answers>,
    /// None where nobody is asked.
    asker: Option<Asker>,
}

#[derive(Debug)]
struct Asker {
    questions: mpsc::Sender<Question>,
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

// === impl Containers ===

impl Containers {
    /// Nobody is asked, and nothing known.
    pub(crate) fn none() -> Self {
        Self {
            answers: Arc::default(),
            asker: None,
        }
    }

    /// Starts to ask at these sockets, and the API server of this node.
    ///
    /// # Errors
    /// [`AgentError::Thread`].
    pub(crate) fn start(
        sockets: &[ContainerSocket],
        kubernetes: &KubernetesOptions,
        ledger: Arc<Ledger>,
        clocks: Arc<ThreadClocks>,
    ) -> Result<Self, AgentError> {
        if sockets.is_empty() && !Pods::are_asked_for(kubernetes) {
            return Ok(Self::none());
        }
        let refused = |source| AgentError::Thread {
            name: THREAD,
            source,
        };
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .map_err(refused)?;
        let answers = Arc::new(Answers::default());
        let (questions, receiver) = mpsc::channel(QUEUE);
        let (stop, stopped) = oneshot::channel();
        let kubernetes = kubernetes.clone();
        let asking = Asking::new(sockets.to_vec(), kubernetes, Arc::clone(&answers), ledger);
        let work = move || {
            let _counted = clocks.count_this(THREAD);
            runtime.block_on(async {
                tokio::select! {
                    _ = stopped => {}
                    () = asking.run(receiver) => {}
                }
            });
        };
        let thread = std::thread::Builder::new().name(THREAD.to_owned());
        let thread = thread.spawn(work).map_err(refused)?;
        Ok(Self {
            answers,
            asker: Some(Asker {
                questions,
                stop: Some(stop),
                thread: Some(thread),
            }),
        })
    }

    /// What is known of a container; what is not is asked for. Only the ids of real containers are: others
    /// might be names.
    pub(crate) fn find(&self, question: Question, now_ns: u64) -> Finding {
        const NEVER: Finding = Finding::Unknown { again_ns: u64::MAX };
        let Some(asker) = &self.asker else {
            return NEVER;
        };
        let id = &question.container_id;
        if id.len() != 64 || !id.bytes().all(|byte| byte.is_ascii_hexdigit()) {
            return NEVER;
        }
        let so_far = match self.answers.find(id, now_ns) {
            Some(Finding::Partly { facts, again_ns }) if again_ns <= now_ns => Some(facts),
            Some(finding) => return finding,
            None => None,
        };
        // What is known of it serves until there is more.
        let known = so_far.map(|facts| Finding::Partly {
            facts,
            again_ns: now_ns.saturating_add(AGAIN_NS),
        });
        let Ok(place) = asker.questions.try_reserve() else {
            return known.unwrap_or(Finding::Unknown {
                again_ns: now_ns.saturating_add(AGAIN_NS),
            });
        };
        let meanwhile = known.unwrap_or(Finding::Awaited);
        self.answers.ask(id, meanwhile.clone());
        place.send(question);
        meanwhile
    }

    /// Changes whenever an answer comes.
    pub(crate) fn answers(&self) -> u64 {
        self.answers.count()
    }

    /// The answer about a container that is awaited, once it is there.
    pub(crate) fn wait(&self, id: &str, deadline: Instant) -> Option<Finding> {
        self.answers.wait(id, deadline)
    }
}

impl Drop for Asker {
    fn drop(&mut self) {
        drop(self.stop.take());
        if let Some(thread) = self.thread.take()
            && thread.join().is_err()
        {
            tracing::error!("the thread {THREAD} ended unexpectedly");
        }
    }
}
