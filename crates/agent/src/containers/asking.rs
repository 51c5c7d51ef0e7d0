//! Asking the runtimes, one after the other, and looking for what the API server has told.

use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use candela_ebpf::monotonic_ns;
use hashbrown::HashSet;
use tokio::sync::mpsc::Receiver;
use tokio::time::Instant;
use tokio::time::sleep_until;
use tokio::time::timeout;

use crate::containers::answers::Answers;
use crate::containers::answers::Finding;
use crate::containers::cri;
use crate::containers::docker;
use crate::containers::error::RuntimeError;
use crate::containers::facts::ContainerFacts;
use crate::containers::kubernetes::KubernetesOptions;
use crate::containers::pods::Pods;
use crate::containers::question::Question;
use crate::containers::socket::ContainerSocket;
use crate::ledger::DropReason;
use crate::ledger::Ledger;

/// How long one runtime may take for one container, and the API server to tell of it.
const PATIENCE: Duration = Duration::from_secs(2);

/// How long a runtime is left alone that has not answered: each container would wait for it anew.
const REST: Duration = Duration::from_secs(30);

/// How long it is remembered that nobody knows a container, or all of it, nanoseconds.
const UNKNOWN_FOR_NS: u64 = 60_000_000_000;

/// More containers without names are not counted.
const MOST_COUNTED: usize = 4096;

/// Answers that the API server is waited for at a time; further questions wait in their queue.
const MOST_WAITING: usize = 256;

/// Asks for containers as they are met.
#[derive(Debug)]
pub(super) struct Asking {
    runtimes: Vec<Runtime>,
    kubernetes: KubernetesOptions,
    answers: Arc<Answers>,
    ledger: Arc<Ledger>,
    /// Those whose names are counted as missing.
    counted: HashSet<String>,
}

#[derive(Debug)]
struct Runtime {
    socket: ContainerSocket,
    /// How long it may take for one container.
    patience: Duration,
    rests_until: Option<Instant>,
    has_warned: bool,
}

/// A container that the runtimes were asked for. The API server may tell of its pod in a moment: of a start it hears
/// later than we do.
#[derive(Debug)]
struct Asked {
    question: Question,
    of_runtime: Option<ContainerFacts>,
    /// Whether a runtime has not answered.
    has_failed: bool,
    until: Instant,
}

// === impl Asking ===

impl Asking {
    pub(super) fn new(
        sockets: Vec<ContainerSocket>,
        kubernetes: KubernetesOptions,
        answers: Arc<Answers>,
        ledger: Arc<Ledger>,
    ) -> Self {
        let runtimes = sockets.into_iter().map(|socket| Runtime {
            socket,
            patience: PATIENCE,
            rests_until: None,
            has_warned: false,
        });
        Self {
            runtimes: runtimes.collect(),
            kubernetes,
            answers,
            ledger,
            counted: HashSet::new(),
        }
    }

    /// Until nobody can ask any more.
    pub(super) async fn run(mut self, mut questions: Receiver<Question>) {
        let mut pods = Pods::watch(&self.kubernetes);
        // In the order in which they end.
        let mut waiting: Vec<Asked> = Vec::new();
        loop {
            let end = waiting
                .first()
                .map_or_else(Instant::now, |asked| asked.until);
            let question = tokio::select! {
                question = questions.recv(), if waiting.len() < MOST_WAITING => match question {
                    Some(question) => Some(question),
                    None => return,
                },
                () = pods.changed() => None,
                () = sleep_until(end), if !waiting.is_empty() => None,
            };
            if let Some(question) = question {
                waiting.push(self.ask_runtimes(question).await);
            }
            waiting.retain(|asked| !self.answer(asked, &pods));
        }
    }

    async fn ask_runtimes(&mut self, question: Question) -> Asked {
        let mut asked = Asked {
            question,
            of_runtime: None,
            has_failed: false,
            until: Instant::now(),
        };
        for runtime in &mut self.runtimes {
            let id = &asked.question.container_id;
            match runtime.ask(id, &self.kubernetes).await {
                Ok(None) => {}
                Err(()) => asked.has_failed = true,
                Ok(facts) => {
                    asked.of_runtime = facts;
                    break;
                }
            }
        }
        asked.until = Instant::now() + PATIENCE;
        asked
    }

