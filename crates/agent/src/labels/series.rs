//! The labels of a process's series.

use candela_model::Labels;
use candela_model::SERVICE_NAME_LABEL;

use crate::filters::LEFT_OUT_LABEL;
use crate::filters::ProcessRule;
use crate::labels::ProcessFacts;
use crate::labels::command_line::program_name;
use crate::labels::service_rules::ServiceRule;

/// The service name of everything that the kernel does for itself.
const KERNEL_SERVICE: &str = "kernel";

/// OpenTelemetry attributes that have a short label name in Candela.
const SHORT_ATTRIBUTES: &[(&str, &str)] = &[
    ("service.name", SERVICE_NAME_LABEL),
    ("process.executable.name", "process_executable_name"),
    ("container.id", "container_id"),
    ("k8s.pod.name", "pod"),
    ("k8s.namespace.name", "namespace"),
    ("k8s.node.name", "node"),
    ("k8s.container.name", "container"),
];

/// Published attributes that would make a series of every process or call: they name the process
/// and not what it belongs to.
const PER_PROCESS_ATTRIBUTES: &[&str] = &[
    "process.pid",
    "process.parent_pid",
    "process.command",
    "process.command_args",
    "process.command_line",
    "process.executable.path",
    "process.owner",
    "service.instance.id",
];

/// Attributes of a process that become labels at most, and bytes of a value. What a process says of
/// itself must not make its series one that every receiver refuses.
const MOST_PUBLISHED: usize = 16;
const LONGEST_VALUE: usize = 1024;

/// Names processes: the host, labels for all series and the user's rules.
#[derive(Clone, Debug, Default)]
pub struct Labeler {
    host: String,
    node: String,
    extra: Labels,
    rules: Vec<ServiceRule>,
    wanted: Option<ProcessRule>,
}

impl Labeler {
    /// A labeler for one host. `extra` labels are set on every series and win over what is found.
    #[must_use]
    pub fn new(host: &str, extra: Labels, rules: Vec<ServiceRule>) -> Self {
        Self {
            host: host.to_owned(),
            node: String::new(),
            extra,
            rules,
            wanted: None,
        }
    }

    /// The same, which tells the processes that a rule leaves out from others.
    pub(crate) fn with_rule(self, wanted: Option<ProcessRule>) -> Self {
        Self { wanted, ..self }
    }

    /// The same for a node of Kubernetes, which this host is.
    #[must_use]
    pub fn on_node(self, node: &str) -> Self {
        let node = node.to_owned();
        Self { node, ..self }
    }

    /// The labels of a process. No label is set without a value.
    #[must_use]
    pub fn labels(&self, facts: &ProcessFacts) -> Labels {
        let mut labels = published_labels(&facts.published);
        labels.set("host", self.host.as_str());
        if !self.node.is_empty() {
            labels.set("node", self.node.as_str());
        }
        if !facts.is_kernel {
            labels.set("process_executable_name", facts.executable_name());
        }
        if let Some(container_id) = &facts.cgroup.container_id {
            labels.set("container_id", container_id.as_str());
        }
        if let Some(unit) = &facts.cgroup.systemd_unit {
            labels.set("systemd_unit", unit.as_str());
        }
        if let Some(uid) = &facts.cgroup.pod_uid {
            labels.set("k8s.pod.uid", uid.as_str());
        }
        if let Some(container) = &facts.container {
            let (image, tag) = container.image_parts();
            labels.set("container", container.name.as_str());
            labels.set("container.image.name", image.unwrap_or_default());
            labels.set("container.image.tag", tag.unwrap_or_default());
            for (name, value) in &container.labels {
                labels.set(name.as_str(), value.as_str());
            }
        }
        if let Some(pod) = facts.pod_container() {
            labels.set("pod", pod.pod.as_str());
            labels.set("namespace", pod.namespace.as_str());
            labels.set("container", pod.container.as_str());
        }
        labels.set(SERVICE_NAME_LABEL, shortened(&self.service_name(facts)));
        for (name, value) in self.extra.iter() {
            labels.set(name, value);
        }
        if self.wanted.as_ref().is_some_and(|rule| !rule.keeps(facts)) {
            labels.set(LEFT_OUT_LABEL, "true");
        }
        labels
    }

