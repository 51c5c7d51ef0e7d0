//! The port of a daemon that runs: taken when it can be, and what is asked there.

use std::sync::mpsc::Receiver;
use std::sync::mpsc::Sender;
use std::sync::mpsc::channel;
use std::time::Duration;

use crate::daemon::SnapshotAnswer;
use crate::daemon::SnapshotRequest;
use crate::perfetto::trigger_port::ObjectNames;
use crate::perfetto::trigger_port::TriggerPortOptions;
use crate::perfetto::trigger_port::desk::Desk;
use crate::perfetto::trigger_port::routes::Counter;
use crate::perfetto::trigger_port::server::TriggerServer;

/// A program that has the port may end, such as the agent before this one.
const RETRY: Duration = Duration::from_secs(5);

/// Keeps the port. Without it the daemon goes on: snapshots are asked for through the server, too.
pub(crate) struct PortKeeper {
    options: TriggerPortOptions,
    names: ObjectNames,
    patience: Duration,
    sender: Sender<SnapshotRequest>,
    requests: Receiver<SnapshotRequest>,
    server: Option<TriggerServer>,
    next_try: Duration,
    problem: Option<String>,
}

impl PortKeeper {
    /// A port whose snapshots may take so long.
    pub(crate) fn new(options: TriggerPortOptions, names: ObjectNames, patience: Duration) -> Self {
        let (sender, requests) = channel();
        Self {
            options,
            names,
            patience,
            sender,
            requests,
            server: None,
            next_try: Duration::ZERO,
            problem: None,
        }
    }

    /// Takes the port if it is not ours yet.
    pub(crate) fn keep(&mut self, now: Duration) {
        if self.server.is_some() || now < self.next_try {
            return;
        }
        self.next_try = now + RETRY;
        let counter = Counter {
            desk: Desk::new(self.sender.clone()),
            names: self.names.clone(),
            patience: self.patience,
        };
        let problem = match TriggerServer::start(&self.options, counter) {
            Ok(server) => {
                self.server = Some(server);
                None
            }
            Err(error) => Some(error.to_string()),
        };
        if let Some(problem) = problem.as_ref().filter(|_| problem != self.problem) {
            tracing::warn!("{problem}");
        }
        self.problem = problem;
    }

    /// What stands in the way of having the port.
    pub(crate) fn problem(&self) -> Option<&str> {
        self.problem.as_deref()
    }

    /// Somebody who has asked for a snapshot.
    pub(crate) fn next(&self) -> Option<SnapshotAnswer> {
        let request = self.requests.try_recv().ok()?;
        Some(request.answer)
    }
}
