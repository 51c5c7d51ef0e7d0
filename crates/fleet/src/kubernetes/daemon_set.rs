//! One daemon on every node.

use std::collections::BTreeMap;

use k8s_openapi::api::apps::v1::DaemonSet;
use k8s_openapi::api::apps::v1::DaemonSetSpec;
use k8s_openapi::api::core::v1::AppArmorProfile;
use k8s_openapi::api::core::v1::Capabilities;
use k8s_openapi::api::core::v1::Container;
use k8s_openapi::api::core::v1::DownwardAPIVolumeFile;
use k8s_openapi::api::core::v1::DownwardAPIVolumeSource;
use k8s_openapi::api::core::v1::EnvVar;
use k8s_openapi::api::core::v1::EnvVarSource;
use k8s_openapi::api::core::v1::HostPathVolumeSource;
use k8s_openapi::api::core::v1::ObjectFieldSelector;
use k8s_openapi::api::core::v1::PodSecurityContext;
use k8s_openapi::api::core::v1::PodSpec;
use k8s_openapi::api::core::v1::PodTemplateSpec;
use k8s_openapi::api::core::v1::ResourceRequirements;
use k8s_openapi::api::core::v1::SecretKeySelector;
use k8s_openapi::api::core::v1::SecurityContext;
use k8s_openapi::api::core::v1::Toleration;
use k8s_openapi::api::core::v1::Volume;
use k8s_openapi::api::core::v1::VolumeMount;
use k8s_openapi::apimachinery::pkg::api::resource::Quantity;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;

use super::DAEMON_VARIABLE;
use super::ManifestOptions;
use super::PART_OF;
use super::looks_at_pods;
use super::metadata;
use super::texts;
use crate::daemon::DaemonBody;
use crate::daemon::ObservabilityDaemon;
use crate::identity::WantedDaemon;
use crate::perfetto_daemon::PerfettoTrigger;
use crate::resources::Resources;

/// The data directory of the image.
const DATA: &str = "/var/lib/candela";
/// The same on the node, above a folder for each daemon.
const DATA_OF_NODE: &str = "/var/lib/candela-fleet";

/// Where the kubelet tells a pod its labels, and keeps that true: an agent knows by which labels snapshots of the fleet find it.
const OWN_LABELS: &str = "/etc/candela-pod";
const OWN_LABELS_FILE: &str = "labels";
const OWN_LABELS_VARIABLE: &str = "CANDELA_AGENT__KUBERNETES__OWN_LABELS_FILE";

/// Which field of the pod an agent knows by which variable. By the last three snapshots of the fleet choose their nodes.
const FIELDS: [(&str, &str); 4] = [
    ("CANDELA_AGENT__KUBERNETES__NODE", "spec.nodeName"),
    ("CANDELA_AGENT__KUBERNETES__NAMESPACE", "metadata.namespace"),
    ("CANDELA_AGENT__KUBERNETES__POD", "metadata.name"),
    ("CANDELA_AGENT__KUBERNETES__POD_IP", "status.podIP"),
];

/// What the document's own daemons have where they are asked over HTTP (CH-27, CH-28): agents read both.
const CHALK_PORT: &str = "CHALK_PERFETTO_DAEMON_PORT";
const CHALK_NAMESPACE: &str = "CHALK_PERFETTO_DAEMON_NAMESPACE";
const TRIGGER_PORT: &str = "3565";

pub(super) fn daemon_set(
    wanted: &WantedDaemon<'_>,
    account: &str,
    options: &ManifestOptions,
) -> DaemonSet {
    let id = wanted.id.as_str();
    let component = wanted.daemon.body.name().replace('_', "-");
    let selected = texts([
        ("app.kubernetes.io/name", "candela-daemon"),
        ("app.kubernetes.io/instance", id),
    ]);
    let mut labels = selected.clone();
    labels.extend(texts([
        PART_OF,
        ("app.kubernetes.io/component", component.as_str()),
    ]));
    DaemonSet {
        metadata: ObjectMeta {
            labels: Some(labels.clone()),
            ..metadata(id, Some(&options.namespace))
        },
        spec: DaemonSetSpec {
            selector: LabelSelector {
                match_labels: Some(selected),
                ..LabelSelector::default()
            },
            template: PodTemplateSpec {
                metadata: Some(ObjectMeta {
                    labels: Some(labels),
                    ..ObjectMeta::default()
                }),
                spec: Some(pod(wanted, account, options)),
            },
            ..DaemonSetSpec::default()
        },
        ..DaemonSet::default()
    }
}

fn pod(wanted: &WantedDaemon<'_>, account: &str, options: &ManifestOptions) -> PodSpec {
    PodSpec {
        service_account_name: Some(account.to_owned()),
        automount_service_account_token: Some(looks_at_pods(wanted.daemon)),
        // Services of the namespace would stand in the environment under names that they choose: one that is called
        // chalk-perfetto-daemon would be CHALK_PERFETTO_DAEMON_PORT, with an address where a port is expected.
        enable_service_links: Some(false),
        // Process ids of the kernel's events are those of the host.
        host_pid: Some(true),
        // Every node, whatever it is reserved for.
        tolerations: Some(vec![Toleration {
            operator: Some("Exists".to_owned()),
            ..Toleration::default()
        }]),
        security_context: Some(PodSecurityContext {
            // The usual profile forbids reading other containers' processes.
            app_armor_profile: Some(AppArmorProfile {
                type_: "Unconfined".to_owned(),
                ..AppArmorProfile::default()
            }),
            ..PodSecurityContext::default()
        }),
        containers: vec![container(wanted, options)],
        volumes: Some(vec![data_volume(wanted), own_labels_volume()]),
        ..PodSpec::default()
    }
}

