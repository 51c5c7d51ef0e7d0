//! Which nodes there are, which of them listen, and what each said last.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::sync::Mutex;
use std::sync::MutexGuard;
use std::sync::PoisonError;

use axum::http::StatusCode;
use bytes::Bytes;
use tokio::sync::mpsc;
use tokio::sync::watch;

use super::counts::FleetCounts;
use super::instance::Instance;
use super::lines::DocumentLine;
use super::listener::Listener;
use super::node_report::NodeReport;
use super::orders::Orders;
use super::versions::FleetVersion;
use crate::api_error::ApiError;
use crate::auth::TenantName;

/// Orders that a node has not read yet: one that reads nothing is not waited for.
const MOST_UNREAD: usize = 16;

/// An agent that was not heard for so long has gone without a word, and its name is free: three reports.
const SILENCE_NS: i64 = 45_000_000_000;

/// The nodes of all tenants.
#[derive(Debug)]
pub(crate) struct Fleet {
    /// Nodes that are remembered, of all tenants together.
    most_nodes: usize,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
pub(super) struct State {
    tenants: BTreeMap<TenantName, TenantFleet>,
    pub(super) orders: Orders,
    pub(super) counts: FleetCounts,
    last_stream: u64,
    has_ended: bool,
}

/// A tenant with nodes; it is forgotten with the last of them.
#[derive(Debug)]
struct TenantFleet {
    /// What is applied, for streams; `None` until the first of them has read it.
    document: watch::Sender<Option<DocumentLine>>,
    nodes: BTreeMap<Listener, Node>,
}

/// An agent that has listened or reported: that of a node, or of one daemon there.
#[derive(Clone, Debug)]
pub(super) struct Node {
    pub(super) report: Option<NodeReport>,
    stream: Option<OpenStream>,
    instance: Option<Instance>,
    pub(super) seen_ns: i64,
}

#[derive(Clone, Debug)]
struct OpenStream {
    number: u64,
    orders: mpsc::Sender<Bytes>,
}

/// What a stream tells its node.
#[derive(Debug)]
pub(super) struct Feed {
    pub(super) number: u64,
    pub(super) document: watch::Receiver<Option<DocumentLine>>,
    /// It ends when another stream takes its place.
    pub(super) orders: mpsc::Receiver<Bytes>,
}

/// How many there are now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct NodeCounts {
    pub(super) nodes: usize,
    pub(super) streams: usize,
}

impl Fleet {
    pub(crate) fn new(most_nodes: usize) -> Self {
        Self {
            most_nodes,
            state: Mutex::default(),
        }
    }

    /// Begins a stream. One that the node has already ends: its agent was started anew, or has lost the
    /// connection and knows it before we do.
    ///
    /// # Errors
    /// 409 when another agent of this name listens, 429 when as many nodes as may be listen, 503 when the server ends.
    pub(super) fn open(
        &self,
        tenant: &TenantName,
        listener: &Listener,
        instance: Option<&Instance>,
        now_ns: i64,
    ) -> Result<Feed, ApiError> {
        let mut state = self.lock();
        state.last_stream += 1;
        let number = state.last_stream;
        let (sender, orders) = mpsc::channel(MOST_UNREAD);
        let document = {
            let speaker = (listener, instance);
            let (document, node) = state.node(self.most_nodes, tenant, speaker, now_ns)?;
            let stream = OpenStream {
                number,
                orders: sender,
            };
            let replaced = node.stream.replace(stream);
            let document = document.subscribe();
            state.counts.streams += 1;
            state.counts.replaced += u64::from(replaced.is_some());
            document
        };
        Ok(Feed {
            number,
            document,
            orders,
        })
    }

    /// Ends a stream, unless another one has taken its place.
    pub(super) fn close(&self, tenant: &TenantName, listener: &Listener, number: u64, now_ns: i64) {
        let mut state = self.lock();
        let fleet = state.tenants.get_mut(tenant);
        let Some(node) = fleet.and_then(|fleet| fleet.nodes.get_mut(listener)) else {
            return;
        };
        if node.stream.as_ref().is_some_and(|it| it.number == number) {
            node.stream = None;
            node.seen_ns = now_ns;
        }
    }

