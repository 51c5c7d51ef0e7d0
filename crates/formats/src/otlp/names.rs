//! Attribute names and the label names of the contract.

/// Attributes of resources, scopes and profiles that have a label name of their own.
const SERIES_NAMES: [(&str, &str); 8] = [
    ("service.name", "service_name"),
    ("host.name", "host"),
    ("process.executable.name", "process_executable_name"),
    ("container.id", "container_id"),
    ("k8s.pod.name", "pod"),
    ("k8s.namespace.name", "namespace"),
    ("k8s.node.name", "node"),
    ("k8s.container.name", "container"),
];

/// The same for attributes of samples only.
const SAMPLE_NAMES: [(&str, &str); 3] = [
    ("thread.name", "thread_name"),
    ("thread.id", "thread_id"),
    ("process.pid", "pid"),
];

/// The label for an attribute of a series; names without one keep their dots.
pub(crate) fn series_label(attribute: &str) -> &str {
    let known = SERIES_NAMES.iter().find(|(name, _)| *name == attribute);
    match known {
        Some((_, label)) => label,
        // A profile of one thread: its name is the same thing at either level.
        None if attribute == "thread.name" => "thread_name",
        None => attribute,
    }
}

/// The label for an attribute of a sample.
pub(crate) fn sample_label(attribute: &str) -> &str {
    let known = SAMPLE_NAMES.iter().find(|(name, _)| *name == attribute);
    known.map_or_else(|| series_label(attribute), |(_, label)| label)
}

/// The attribute for a label of a series.
pub(crate) fn series_attribute(label: &str) -> &str {
    let known = SERIES_NAMES.iter().find(|(_, name)| *name == label);
    match known {
        Some((attribute, _)) => attribute,
        None if label == "thread_name" => "thread.name",
        None => label,
    }
}

/// The attribute for a label of a sample.
pub(crate) fn sample_attribute(label: &str) -> &str {
    let known = SAMPLE_NAMES.iter().find(|(_, name)| *name == label);
    known.map_or_else(|| series_attribute(label), |(attribute, _)| attribute)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_go_both_ways() {
        for (attribute, label) in SERIES_NAMES {
            assert_eq!(series_label(attribute), label);
            assert_eq!(series_attribute(label), attribute);
            assert_eq!(sample_label(attribute), label);
        }
        for (attribute, label) in SAMPLE_NAMES {
            assert_eq!(sample_label(attribute), label);
            assert_eq!(sample_attribute(label), attribute);
        }
        assert_eq!(series_label("cloud.region"), "cloud.region");
    }
}
