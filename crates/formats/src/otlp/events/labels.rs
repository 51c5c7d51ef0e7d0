//! The labels of an event, by the contract's names.

use candela_model::LabelSetId;
use candela_model::LabelValue;
use candela_model::Labels;
use candela_model::Profile;
use candela_model::SampleLabel;
use candela_model::StringId;
use opentelemetry_proto::tonic::common::v1::KeyValue;

use crate::options::Limits;
use crate::otlp::attributes::Plain;
use crate::otlp::attributes::Texts;
use crate::otlp::attributes::plain_values;
use crate::otlp::events::fields::Fields;
use crate::report::Report;

/// A label and the keys that it comes from.
pub(crate) type Names = (&'static str, &'static [&'static str]);

/// Labels of the series.
pub(crate) const SERIES: [Names; 10] = [
    (
        "service_name",
        &[
            "serviceName",
            "resource.service.name",
            "resource.service_name",
        ],
    ),
    (
        "service.version",
        &["serviceVersion", "resource.service.version"],
    ),
    (
        "pod",
        &[
            "k8s_pod_name",
            "resource.k8s.pod.name",
            "resource.k8s_pod_name",
        ],
    ),
    (
        "namespace",
        &[
            "k8s_namespace",
            "resource.k8s.namespace.name",
            "resource.k8s_namespace",
        ],
    ),
    (
        "container",
        &["k8s_container_name", "resource.k8s.container.name"],
    ),
    ("node", &["k8s_node_name", "resource.k8s.node.name"]),
    (
        "k8s.deployment.name",
        &["k8s_deployment", "resource.k8s.deployment.name"],
    ),
    ("host", &["hostname", "resource.host.name"]),
    ("container_id", &["containerId", "resource.container.id"]),
    (
        "process_executable_name",
        &[
            "process.executable.name",
            "resource.process.executable.name",
        ],
    ),
];

/// Labels of the sample that are texts.
pub(crate) const TEXTS: [Names; 9] = [
    ("thread_name", &["threadName", "thread.name"]),
    ("off_cpu_reason", &["blockReason"]),
    ("lock_address", &["lockAddress"]),
    ("lock_class", &["lockClass", "event_data.lock_class"]),
    (
        "monitor_class",
        &[
            "monitorClass",
            "event_data.monitor_class",
            "sample.monitor_class",
        ],
    ),
    (
        "object_class",
        &[
            "objectClass",
            "event_data.object_class",
            "sample.object_class",
        ],
    ),
    ("gc_name", &["gcName", "event_data.gc_name"]),
    ("gc_cause", &["gcCause", "event_data.gc_cause"]),
    ("allocation_type", &["allocationType"]),
];

/// Labels of the sample that are numbers.
pub(crate) const NUMBERS: [Names; 2] = [
    ("thread_id", &["threadId", "thread.id", "tid"]),
    ("pid", &["pid", "process.pid"]),
];

/// Attributes of the record that stand in for keys that the event leaves out.
const ATTRIBUTES: [Names; 3] = [
    ("thread_name", &["thread.name"]),
    ("thread_id", &["thread.id"]),
    ("pid", &["process.pid"]),
];

/// What tells the series of an event from others of its resource.
pub(crate) fn series_labels(fields: Fields<'_>, limits: &Limits) -> Labels {
    let pairs = SERIES.iter().filter_map(|(label, keys)| {
        let text = fields.text(keys)?;
        Some((*label, limits.cut(text)))
    });
    Labels::from_pairs(pairs)
}

/// The labels of the sample.
pub(crate) fn sample_labels(
    fields: Fields<'_>,
    attributes: &[KeyValue],
    limits: &Limits,
    profile: &mut Profile,
    report: &mut Report,
) -> LabelSetId {
    let mut set: Vec<SampleLabel> = Vec::new();
    let strings = &mut profile.symbols.strings;
    for (label, keys) in TEXTS {
        if let Some(text) = fields.text(keys) {
            let text = strings.intern(limits.cut(text));
            set.push(SampleLabel::text(strings.intern(label), text));
        }
    }
    for (label, keys) in NUMBERS {
        if let Some(value) = fields.number(keys) {
            let key = strings.intern(label);
            set.push(number(key, value));
        }
    }
    let texts = Texts {
        strings: &[],
        limits,
    };
    for (label, keys) in ATTRIBUTES {
        let key = strings.intern(label);
        let found = attributes
            .iter()
            .find(|one| keys.contains(&one.key.as_str()));
        let is_known = set.iter().any(|known| known.key == key);
        let (Some(found), false) = (found, is_known) else {
            continue;
        };
        match plain_values(found.value.as_ref(), texts).first() {
            Some(Plain::Number(value)) => set.push(number(key, *value)),
            Some(Plain::Text(text)) if !text.is_empty() => {
                set.push(SampleLabel::text(key, strings.intern(text)));
            }
            _ => {}
        }
    }
    if set.len() > limits.max_labels_per_sample {
        set.truncate(limits.max_labels_per_sample);
        report.note(
            "labels_cut",
            "labels of samples with too many were left out",
        );
    }
    profile.label_sets.intern(set)
}

fn number(key: StringId, value: i64) -> SampleLabel {
    SampleLabel {
        key,
        value: LabelValue::Number {
            value,
            unit: StringId(0),
        },
    }
}
