//! Where daemons run, who they are there, and what they may ask.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::Namespace;
use k8s_openapi::api::core::v1::ServiceAccount;
use k8s_openapi::api::rbac::v1::ClusterRole;
use k8s_openapi::api::rbac::v1::ClusterRoleBinding;
use k8s_openapi::api::rbac::v1::PolicyRule;
use k8s_openapi::api::rbac::v1::RoleRef;
use k8s_openapi::api::rbac::v1::Subject;

use super::ManifestOptions;
use super::metadata;
use super::texts;
use crate::document::FleetDocument;
use crate::path::DocumentPath;
use crate::report::Report;

/// The account of daemons whose document names none.
const DEFAULT_ACCOUNT: &str = "candela-fleet";

const RBAC: &str = "rbac.authorization.k8s.io";
/// What the webhook of EKS reads (CH-51).
const ROLE_ANNOTATION: &str = "eks.amazonaws.com/role-arn";
/// What GKE's metadata server reads (CH-50).
const GOOGLE_ANNOTATION: &str = "iam.gke.io/gcp-service-account";

/// The longest name of an object.
const MOST_NAME: usize = 253;

pub(super) fn namespace(options: &ManifestOptions) -> Namespace {
    let mut metadata = metadata(&options.namespace, None);
    let labels = metadata.labels.get_or_insert_default();
    // Pods that share the host's process ids are allowed at no other level.
    labels.extend(texts([(
        "pod-security.kubernetes.io/enforce",
        "privileged",
    )]));
    Namespace {
        metadata,
        ..Namespace::default()
    }
}

/// `None` when the document names one that cannot be.
pub(super) fn service_account(
    document: &FleetDocument,
    options: &ManifestOptions,
    report: &mut Report,
) -> Option<ServiceAccount> {
    let common = document.common_persistence_specs.as_ref();
    let given = common.and_then(|common| common.service_account_name.as_deref());
    let given = given.filter(|name| !name.is_empty());
    let project = common.and_then(|common| common.google_cloud_project.as_deref());
    let project = project.filter(|project| !project.is_empty());
    // Google's accounts are written as addresses, too, whose first part is the name.
    let name = given.map_or(DEFAULT_ACCOUNT, |given| {
        given.split_once('@').map_or(given, |(name, _)| name)
    });
    if !is_object_name(name) {
        let path = DocumentPath::top().key("common_persistence_specs");
        let message = format!(
            "{name:?} is not the name of a service account of Kubernetes; write up to {MOST_NAME} of a-z, 0-9, '-' and '.', a letter or digit at both ends"
        );
        report.problem(path.key("service_account_name"), message);
        return None;
    }
    let google = match (given, project) {
        _ if options.google_service_account.is_some() => options.google_service_account.clone(),
        (Some(address), _) if address.contains('@') => Some(address.to_owned()),
        (Some(name), Some(project)) => Some(format!("{name}@{project}.iam.gserviceaccount.com")),
        _ => None,
    };
    let mut metadata = metadata(name, Some(&options.namespace));
    let annotations = [
        (ROLE_ANNOTATION, options.role_arn.clone()),
        (GOOGLE_ANNOTATION, google),
    ];
    let annotations = annotations.into_iter();
    let annotations = annotations.filter_map(|(key, value)| Some((key.to_owned(), value?)));
    let annotations: BTreeMap<String, String> = annotations.collect();
    metadata.annotations = Some(annotations).filter(|annotations| !annotations.is_empty());
    Some(ServiceAccount {
        metadata,
        automount_service_account_token: Some(false),
        ..ServiceAccount::default()
    })
}

/// Which pods there are. RBAC knows no bound to a node.
pub(super) fn pod_reader(options: &ManifestOptions) -> ClusterRole {
    let all = |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect();
    ClusterRole {
        metadata: metadata(&pod_reader_name(options), None),
        rules: Some(vec![PolicyRule {
            api_groups: Some(all(&[""])),
            resources: Some(all(&["pods"])),
            verbs: all(&["list", "watch"]),
            ..PolicyRule::default()
        }]),
        ..ClusterRole::default()
    }
}

pub(super) fn pod_reader_binding(account: &str, options: &ManifestOptions) -> ClusterRoleBinding {
    let name = pod_reader_name(options);
    ClusterRoleBinding {
        metadata: metadata(&name, None),
        role_ref: RoleRef {
            api_group: Some(RBAC.to_owned()),
            kind: "ClusterRole".to_owned(),
            name,
        },
        subjects: Some(vec![Subject {
            kind: "ServiceAccount".to_owned(),
            name: account.to_owned(),
            namespace: Some(options.namespace.clone()),
            ..Subject::default()
        }]),
    }
}

/// Of the namespace, as there may be a fleet in each and roles of a cluster share their names.
fn pod_reader_name(options: &ManifestOptions) -> String {
    format!("candela-fleet-{}", options.namespace)
}

fn is_object_name(name: &str) -> bool {
    let is_end = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
    let is_label = |label: &str| {
        let bytes = label.as_bytes();
        bytes.first().copied().is_some_and(is_end)
            && bytes.last().copied().is_some_and(is_end)
            && bytes.iter().all(|byte| is_end(*byte) || *byte == b'-')
    };
    name.len() <= MOST_NAME && name.split('.').all(is_label)
}
