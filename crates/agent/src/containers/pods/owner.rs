//! What made a pod: the workload that a person has written.
//!
//! A pod names its controller only, which for a deployment is a replica set and for a cron job a job, each with a
//! name of its own. Who may not read those, and we may not, finds the names of what made them in theirs.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference;

/// The label by which a deployment tells its replica sets apart: their names are its name, a hyphen and this.
const TEMPLATE_HASH: &str = "pod-template-hash";

/// Cron jobs name a job after the minute that it was due, counted from 1970. A pod starts within this of it: later
/// ones are those of jobs that a person named so.
const LATEST_START_SECONDS: i64 = 24 * 3600;

/// The kind that controls the mirrors of pods that a kubelet runs by itself.
const NODE: &str = "Node";

/// A workload: `deployment`, `checkout`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Workload {
    /// The kind, in small letters.
    pub(super) kind: String,
    /// Its name.
    pub(super) name: String,
}

/// The workload that a pod with this metadata is of; `None` for what nobody controls, or its node.
pub(super) fn workload_of(metadata: &ObjectMeta) -> Option<Workload> {
    let owner = controller_of(metadata)?;
    let (kind, name) = match owner.kind.as_str() {
        NODE => return None,
        "ReplicaSet" => match deployment_of(metadata, &owner.name) {
            Some(deployment) => ("deployment".to_owned(), deployment),
            None => ("replicaset".to_owned(), owner.name.as_str()),
        },
        "Job" => match cron_job_of(metadata, &owner.name) {
            Some(cron_job) => ("cronjob".to_owned(), cron_job),
            None => ("job".to_owned(), owner.name.as_str()),
        },
        other => (other.to_ascii_lowercase(), owner.name.as_str()),
    };
    Some(Workload {
        kind,
        name: name.to_owned(),
    })
}

/// Whether it stands for what a kubelet runs by itself.
pub(super) fn is_mirror(metadata: &ObjectMeta) -> bool {
    controller_of(metadata).is_some_and(|owner| owner.kind == NODE)
}

fn controller_of(metadata: &ObjectMeta) -> Option<&OwnerReference> {
    let mut owners = metadata.owner_references.as_deref()?.iter();
    owners.find(|owner| owner.controller == Some(true))
}

fn deployment_of<'a>(metadata: &ObjectMeta, replica_set: &'a str) -> Option<&'a str> {
    let hash = metadata.labels.as_ref()?.get(TEMPLATE_HASH)?;
    let name = replica_set.strip_suffix(hash.as_str())?.strip_suffix('-')?;
    (!name.is_empty()).then_some(name)
}

fn cron_job_of<'a>(metadata: &ObjectMeta, job: &'a str) -> Option<&'a str> {
    let created = metadata.creation_timestamp.as_ref()?.0.as_second();
    let (name, minute) = job.rsplit_once('-')?;
    let due: i64 = minute.parse().ok()?;
    let late = created.checked_sub(due.checked_mul(60)?)?;
    (!name.is_empty() && (0..LATEST_START_SECONDS).contains(&late)).then_some(name)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// The workload of a pod with this controller and this `pod-template-hash`, made on 24 July 2026.
    fn workload(kind: &str, name: &str, hash: &str) -> Option<(String, String)> {
        let metadata = json!({
            "creationTimestamp": "2026-07-24T03:00:04Z",
            "labels": {"pod-template-hash": hash},
            "ownerReferences": [
                {"apiVersion": "v1", "kind": "Other", "name": "no controller", "uid": "1"},
                {"apiVersion": "v1", "kind": kind, "name": name, "uid": "2", "controller": true},
            ],
        });
        let metadata = serde_json::from_value(metadata).expect("metadata of a pod");
        workload_of(&metadata).map(|it| (it.kind, it.name))
    }

    #[test]
    fn what_made_a_pod_is_what_a_person_wrote() {
        // 24 July 2026, 03:00 is minute 29747700 since 1970.
        for (kind, name, hash, workload_kind, workload_name) in [
            ("ReplicaSet", "web-7d9f8", "7d9f8", "deployment", "web"),
            (
                "ReplicaSet",
                "web-7d9f8",
                "other",
                "replicaset",
                "web-7d9f8",
            ),
            ("ReplicaSet", "-7d9f8", "7d9f8", "replicaset", "-7d9f8"),
            ("StatefulSet", "db", "", "statefulset", "db"),
            ("DaemonSet", "node-logs", "", "daemonset", "node-logs"),
            ("Job", "backup-29747700", "", "cronjob", "backup"),
            // A person's own numbers: of another time, or of a day.
            ("Job", "import-29700000", "", "job", "import-29700000"),
            ("Job", "import-20260724", "", "job", "import-20260724"),
            ("Job", "migrate", "", "job", "migrate"),
            ("Workflow", "nightly", "", "workflow", "nightly"),
        ] {
            let wanted = Some((workload_kind.to_owned(), workload_name.to_owned()));
            assert_eq!(workload(kind, name, hash), wanted, "{kind} {name}");
        }
        assert_eq!(workload("Node", "node-1", ""), None);
        assert_eq!(workload_of(&ObjectMeta::default()), None);
    }
}