/// Files wait for their bucket there, and the last of them stay on the node (CH-12, CH-53): they outlive the pod, which
/// every change of the DaemonSet ends.
fn data_volume(wanted: &WantedDaemon<'_>) -> Volume {
    Volume {
        name: "data".to_owned(),
        host_path: Some(HostPathVolumeSource {
            path: format!("{DATA_OF_NODE}/{}", wanted.id),
            type_: Some("DirectoryOrCreate".to_owned()),
        }),
        ..Volume::default()
    }
}

fn own_labels_volume() -> Volume {
    Volume {
        name: "pod".to_owned(),
        downward_api: Some(DownwardAPIVolumeSource {
            items: Some(vec![DownwardAPIVolumeFile {
                path: OWN_LABELS_FILE.to_owned(),
                field_ref: Some(field_of("metadata.labels")),
                ..DownwardAPIVolumeFile::default()
            }]),
            ..DownwardAPIVolumeSource::default()
        }),
        ..Volume::default()
    }
}

fn container(wanted: &WantedDaemon<'_>, options: &ManifestOptions) -> Container {
    let daemon = wanted.daemon;
    let image = daemon.image_override.as_ref().unwrap_or(&options.image);
    let mut arguments = vec!["agent".to_owned()];
    if let Some(tenant) = &options.tenant {
        arguments.extend(["--tenant".to_owned(), tenant.clone()]);
    }
    Container {
        name: "daemon".to_owned(),
        image: Some(image.clone()),
        args: Some(arguments),
        env: Some(environment(wanted, options)),
        resources: Some(ResourceRequirements {
            requests: quantities(&daemon.effective_request()),
            limits: daemon.limit.as_ref().and_then(quantities),
            ..ResourceRequirements::default()
        }),
        security_context: Some(SecurityContext {
            // Root's id with these of its privileges and no others: engines give none to other users.
            run_as_user: Some(0),
            read_only_root_filesystem: Some(true),
            allow_privilege_escalation: Some(false),
            capabilities: Some(Capabilities {
                drop: Some(vec!["ALL".to_owned()]),
                add: Some(options.capabilities.clone()),
            }),
            ..SecurityContext::default()
        }),
        volume_mounts: Some(vec![
            VolumeMount {
                name: "data".to_owned(),
                mount_path: DATA.to_owned(),
                ..VolumeMount::default()
            },
            VolumeMount {
                name: "pod".to_owned(),
                mount_path: OWN_LABELS.to_owned(),
                read_only: Some(true),
                ..VolumeMount::default()
            },
        ]),
        ..Container::default()
    }
}

fn environment(wanted: &WantedDaemon<'_>, options: &ManifestOptions) -> Vec<EnvVar> {
    let mut environment = vec![
        // Said for images of others, too.
        value("CANDELA_DATA_DIR", DATA),
        value("CANDELA_AGENT__SERVER", &options.server),
        value(DAEMON_VARIABLE, wanted.id.as_str()),
    ];
    environment.extend(FIELDS.map(|(name, path)| field(name, path)));
    let own_labels = format!("{OWN_LABELS}/{OWN_LABELS_FILE}");
    environment.push(value(OWN_LABELS_VARIABLE, &own_labels));
    if is_asked_over_http(wanted.daemon) {
        environment.push(value(CHALK_PORT, TRIGGER_PORT));
        environment.push(field(CHALK_NAMESPACE, "metadata.namespace"));
    }
    if let Some(secret) = &options.token_secret {
        environment.push(token_of(secret));
    }
    let further = options.environment.iter();
    environment.extend(further.map(|(name, text)| value(name, text)));
    environment
}

fn is_asked_over_http(daemon: &ObservabilityDaemon) -> bool {
    match &daemon.body {
        DaemonBody::PerfettoDaemon(perfetto) => perfetto.trigger == Some(PerfettoTrigger::Http),
        DaemonBody::PerfCollector(_) => false,
    }
}

fn value(name: &str, text: &str) -> EnvVar {
    EnvVar {
        name: name.to_owned(),
        value: Some(text.to_owned()),
        ..EnvVar::default()
    }
}

fn field(name: &str, path: &str) -> EnvVar {
    EnvVar {
        name: name.to_owned(),
        value_from: Some(EnvVarSource {
            field_ref: Some(field_of(path)),
            ..EnvVarSource::default()
        }),
        ..EnvVar::default()
    }
}

fn field_of(path: &str) -> ObjectFieldSelector {
    ObjectFieldSelector {
        field_path: path.to_owned(),
        ..ObjectFieldSelector::default()
    }
}

fn token_of(secret: &str) -> EnvVar {
    EnvVar {
        name: "CANDELA_TOKEN".to_owned(),
        value_from: Some(EnvVarSource {
            secret_key_ref: Some(SecretKeySelector {
                name: secret.to_owned(),
                key: "token".to_owned(),
                ..SecretKeySelector::default()
            }),
            ..EnvVarSource::default()
        }),
        ..EnvVar::default()
    }
}

/// As they are written; `storage` is no resource of a container.
fn quantities(resources: &Resources) -> Option<BTreeMap<String, Quantity>> {
    let written = [
        ("cpu", &resources.cpu),
        ("ephemeral-storage", &resources.ephemeral_storage),
        ("memory", &resources.memory),
    ];
    let written = written
        .into_iter()
        .filter_map(|(name, amount)| Some((name.to_owned(), Quantity(amount.clone()?))));
    let written: BTreeMap<String, Quantity> = written.collect();
    Some(written).filter(|written| !written.is_empty())
}
