//! Whose samples a dump has.

use candela_agent::AgentOptions;
use candela_agent::ProcessFacts;
use candela_agent::ProcessRule;
use candela_fleet::ProcessFilter;

use crate::error::DaemonError;
use crate::notes::Notes;

/// What the agent calls a chosen label of a pod.
const POD_LABEL: &str = "k8s.pod.label.";

/// The rule of a filter; none where it keeps everything.
pub(crate) fn process_rule(filter: &ProcessFilter) -> Option<ProcessRule> {
    let lists = [
        &filter.cgroup,
        &filter.cmdline,
        &filter.comm,
        &filter.pod_label,
    ];
    let is_empty = |list: &&Option<Vec<String>>| list.as_ref().is_none_or(Vec::is_empty);
    if lists.iter().all(is_empty) {
        return None;
    }
    let filter = filter.clone();
    Some(ProcessRule::new(move |process| keeps(&filter, process)))
}

/// The keys of labels of pods that a filter needs to know.
///
/// # Errors
/// [`DaemonError::Impossible`] for a pattern whose key has a star: the agent chooses labels by their keys.
pub(crate) fn pod_label_keys(filter: &ProcessFilter) -> Result<Vec<String>, DaemonError> {
    let patterns = filter.pod_label.iter().flatten();
    let keys = patterns.map(|pattern| {
        let key = pattern.split('=').next().unwrap_or_default();
        if key.contains('*') {
            return Err(DaemonError::Impossible {
                reason: format!(
                    "process_filter.pod_label {pattern:?} has a star before '='; write the whole key"
                ),
            });
        }
        Ok(key.to_owned())
    });
    keys.collect()
}

/// Says when labels are asked for and nobody on this host knows any: the dumps are empty then, and whole.
pub(crate) fn tell_unknown_labels(filter: &ProcessFilter, options: &AgentOptions, notes: &Notes) {
    let sockets = &options.container_sockets;
    if filter.has_pod_labels() && !options.kubernetes.may_know_pods(sockets) {
        let note = "process_filter.pod_label keeps nothing: nobody tells this host the labels of pods; set agent.kubernetes.node \
             in a build with kube, or have a runtime of Kubernetes among agent.container_sockets";
        notes.set("process_filter.pod_label", note.to_owned());
    }
}

fn keeps(filter: &ProcessFilter, process: &ProcessFacts) -> bool {
    let labels = process.container.as_ref().map(|container| {
        let labels = container.labels.iter();
        let labels = labels.filter_map(|(name, value)| {
            let key = name.strip_prefix(POD_LABEL)?;
            Some(format!("{key}={value}"))
        });
        labels.collect::<Vec<String>>()
    });
    filter.keeps(&candela_fleet::ProcessFacts {
        cgroup: &process.cgroup.path,
        cmdline: &process.arguments.join(" "),
        comm: &process.command,
        pod_labels: &labels.unwrap_or_default(),
    })
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use candela_agent::ContainerFacts;

    use super::*;

    fn patterns(text: &str) -> Option<Vec<String>> {
        Some(vec![text.to_owned()])
    }

    #[test]
    fn every_fact_reaches_its_list() {
        let labels = [("k8s.pod.label.app", "shop"), ("workload", "shop-web")];
        let labels = labels.map(|(name, value)| (name.to_owned(), value.to_owned()));
        let mut process = ProcessFacts {
            command: "api".to_owned(),
            arguments: vec!["/srv/api".to_owned(), "--port=1".to_owned()],
            container: Some(Arc::new(ContainerFacts {
                labels: labels.into(),
                ..ContainerFacts::default()
            })),
            ..ProcessFacts::default()
        };
        process.cgroup.path = "/kubepods.slice/a.scope".to_owned();
        let none = ProcessFilter::default();
        let cases = [
            ProcessFilter {
                comm: patterns("api"),
                ..none.clone()
            },
            ProcessFilter {
                cmdline: patterns("/srv/api *"),
                ..none.clone()
            },
            ProcessFilter {
                cgroup: patterns("/kubepods*"),
                ..none.clone()
            },
            ProcessFilter {
                pod_label: patterns("app=shop"),
                ..none.clone()
            },
        ];
        let other = ProcessFacts::default();
        for filter in &cases {
            let rule = process_rule(filter).expect("it has a list");
            assert!(rule.keeps(&process), "{filter:?}");
            assert!(!rule.keeps(&other), "{filter:?}");
        }
        assert!(process_rule(&none).is_none());
        let workload = ProcessFilter {
            pod_label: patterns("workload=*"),
            ..none
        };
        assert!(!process_rule(&workload).expect("a list").keeps(&process));
    }

    #[test]
    fn labels_that_nobody_knows_are_told() {
        let folder = tempfile::tempdir().expect("a folder");
        let socket = folder.path().join("cri.sock");
        let options = AgentOptions {
            container_sockets: vec![candela_agent::ContainerSocket::Cri(socket.clone())],
            ..AgentOptions::default()
        };
        let told = |filter: &ProcessFilter| {
            let notes = Notes::default();
            tell_unknown_labels(filter, &options, &notes);
            notes.all()
        };
        let labels = ProcessFilter {
            pod_label: patterns("app=shop"),
            ..ProcessFilter::default()
        };
        assert_eq!(told(&ProcessFilter::default()), [""; 0]);
        let said = told(&labels);
        assert!(
            said.len() == 1 && said[0].starts_with("process_filter.pod_label keeps nothing"),
            "{said:?}"
        );
        std::fs::write(&socket, "").expect("written");
        assert_eq!(told(&labels), [""; 0], "somebody may");
    }

    #[test]
    fn keys_of_pod_labels_are_whole() {
        let filter = |pattern| ProcessFilter {
            pod_label: patterns(pattern),
            ..ProcessFilter::default()
        };
        assert_eq!(pod_label_keys(&filter("app=*")).expect("a key"), ["app"]);
        let error = pod_label_keys(&filter("a*=b")).expect_err("a star");
        assert!(error.to_string().contains("a*=b"), "{error}");
    }
}
