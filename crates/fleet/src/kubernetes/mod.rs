//! A document as manifests of Kubernetes: a DaemonSet for each daemon that is to run.
//!
//! What Kubernetes must know of a daemon stands in its manifest: image, resources, rights, who it is in the cloud. What
//! it does stands in the document alone: its pods are agents that hold a stream to the server, and run this one daemon
//! as the document has it. So another rate reaches them within seconds, without a restart that loses a sample; the
//! manifests are rendered anew when daemons come, go, or are to have other resources.

mod access;
mod daemon_set;

use std::collections::BTreeMap;

use k8s_openapi::api::apps::v1::DaemonSet;
use k8s_openapi::api::core::v1::Namespace;
use k8s_openapi::api::core::v1::ServiceAccount;
use k8s_openapi::api::rbac::v1::ClusterRole;
use k8s_openapi::api::rbac::v1::ClusterRoleBinding;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use serde::Serialize;

use crate::daemon::DaemonBody;
use crate::daemon::ObservabilityDaemon;
use crate::document::FleetDocument;
use crate::identity::wanted_daemons;
use crate::path::DocumentPath;
use crate::process_filter::ProcessFilter;
use crate::report::Note;
use crate::report::Problems;
use crate::report::Report;

/// The label that all objects of a rendering have, by which those that are gone from it can be pruned.
pub const PART_OF: (&str, &str) = ("app.kubernetes.io/part-of", "candela-fleet");

/// The environment variable that tells an agent which daemon it is.
pub const DAEMON_VARIABLE: &str = "CANDELA_AGENT__FLEET_DAEMON";

/// What the document does not say.
#[derive(Clone, Debug, Default)]
pub struct ManifestOptions {
    /// Where everything goes.
    pub namespace: String,
    /// The image of daemons that override none: the agent's.
    pub image: String,
    /// Where pods reach the server.
    pub server: String,
    /// The tenant whose document it is.
    pub tenant: Option<String>,
    /// The Secret whose key `token` is the agents' token.
    pub token_secret: Option<String>,
    /// The role of Amazon's that the service account stands for (IRSA).
    pub role_arn: Option<String>,
    /// The account of Google's that the service account stands for, in the place of what the document says.
    pub google_service_account: Option<String>,
    /// Further environment variables of all daemons.
    pub environment: Vec<(String, String)>,
    /// The capabilities that sampling needs, as Kubernetes writes them: without `CAP_`.
    pub capabilities: Vec<String>,
}

/// Objects to be applied, in an order in which each finds those that it needs.
#[derive(Clone, Debug)]
pub struct Manifest {
    /// The objects.
    pub objects: Vec<KubernetesObject>,
    /// What of the document has no place in them.
    pub notes: Vec<Note>,
}

/// An object of a rendering.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(untagged)]
pub enum KubernetesObject {
    /// Where all others are.
    Namespace(Box<Namespace>),
    /// Who the daemons are, in the cluster and in the cloud.
    ServiceAccount(Box<ServiceAccount>),
    /// The right to look at pods.
    ClusterRole(Box<ClusterRole>),
    /// That the daemons have it.
    ClusterRoleBinding(Box<ClusterRoleBinding>),
    /// One daemon on every node.
    DaemonSet(Box<DaemonSet>),
}

impl Manifest {
    /// Renders a document. A daemon that rests with it has no DaemonSet.
    ///
    /// # Errors
    /// What of the document Kubernetes would refuse.
    pub fn render(document: &FleetDocument, options: &ManifestOptions) -> Result<Self, Problems> {
        let mut report = Report::default();
        let account = access::service_account(document, options, &mut report);
        let wanted = wanted_daemons(document);
        for (index, daemon) in document.daemons().iter().enumerate() {
            tell_what_is_left_out(index, daemon, &mut report);
            if !wanted.iter().any(|it| it.index == index) {
                let message = "rests while the document is suspended, and is not rendered";
                report.warning(path_of(index), message);
            }
        }
        let Some(account) = account.filter(|_| report.problems.is_empty()) else {
            return Err(Problems(report.problems));
        };
        let account_name = account.metadata.name.clone().unwrap_or_default();
        let mut objects = vec![
            KubernetesObject::Namespace(Box::new(access::namespace(options))),
            KubernetesObject::ServiceAccount(Box::new(account)),
        ];
        if wanted.iter().any(|it| looks_at_pods(it.daemon)) {
            let role = access::pod_reader(options);
            let binding = access::pod_reader_binding(&account_name, options);
            objects.push(KubernetesObject::ClusterRole(Box::new(role)));
            objects.push(KubernetesObject::ClusterRoleBinding(Box::new(binding)));
        }
        for wanted in &wanted {
            let set = daemon_set::daemon_set(wanted, &account_name, options);
            objects.push(KubernetesObject::DaemonSet(Box::new(set)));
        }
        Ok(Self {
            objects,
            notes: report.notes,
        })
    }
}

/// Whether its filter asks for labels of pods, which only the API server knows.
fn looks_at_pods(daemon: &ObservabilityDaemon) -> bool {
    match &daemon.body {
        DaemonBody::PerfCollector(collector) => {
            let filter = collector.process_filter.as_ref();
            filter.is_some_and(ProcessFilter::has_pod_labels)
        }
        DaemonBody::PerfettoDaemon(_) => false,
    }
}

/// `storage` is that of a volume that is claimed, and a DaemonSet claims none.
fn tell_what_is_left_out(index: usize, daemon: &ObservabilityDaemon, report: &mut Report) {
    for (name, resources) in [("request", &daemon.request), ("limit", &daemon.limit)] {
        if resources.as_ref().is_some_and(|it| it.storage.is_some()) {
            let path = path_of(index).key(name).key("storage");
            let message = "is left out: a DaemonSet claims no volume; write ephemeral_storage for room on the node";
            report.warning(path, message);
        }
    }
}

fn path_of(index: usize) -> DocumentPath {
    let daemons = DocumentPath::top().key("observability_daemons");
    daemons.index(index)
}

fn metadata(name: &str, namespace: Option<&str>) -> ObjectMeta {
    ObjectMeta {
        name: Some(name.to_owned()),
        namespace: namespace.map(str::to_owned),
        labels: Some(texts([PART_OF])),
        ..ObjectMeta::default()
    }
}

fn texts<const N: usize>(pairs: [(&str, &str); N]) -> BTreeMap<String, String> {
    let owned = pairs.map(|(key, value)| (key.to_owned(), value.to_owned()));
    BTreeMap::from(owned)
}
