//! Labels of processes, with what container runtimes tell of them once they do.

use std::sync::Arc;
use std::time::Instant;

use candela_model::Labels;

use crate::containers::Containers;
use crate::containers::Finding;
use crate::containers::Question;
use crate::labels::Labeler;
use crate::labels::ProcessFacts;

/// Names processes; it never waits for a container runtime.
#[derive(Debug)]
pub(crate) struct Namer {
    labeler: Labeler,
    containers: Containers,
}

/// The labels of a process as far as they are known.
#[derive(Clone, Debug)]
pub(crate) struct Named {
    pub(crate) labels: Arc<Labels>,
    /// Set while a runtime is being asked.
    pub(crate) unsettled: Option<Arc<Unsettled>>,
    /// When they may be better because runtimes are asked again (CLOCK_MONOTONIC, nanoseconds).
    pub(crate) again_ns: u64,
}

/// Labels that lack what a container runtime is being asked for.
#[derive(Debug)]
pub(crate) struct Unsettled {
    namer: Arc<Namer>,
    facts: ProcessFacts,
    /// The answers that there were when it was asked.
    answers: u64,
}

// === impl Namer ===

impl Namer {
    pub(crate) fn new(labeler: Labeler, containers: Containers) -> Arc<Self> {
        Arc::new(Self {
            labeler,
            containers,
        })
    }

    pub(crate) fn labeler(&self) -> &Labeler {
        &self.labeler
    }

    /// The labels of a process as far as they are known now.
    pub(crate) fn name(self: &Arc<Self>, mut facts: ProcessFacts, now_ns: u64) -> Named {
        // Before the look for an answer: one that comes in between is not missed.
        let answers = self.containers.answers();
        let finding = question(&facts).map(|question| self.containers.find(question, now_ns));
        let mut again_ns = u64::MAX;
        match &finding {
            Some(Finding::Known(container)) => facts.container = Some(Arc::clone(container)),
            Some(Finding::Partly {
                facts: container,
                again_ns: again,
            }) => {
                facts.container = Some(Arc::clone(container));
                again_ns = *again;
            }
            Some(Finding::Unknown { again_ns: again }) => again_ns = *again,
            Some(Finding::Awaited) | None => {}
        }
        let labels = Arc::new(self.labeler.labels(&facts));
        let unsettled = (finding == Some(Finding::Awaited)).then(|| {
            Arc::new(Unsettled {
                namer: Arc::clone(self),
                facts,
                answers,
            })
        });
        Named {
            labels,
            unsettled,
            again_ns,
        }
    }

    /// The labels of a process once the runtimes have answered, or as they are at the deadline.
    pub(crate) fn settled(
        self: &Arc<Self>,
        facts: ProcessFacts,
        now_ns: u64,
        deadline: Instant,
    ) -> Arc<Labels> {
        let named = self.name(facts, now_ns);
        let settled = named.unsettled.map(|unsettled| unsettled.settled(deadline));
        settled.unwrap_or(named.labels)
    }
}

// === impl Unsettled ===

impl Unsettled {
    /// The labels, if there may be something new.
    pub(crate) fn named_again(&self, now_ns: u64) -> Option<Named> {
        if self.namer.containers.answers() == self.answers {
            return None;
        }
        Some(self.namer.name(self.facts.clone(), now_ns))
    }

    /// The labels once the runtimes have answered, or as they are at the deadline.
    pub(crate) fn settled(&self, deadline: Instant) -> Arc<Labels> {
        let mut facts = self.facts.clone();
        let id = facts.cgroup.container_id.as_deref().unwrap_or_default();
        let finding = self.namer.containers.wait(id, deadline);
        if let Some(
            Finding::Known(container)
            | Finding::Partly {
                facts: container, ..
            },
        ) = finding
        {
            facts.container = Some(container);
        }
        Arc::new(self.namer.labeler.labels(&facts))
    }
}

fn question(facts: &ProcessFacts) -> Option<Question> {
    Some(Question {
        container_id: facts.cgroup.container_id.clone()?,
        pod_uid: facts.cgroup.pod_uid.clone(),
    })
}