    /// Answers what can be answered, or need not be waited for any longer; `false` where it may be in a moment.
    fn answer(&mut self, asked: &Asked, pods: &Pods) -> bool {
        let (of_pod, is_late) = match pods.find(&asked.question) {
            Poll::Ready(of_pod) => (of_pod, false),
            Poll::Pending if Instant::now() < asked.until => return false,
            Poll::Pending => (pods.find_pod(&asked.question), true),
        };
        let again_ns = monotonic_ns().saturating_add(UNKNOWN_FOR_NS);
        let finding = match together(asked.of_runtime.clone(), of_pod) {
            Some(facts) if is_late || facts.name.is_empty() => Finding::Partly {
                facts: Arc::new(facts),
                again_ns,
            },
            Some(facts) => Finding::Known(Arc::new(facts)),
            None => {
                self.count_unnamed(asked, is_late);
                Finding::Unknown { again_ns }
            }
        };
        self.answers.set(&asked.question.container_id, finding);
        true
    }

    /// Where all who are asked answer and none knows it, there is no name to be had.
    fn count_unnamed(&mut self, asked: &Asked, is_late: bool) {
        let is_lost = asked.has_failed || (is_late && asked.question.pod_uid.is_some());
        if !is_lost || self.counted.len() >= MOST_COUNTED {
            return;
        }
        if self.counted.insert(asked.question.container_id.clone()) {
            self.ledger.add(DropReason::ContainerUnnamed, 1);
        }
    }
}

fn together(
    of_runtime: Option<ContainerFacts>,
    of_pod: Option<ContainerFacts>,
) -> Option<ContainerFacts> {
    match (of_runtime, of_pod) {
        (Some(of_runtime), Some(of_pod)) => Some(of_runtime.with_pod(of_pod)),
        (of_runtime, of_pod) => of_runtime.or(of_pod),
    }
}

// === impl Runtime ===

impl Runtime {
    /// `Err` when it has not answered, which was said.
    async fn ask(
        &mut self,
        id: &str,
        kubernetes: &KubernetesOptions,
    ) -> Result<Option<ContainerFacts>, ()> {
        if self.rests_until.is_some_and(|until| Instant::now() < until) {
            return Err(());
        }
        if std::fs::symlink_metadata(self.socket.path()).is_err() {
            return Ok(None);
        }
        let asked = async {
            match &self.socket {
                ContainerSocket::Docker(path) => docker::ask(path, id).await,
                ContainerSocket::Cri(path) => cri::ask(path, id, kubernetes).await,
            }
        };
        let answer = timeout(self.patience, asked).await;
        let error = match answer.unwrap_or(Err(RuntimeError::Late(self.patience))) {
            Ok(facts) => {
                // Should it fail again, that is news.
                self.has_warned = false;
                return Ok(facts);
            }
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

#[cfg(test)]
mod tests {
    use std::io::Read;
    use std::io::Write;
    use std::os::unix::net::UnixListener;

    use super::*;

    const NO_CONTAINER: &str = "HTTP/1.1 404 Not Found\r\ncontent-length: 0\r\n\r\n";

    #[test]
    fn a_runtime_that_fails_again_is_warned_of_again() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("docker.sock");
        let listener = UnixListener::bind(&path).expect("a new socket");
        let answers = ["", NO_CONTAINER, ""];
        let server = std::thread::spawn(move || {
            for answer in answers {
                let (mut connection, _) = listener.accept().expect("it is asked");
                let mut request = [0; 1024];
                let count = connection.read(&mut request).expect("a request");
                assert!(request[..count].starts_with(b"GET /containers/ab/json"));
                connection.write_all(answer.as_bytes()).expect("it listens");
            }
        });
        let mut runtime = Runtime {
            socket: ContainerSocket::Docker(path),
            patience: Duration::from_secs(60),
            rests_until: None,
            has_warned: false,
        };
        let kubernetes = KubernetesOptions::default();
        let tokio = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .expect("a runtime");
        for answer in answers {
            runtime.rests_until = None;
            let asked = tokio.block_on(runtime.ask("ab", &kubernetes));
            let has_failed = answer.is_empty();
            assert_eq!(asked.is_err(), has_failed);
            assert_eq!(runtime.has_warned, has_failed);
        }
        server.join().expect("it has answered");
    }
}
