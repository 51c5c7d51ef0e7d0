//! The watch of the pods of this node, by the API server.

use std::error::Error;
use std::future::pending;
use std::pin::pin;
use std::task::Poll;

use futures::StreamExt;
use kube::Api;
use kube::Client;
use kube::Config;
use kube::core::ApiResource;
use kube::core::GroupVersionKind;
use kube::runtime::WatchStreamExt;
use kube::runtime::watcher;
use kube::runtime::watcher::Event;
use tokio::sync::watch;

use crate::containers::ContainerFacts;
use crate::containers::KubernetesOptions;
use crate::containers::pods::pod::Pod;
use crate::containers::pods::pod::PodFacts;
use crate::containers::pods::table::PodTable;
use crate::containers::question::Question;

/// The pods of this node.
#[derive(Debug)]
pub(in crate::containers) struct Pods {
    /// None where nobody is asked.
    table: Option<watch::Receiver<PodTable>>,
}

/// Writes what the API server tells into the table.
struct Follower {
    options: KubernetesOptions,
    table: watch::Sender<PodTable>,
    /// What is told anew after the watch was lost, until it is all there.
    listed: PodTable,
    has_warned: bool,
}

// === impl Pods ===

impl Pods {
    /// Whether the API server would be asked.
    pub(in crate::containers) const fn are_asked_for(options: &KubernetesOptions) -> bool {
        options.node.is_some()
    }

    /// Begins to watch, in the runtime that this is called in.
    pub(in crate::containers) fn watch(options: &KubernetesOptions) -> Self {
        let Some(node) = options.node.clone() else {
            return Self { table: None };
        };
        let (sender, table) = watch::channel(PodTable::default());
        let follower = Follower {
            options: options.clone(),
            table: sender,
            listed: PodTable::default(),
            has_warned: false,
        };
        // It ends with the runtime.
        tokio::spawn(follower.follow(node));
        Self { table: Some(table) }
    }

    /// What the API server tells of the container, or that it may in a moment.
    pub(in crate::containers) fn find(&self, question: &Question) -> Poll<Option<ContainerFacts>> {
        match &self.table {
            // Nobody is there to be asked.
            Some(table) if table.has_changed().is_err() => Poll::Ready(None),
            Some(table) => table.borrow().find(question),
            None => Poll::Ready(None),
        }
    }

    /// What is known of the container's pod at least.
    pub(in crate::containers) fn find_pod(&self, question: &Question) -> Option<ContainerFacts> {
        self.table.as_ref()?.borrow().find_pod(question)
    }

    /// Waits until something is new.
    pub(in crate::containers) async fn changed(&mut self) {
        let changed = match &mut self.table {
            Some(table) => table.changed().await.is_ok(),
            None => false,
        };
        if !changed {
            pending::<()>().await;
        }
    }
}

// === impl Follower ===

impl Follower {
    async fn follow(mut self, node: String) {
        let client = match connect().await {
            Ok(client) => client,
            Err(error) => {
                tracing::warn!(error = %in_full(&*error), "pods are not asked for: no API server; unset agent.kubernetes.node, or name one in KUBECONFIG");
                return;
            }
        };
        let pod = ApiResource::from_gvk(&GroupVersionKind::gvk("", "v1", "Pod"));
        let pods: Api<Pod> = Api::all_with(client, &pod);
        let of_node = watcher::Config::default().fields(&format!("spec.nodeName={node}"));
        // It lists and watches anew whatever happens, and waits longer each time.
        let mut events = pin!(watcher(pods, of_node).default_backoff());
        while let Some(event) = events.next().await {
            match event {
                Ok(event) => self.take(event),
                Err(error) => self.tell(&error),
            }
        }
    }

    fn take(&mut self, event: Event<Pod>) {
        match event {
            Event::Init => self.listed = PodTable::default(),
            Event::InitApply(pod) => self.listed.apply(self.facts(&pod)),
            Event::InitDone => {
                self.has_warned = false;
                self.table.send_replace(std::mem::take(&mut self.listed));
            }
            Event::Apply(pod) => {
                let facts = self.facts(&pod);
                self.table.send_modify(|table| table.apply(facts));
            }
            Event::Delete(pod) => {
                let facts = self.facts(&pod);
                self.table.send_modify(|table| table.remove(&facts));
            }
        }
    }

    fn facts(&self, pod: &Pod) -> PodFacts {
        PodFacts::of(pod, &self.options)
    }

    /// Says once that it cannot be asked, until it can.
    fn tell(&mut self, error: &watcher::Error) {
        let error = in_full(error);
        if std::mem::replace(&mut self.has_warned, true) {
            tracing::debug!(%error, "the API server does not tell of pods");
            return;
        }
        tracing::warn!(%error, "the API server does not tell of pods: the agent's service account needs list and watch of pods, as in deploy/kubernetes");
    }
}

/// By `KUBECONFIG`, or as a pod does: its service account's token and the address in its environment.
async fn connect() -> Result<Client, Box<dyn Error + Send + Sync>> {
    let config = Config::infer().await?;
    Ok(Client::try_from(config)?)
}

/// An error with all its causes, of which the first says little.
fn in_full(error: &dyn Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        text = format!("{text}: {error}");
        cause = error.source();
    }
    text
}