    /// Tells all streams of a tenant what is applied, unless they know that or something later.
    ///
    /// # Errors
    /// When it cannot be written, which is a bug.
    pub(super) fn publish(
        &self,
        tenant: &TenantName,
        version: &FleetVersion,
    ) -> Result<(), ApiError> {
        let document = {
            let state = self.lock();
            let fleet = state.tenants.get(tenant);
            fleet.map(|fleet| fleet.document.clone())
        };
        let Some(document) = document else {
            return Ok(());
        };
        let line = DocumentLine::of(version)?;
        document.send_if_modified(|known| {
            let is_news = known.as_ref().is_none_or(|it| it.version < line.version);
            if is_news {
                *known = Some(line);
            }
            is_news
        });
        Ok(())
    }

    /// Takes what a node says; how many of its snapshots somebody waits for.
    ///
    /// # Errors
    /// As [`Fleet::open`].
    pub(super) fn hear(
        &self,
        tenant: &TenantName,
        mut report: NodeReport,
        instance: Option<&Instance>,
        now_ns: i64,
    ) -> Result<usize, ApiError> {
        let mut state = self.lock();
        let listener = Listener {
            node: report.node.clone(),
            daemon: report.daemon.clone(),
        };
        let snapshots = std::mem::take(&mut report.snapshots);
        let speaker = (&listener, instance);
        let (_, node) = state.node(self.most_nodes, tenant, speaker, now_ns)?;
        node.report = Some(report);
        state.counts.reports += 1;
        let heard = snapshots.into_iter();
        let awaited = heard.filter(|it| state.orders.take_report(tenant, &listener, it));
        Ok(awaited.count())
    }

    /// The nodes of a tenant, by name.
    pub(super) fn nodes(&self, tenant: &TenantName) -> BTreeMap<Listener, Node> {
        let state = self.lock();
        let fleet = state.tenants.get(tenant);
        fleet.map(|fleet| fleet.nodes.clone()).unwrap_or_default()
    }

    pub(super) fn counts(&self) -> (NodeCounts, FleetCounts) {
        let state = self.lock();
        let nodes = || state.tenants.values().flat_map(|it| it.nodes.values());
        let now = NodeCounts {
            nodes: nodes().count(),
            streams: nodes().filter(|node| node.is_connected()).count(),
        };
        (now, state.counts.clone())
    }

    /// Counts a change that was refused since somebody else had changed the document.
    pub(super) fn count_conflict(&self) {
        self.lock().counts.conflicts += 1;
    }

    /// Counts a change of the document.
    pub(super) fn count_change(&self) {
        self.lock().counts.changes += 1;
    }

    /// The server ends: streams end, and whoever waits for nodes waits in vain.
    pub(crate) fn end(&self) {
        let mut state = self.lock();
        state.has_ended = true;
        state.tenants.clear();
        state.orders = Orders::default();
    }

    /// Each change of the state is complete in itself, whoever panicked.
    pub(super) fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    /// A node that says something now, and what its streams are told.
    fn node(
        &mut self,
        most_nodes: usize,
        tenant: &TenantName,
        (listener, instance): (&Listener, Option<&Instance>),
        now_ns: i64,
    ) -> Result<(&watch::Sender<Option<DocumentLine>>, &mut Node), ApiError> {
        if self.has_ended {
            return Err(ending());
        }
        let fleet = self.tenants.get(tenant);
        match fleet.and_then(|fleet| fleet.nodes.get(listener)) {
            None => self.make_room(most_nodes)?,
            Some(node) if node.is_of_another(instance, now_ns) => {
                let error = name_taken(listener, now_ns.saturating_sub(node.seen_ns));
                self.counts.namesakes += 1;
                return Err(error);
            }
            Some(_) => {}
        }
        let fleet = self.tenants.entry(tenant.clone()).or_insert_with(|| {
            let (document, _) = watch::channel(None);
            TenantFleet {
                document,
                nodes: BTreeMap::new(),
            }
        });
        let node = fleet.nodes.entry(listener.clone()).or_insert(Node {
            report: None,
            stream: None,
            instance: None,
            seen_ns: now_ns,
        });
        node.seen_ns = now_ns;
        node.instance = instance.cloned();
        Ok((&fleet.document, node))
    }