    fn service_name(&self, facts: &ProcessFacts) -> String {
        if facts.is_kernel {
            return KERNEL_SERVICE.to_owned();
        }
        let published = facts
            .published
            .iter()
            .find(|(key, value)| key == "service.name" && !value.is_empty());
        if let Some((_, name)) = published {
            return name.clone();
        }
        if let Some(name) = self.rules.iter().find_map(|rule| rule.apply(facts)) {
            return name;
        }
        let container = facts.container.as_deref();
        let app = container.and_then(|container| container.app.clone());
        let names = [
            app,
            facts.pod_container().map(|pod| pod.container.clone()),
            container.map(|container| container.name.clone()),
        ];
        let mut names = names.into_iter().flatten();
        if let Some(name) = names.find(|name| !name.is_empty()) {
            return name;
        }
        if let Some(unit) = &facts.cgroup.systemd_unit {
            return unit.clone();
        }
        let arguments: Vec<&str> = facts.arguments.iter().map(String::as_str).collect();
        let name = program_name(facts.executable_name(), &arguments);
        if name.is_empty() {
            return "unknown".to_owned();
        }
        name
    }
}

/// What a process publishes of itself. Which host it is on is not its to say: in a container it
/// knows only the container's name.
fn published_labels(published: &[(String, String)]) -> Labels {
    let wanted = published.iter().filter(|(key, _)| {
        !PER_PROCESS_ATTRIBUTES.contains(&key.as_str()) && key != "host.name" && key != "host"
    });
    let mut labels = Labels::default();
    for (key, value) in wanted.take(MOST_PUBLISHED) {
        let short = SHORT_ATTRIBUTES.iter().find(|(long, _)| long == key);
        let name = short.map_or(key.as_str(), |(_, short)| short);
        if name.len() <= LONGEST_VALUE {
            labels.set(name, shortened(value));
        }
    }
    labels
}

