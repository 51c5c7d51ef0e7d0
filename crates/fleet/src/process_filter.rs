//! Whose samples a `perf_collector` keeps (CH-17): a field of ours, `process_filter`.

use crate::fields::Fields;
use crate::json::Json;
use crate::object::ObjectWriter;
use crate::path::DocumentPath;
use crate::report::Report;

const NAMES: [&str; 4] = ["cgroup", "cmdline", "comm", "pod_label"];

/// Patterns, in which `*` stands for anything; the rest is compared letter by letter.
///
/// A process is kept when, of each list that is there, one pattern covers what it has. An empty list
/// is as none.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ProcessFilter {
    /// Of the path of the cgroup, such as `/kubepods.slice/*`.
    pub cgroup: Option<Vec<String>>,
    /// Of the command line, its words with a space between them.
    pub cmdline: Option<Vec<String>>,
    /// Of the name of the process in the kernel, at most 15 bytes.
    pub comm: Option<Vec<String>>,
    /// Of a label of the pod, `NAME=VALUE`.
    pub pod_label: Option<Vec<String>>,
}

/// What is known of a process.
#[derive(Clone, Copy, Debug, Default)]
pub struct ProcessFacts<'process> {
    /// The path of its cgroup.
    pub cgroup: &'process str,
    /// Its command line, words with a space between them.
    pub cmdline: &'process str,
    /// Its name in the kernel.
    pub comm: &'process str,
    /// The labels of its pod, `NAME=VALUE`.
    pub pod_labels: &'process [String],
}

impl ProcessFilter {
    /// Whether samples of a process are kept.
    #[must_use]
    pub fn keeps(&self, process: &ProcessFacts<'_>) -> bool {
        let one_covers = |patterns: &Option<Vec<String>>, value: &str| {
            let patterns = patterns.as_deref().unwrap_or_default();
            patterns.is_empty() || patterns.iter().any(|pattern| covers(pattern, value))
        };
        let labels = self.pod_label.as_deref().unwrap_or_default();
        let has_label = labels.is_empty()
            || labels.iter().any(|pattern| {
                let covered = |label: &String| covers(pattern, label);
                process.pod_labels.iter().any(covered)
            });
        has_label
            && one_covers(&self.cgroup, process.cgroup)
            && one_covers(&self.cmdline, process.cmdline)
            && one_covers(&self.comm, process.comm)
    }

    /// Whether it asks for labels of pods, which only Kubernetes knows.
    #[must_use]
    pub fn has_pod_labels(&self) -> bool {
        self.pod_label.as_ref().is_some_and(|it| !it.is_empty())
    }

    pub(crate) fn read(json: &Json, path: &DocumentPath, report: &mut Report) -> Option<Self> {
        let fields = Fields::of(json, path, &NAMES, report)?;
        fields.refuse_unknown(&NAMES, report);
        let filter = Self {
            cgroup: fields.texts("cgroup", report),
            cmdline: fields.texts("cmdline", report),
            comm: fields.texts("comm", report),
            pod_label: fields.texts("pod_label", report),
        };
        for (index, label) in filter.pod_label.iter().flatten().enumerate() {
            let message = match label.split_once('=') {
                None => {
                    format!("{label:?} has no '='; write NAME=VALUE, or {label}=* for any value")
                }
                // Kubernetes is asked for labels by their names.
                Some((name, _)) if name.contains('*') => {
                    format!(
                        "{label:?} has a star in the name of the label; write the name, as in app=*"
                    )
                }
                Some(_) => continue,
            };
            report.problem(path.key("pod_label").index(index), message);
        }
        Some(filter)
    }

    pub(crate) fn to_json(&self) -> Json {
        ObjectWriter::default()
            .texts("cgroup", self.cgroup.as_deref())
            .texts("cmdline", self.cmdline.as_deref())
            .texts("comm", self.comm.as_deref())
            .texts("pod_label", self.pod_label.as_deref())
            .finish()
    }
}

/// Each part between stars is taken where it stands first: no later place would leave more for the rest.
fn covers(pattern: &str, value: &str) -> bool {
    let mut parts = pattern.split('*');
    let Some(mut rest) = value.strip_prefix(parts.next().unwrap_or_default()) else {
        return false;
    };
    let Some(last) = parts.next_back() else {
        return rest.is_empty();
    };
    for part in parts {
        let Some(start) = rest.find(part) else {
            return false;
        };
        rest = &rest[start + part.len()..];
    }
    rest.ends_with(last)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stars_stand_for_anything() {
        for (pattern, value) in [
            ("api", "api"),
            ("*", ""),
            ("a*", "a"),
            ("*/kubepods*", "/sys/kubepods.slice"),
            ("a*b*c", "aXbXbc"),
            ("**", "x"),
            ("", ""),
        ] {
            assert!(covers(pattern, value), "{pattern} {value}");
        }
        for (pattern, value) in [
            ("api", "api2"),
            ("a*a", "a"),
            ("a*b*c", "acb"),
            ("", "x"),
            ("*b", "ba"),
        ] {
            assert!(!covers(pattern, value), "{pattern} {value}");
        }
    }

    #[test]
    fn every_list_that_is_there_must_hold() {
        let filter = ProcessFilter {
            comm: Some(vec!["api".to_owned(), "worker*".to_owned()]),
            pod_label: Some(vec!["app=shop".to_owned()]),
            cmdline: Some(Vec::new()),
            ..ProcessFilter::default()
        };
        let labels = ["app=shop".to_owned(), "x=y".to_owned()];
        let process = |comm| ProcessFacts {
            comm,
            pod_labels: &labels,
            ..ProcessFacts::default()
        };
        assert!(filter.keeps(&process("worker-1")));
        assert!(!filter.keeps(&process("bash")));
        let without_pod = ProcessFacts {
            comm: "api",
            ..ProcessFacts::default()
        };
        assert!(!filter.keeps(&without_pod));
        assert!(ProcessFilter::default().keeps(&without_pod));
    }
}