    /// The node that was not seen for longest gives way, if it does not listen.
    fn make_room(&mut self, most_nodes: usize) -> Result<(), ApiError> {
        let count: usize = self.tenants.values().map(|fleet| fleet.nodes.len()).sum();
        if count < most_nodes {
            return Ok(());
        }
        // The largest tenant first: who makes up names of nodes forgets its own.
        let mut tenants: Vec<(&TenantName, &TenantFleet)> = self.tenants.iter().collect();
        tenants.sort_by_key(|(_, fleet)| Reverse(fleet.nodes.len()));
        let gives_way = tenants.into_iter().find_map(|(tenant, fleet)| {
            let away = fleet.nodes.iter().filter(|(_, node)| !node.is_connected());
            let (listener, _) = away.min_by_key(|(_, node)| node.seen_ns)?;
            Some((tenant.clone(), listener.clone()))
        });
        let Some((tenant, listener)) = gives_way else {
            self.counts.refused += 1;
            let message = format!("{count} nodes listen, and no more may");
            let error = ApiError::new(StatusCode::TOO_MANY_REQUESTS, "too_many_nodes", message);
            return Err(error.hint("end agents that are not needed"));
        };
        if let Some(fleet) = self.tenants.get_mut(&tenant) {
            fleet.nodes.remove(&listener);
            if fleet.nodes.is_empty() {
                self.tenants.remove(&tenant);
            }
        }
        Ok(())
    }

    /// The nodes of a tenant, to give them orders.
    pub(super) fn nodes_of(&self, tenant: &TenantName) -> impl Iterator<Item = (&Listener, &Node)> {
        let nodes = self.tenants.get(tenant).into_iter();
        nodes.flat_map(|fleet| fleet.nodes.iter())
    }

    pub(super) fn has_ended(&self) -> bool {
        self.has_ended
    }
}

impl Node {
    /// Whether it listens now.
    pub(super) fn is_connected(&self) -> bool {
        self.stream.is_some()
    }

    /// Whether an agent that says that it is another one has this name, and is there.
    fn is_of_another(&self, instance: Option<&Instance>, now_ns: i64) -> bool {
        let is_other = match (&self.instance, instance) {
            (Some(own), Some(other)) => own != other,
            _ => false,
        };
        is_other && self.is_connected() && now_ns.saturating_sub(self.seen_ns) < SILENCE_NS
    }

    /// Sends a line to it; false when it does not listen, or has not read what was sent before.
    pub(super) fn send(&self, line: Bytes) -> bool {
        let stream = self.stream.as_ref();
        stream.is_some_and(|stream| stream.orders.try_send(line).is_ok())
    }
}

fn name_taken(listener: &Listener, silence_ns: i64) -> ApiError {
    let node = &listener.node;
    let seconds = silence_ns / 1_000_000_000;
    let message = format!(
        "another agent is called {node:?} and was heard {seconds} s ago: their files would overwrite each other in the bucket"
    );
    ApiError::new(StatusCode::CONFLICT, "name_taken", message).hint(
        "give each its own name: agent.kubernetes.node, or that of the host; one that has gone without a word is forgotten within a minute",
    )
}

/// The error of what cannot be had any more.
pub(super) fn ending() -> ApiError {
    ApiError::new(
        StatusCode::SERVICE_UNAVAILABLE,
        "ending",
        "the server is ending",
    )
}

#[cfg(test)]
mod tests;