fn shortened(value: &str) -> &str {
    &value[..value.floor_char_boundary(LONGEST_VALUE)]
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::containers::ContainerFacts;
    use crate::labels::CgroupFacts;
    use crate::labels::PodContainer;

    fn python() -> ProcessFacts {
        ProcessFacts {
            pid: 7,
            executable: "/usr/bin/python3.11".to_owned(),
            arguments: vec!["python3".to_owned(), "/srv/app.py".to_owned()],
            ..ProcessFacts::default()
        }
    }

    fn service(facts: &ProcessFacts, rules: Vec<ServiceRule>) -> String {
        let labels = Labeler::new("h", Labels::default(), rules).labels(facts);
        labels
            .get(SERVICE_NAME_LABEL)
            .unwrap_or_default()
            .to_owned()
    }

    #[test]
    fn service_names_in_the_order_of_the_contract() {
        let mut facts = python();
        assert_eq!(service(&facts, vec![]), "python:app.py");
        facts.cgroup.systemd_unit = Some("webapp".to_owned());
        assert_eq!(service(&facts, vec![]), "webapp");
        facts.pod = Some(PodContainer {
            pod: "web-1".to_owned(),
            namespace: "shop".to_owned(),
            container: "web".to_owned(),
        });
        assert_eq!(service(&facts, vec![]), "web");
        let mut container = ContainerFacts {
            name: "k8s_web_1".to_owned(),
            ..ContainerFacts::default()
        };
        facts.container = Some(Arc::new(container.clone()));
        assert_eq!(service(&facts, vec![]), "web");
        container.app = Some("shop-web".to_owned());
        facts.container = Some(Arc::new(container));
        assert_eq!(service(&facts, vec![]), "shop-web");
        let rule = ServiceRule::new("configured").expect("a name");
        assert_eq!(service(&facts, vec![rule.clone()]), "configured");
        facts.published = vec![("service.name".to_owned(), "published".to_owned())];
        assert_eq!(service(&facts, vec![rule]), "published");
    }

    #[test]
    fn what_a_process_publishes_is_bounded_and_does_not_rename_the_host() {
        let mut facts = python();
        let many = (0..1000).map(|number| (format!("key{number}"), "é".repeat(3000)));
        let host = ("host.name".to_owned(), "3f2a".to_owned());
        facts.published = std::iter::once(host).chain(many).collect();
        facts.arguments = vec!["python3".to_owned(), "/x".repeat(5000)];
        let labels = Labeler::new("h", Labels::default(), vec![]).labels(&facts);
        assert_eq!(labels.get("host"), Some("h"));
        assert!(labels.iter().count() <= MOST_PUBLISHED + 3);
        assert!(labels.iter().all(|(_, value)| value.len() <= LONGEST_VALUE));
    }

    #[test]
    fn containers_have_the_names_that_their_runtime_gave_them() {
        let container = ContainerFacts {
            name: "db".to_owned(),
            image: "r.example:5000/postgres:16".to_owned(),
            ..ContainerFacts::default()
        };
        let facts = ProcessFacts {
            container: Some(Arc::new(container)),
            ..python()
        };
        let labels = Labeler::new("h", Labels::default(), vec![]).labels(&facts);
        assert_eq!(
            labels.to_string(),
            r#"{container="db", container.image.name="r.example:5000/postgres", container.image.tag="16", host="h", process_executable_name="python3.11", service_name="db"}"#
        );
    }

    #[test]
    fn pods_have_what_is_known_of_them() {
        let label = |name: &str, value: &str| (name.to_owned(), value.to_owned());
        let container = ContainerFacts {
            pod: Some(PodContainer {
                pod: "web-1".to_owned(),
                namespace: "shop".to_owned(),
                container: String::new(),
            }),
            labels: vec![label("workload", "web"), label("k8s.pod.label.team", "a")],
            ..ContainerFacts::default()
        };
        let facts = ProcessFacts {
            container: Some(Arc::new(container)),
            ..python()
        };
        let labeler = Labeler::new("h", Labels::default(), vec![]).on_node("node-1");
        // The container's name is not known yet.
        assert_eq!(
            labeler.labels(&facts).to_string(),
            r#"{host="h", k8s.pod.label.team="a", namespace="shop", node="node-1", pod="web-1", process_executable_name="python3.11", service_name="python:app.py", workload="web"}"#
        );
        let kernel = labeler.labels(&ProcessFacts::kernel(2));
        assert_eq!(kernel.get("node"), Some("node-1"));
    }

    #[test]
    fn kernel_threads_are_the_kernel() {
        let labels = Labeler::new("h", Labels::default(), vec![]).labels(&ProcessFacts::kernel(2));
        assert_eq!(labels.to_string(), r#"{host="h", service_name="kernel"}"#);
    }

    #[test]
    fn labels_are_there_where_they_exist() {
        let facts = ProcessFacts {
            cgroup: CgroupFacts {
                container_id: Some("abc".to_owned()),
                ..CgroupFacts::default()
            },
            published: vec![
                ("deployment.environment".to_owned(), "prod".to_owned()),
                ("process.pid".to_owned(), "7".to_owned()),
            ],
            ..python()
        };
        let extra = Labels::from_pairs([("zone", "eu-1"), ("host", "renamed")]);
        let labels = Labeler::new("h", extra, vec![]).labels(&facts);
        assert_eq!(
            labels.to_string(),
            r#"{container_id="abc", deployment.environment="prod", host="renamed", process_executable_name="python3.11", service_name="python:app.py", zone="eu-1"}"#
        );
    }
}
