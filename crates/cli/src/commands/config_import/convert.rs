//! Keys of Telegen to keys of ours.

use std::collections::BTreeMap;
use std::collections::BTreeSet;

use candela_model::FilterKind;
use candela_model::Filters;
use serde_json::Value as Node;

use super::meanings::LABELS;
use super::meanings::Meaning;
use super::meanings::WORKLOAD;
use super::meanings::is_of_profiling;
use super::meanings::meaning;
use super::source::Entry;
use crate::config::Value;
use crate::config::key_search;
use crate::config::keys::Kind;

const KINDS: &str = "agent.kinds";
const SERVER: &str = "agent.server";
const SHORTEST_WAIT: &str = "agent.min_block_time";

const LONGER_WAIT: &str =
    "agent.min_block_time is one for locks and all other waits: the shorter one is taken";

/// Where OTLP over HTTP takes profiles: we send them over gRPC, which has no paths.
const OTLP_PATHS: [&str; 2] = ["/v1development/profiles", "/v1/profiles"];

/// What stands before the key of a label of pods.
const POD_LABELS: &str = "target_labels.";

/// What became of it.
#[derive(Debug, Default)]
pub(super) struct Converted {
    /// By the path of the key.
    pub(super) settings: BTreeMap<&'static str, Value>,
    /// One line for each key without a meaning.
    pub(super) notes: Vec<String>,
    /// Sections that are not about profiling.
    pub(super) foreign: BTreeSet<String>,
    /// The kinds that were named, and whether they are wanted; cpu is unless it was switched off.
    kinds: BTreeMap<&'static str, bool>,
    /// Matchers of labels, all of which hold for what is kept.
    included: Vec<String>,
    /// Matchers of workloads, one of which holds for what is kept: a pod has one.
    workloads: Vec<String>,
    /// Keys of labels of pods that matchers are about.
    pod_labels: Vec<String>,
    /// Selectors of what is left out.
    excluded: Vec<String>,
    /// Filters of frames.
    hidden: Vec<String>,
    /// The shortest waits that are samples, in nanoseconds, with who says so.
    shortest_waits: Vec<(u64, Entry)>,
}

/// Converts all entries; of several for one key the last counts.
pub(super) fn convert(entries: &[Entry]) -> Converted {
    let mut converted = Converted::default();
    for entry in entries {
        converted.take(entry);
    }
    converted.set_kinds();
    converted.set_filters();
    converted.set_shortest_wait();
    converted
}

// === impl Converted ===

impl Converted {
    fn take(&mut self, entry: &Entry) {
        let path = entry.path.as_deref();
        let Some(meaning) = path.and_then(meaning) else {
            match path.filter(|path| !is_of_profiling(path)) {
                // A file of Telegen has much else: one line is enough for all of it.
                Some(path) => _ = self.foreign.insert(section_of(path).to_owned()),
                None => self.note(entry, "no key of Telegen's profiling that is known"),
            }
            return;
        };
        // Nothing is set by nothing.
        if entry.value.is_null() {
            return;
        }
        match meaning {
            Meaning::Key(path) => self.set(path, entry),
            Meaning::Server => self.set_server(entry),
            Meaning::Kinds(kinds) => self.take_kinds(kinds, entry),
            Meaning::PartOfKind(kind, reason) => {
                self.take_kinds(&[kind], entry);
                if self.kinds.get(kind) == Some(&true) {
                    self.note(entry, reason);
                }
            }
            Meaning::Included(label) => {
                let matcher = matcher(label, &self.texts(entry));
                self.included.extend(matcher);
            }
            Meaning::Workloads(label) => {
                let matcher = matcher(label, &self.texts(entry));
                if matcher.is_some() {
                    self.note(entry, WORKLOAD);
                }
                self.workloads.extend(matcher);
            }
            Meaning::PodLabels => self.take_pod_label(entry),
            Meaning::Excluded(label) => {
                let matcher = matcher(label, &self.texts(entry));
                self.excluded.extend(matcher.map(|it| format!("{{{it}}}")));
            }
            Meaning::Hidden => {
                for pattern in self.texts(entry) {
                    self.hide(entry, &pattern);
                }
            }
            Meaning::HiddenIf(value, filter) if text_of(&entry.value) == value => {
                self.hidden.push(filter.to_owned());
            }
            Meaning::HiddenIf(..) => {}
            Meaning::Always(ours, reason) if text_of(&entry.value) != ours => {
                self.note(entry, reason);
            }
            Meaning::Always(..) => {}
            Meaning::ShortestWait => match text_of(&entry.value).parse() {
                Ok(shortest_ns) => self.shortest_waits.push((shortest_ns, entry.clone())),
                Err(_) => self.note(entry, "left out: no number of nanoseconds"),
            },
            Meaning::Nothing(reason) => self.note(entry, reason),
        }
    }

    fn note(&mut self, entry: &Entry, reason: &str) {
        self.notes.push(format!("{}: {reason}", entry.shown));
    }

    /// Takes a pattern that the agent would take, too: it does not start with any other.
    fn hide(&mut self, entry: &Entry, pattern: &str) {
        let filter = format!("fn:^(?:{pattern})");
        let parsed = Filters::parse(&[(FilterKind::Hide, filter.as_str())]);
        match parsed {
            Ok(_) => self.hidden.push(filter),
            Err(error) => self.note(entry, &format!("left out: {error}")),
        }
    }

    fn set(&mut self, path: &'static str, entry: &Entry) {
        let key = key_search::find(path).expect("a test finds all keys of the table");
        match Value::from_node(key.kind, &entry.value) {
            Ok(value) => {
                self.settings.insert(path, value);
            }
            Err(problem) => self.note(entry, &format!("left out, for {path} {problem}")),
        }
    }

    fn set_server(&mut self, entry: &Entry) {
        let given = text_of(&entry.value);
        let mut url = match given.contains("://") {
            true => given.clone(),
            false => format!("http://{given}"),
        };
        for path in OTLP_PATHS {
            if let Some(base) = url.trim_end_matches('/').strip_suffix(path) {
                url = base.to_owned();
            }
        }
        if url.trim_end_matches('/').ends_with(":4318") {
            self.note(
                entry,
                "set as agent.server; candela sends over gRPC, which collectors take on port 4317",
            );
        }
        let value = Node::from(url);
        self.set(
            SERVER,
            &Entry {
                value,
                ..entry.clone()
            },
        );
    }

    fn take_kinds(&mut self, kinds: &[&'static str], entry: &Entry) {
        let is_wanted = match text_of(&entry.value).as_str() {
            "true" => true,
            "false" => false,
            _ => return self.note(entry, "left out: neither true nor false"),
        };
        // Wall time is two of them, and without it each may still be wanted.
        if kinds.len() > 1 && !is_wanted {
            return;
        }
        for kind in kinds {
            self.kinds.insert(kind, is_wanted);
        }
    }

    /// A label that pods must have, by its key behind that of Telegen.
    fn take_pod_label(&mut self, entry: &Entry) {
        let path = entry.path.as_deref().unwrap_or_default();
        let key = path.split_once(POD_LABELS).map(|(_, key)| key);
        let Some(key) = key.filter(|_| entry.value.is_string()) else {
            return self.note(entry, LABELS);
        };
        // Keys may have a slash, which names without quotes have not.
        let label = Node::from(format!("k8s.pod.label.{key}")).to_string();
        let matcher = matcher(&label, &[text_of(&entry.value)]);
        self.included.extend(matcher);
        self.pod_labels.push(key.to_owned());
    }

    /// The texts of a list; variables have them separated by commas.
    fn texts(&mut self, entry: &Entry) -> Vec<String> {
        match Value::from_node(Kind::List, &entry.value) {
            Ok(Value::List(texts)) => return texts,
            Ok(_) => {}
            Err(problem) => self.note(entry, &format!("left out: {problem}")),
        }
        Vec::new()
    }

    /// Telegen samples what all of its targets allow, each of which is one of some values; kinds of workloads are
    /// together one target.
    fn set_filters(&mut self) {
        // Each form of Telegen's may ask for the same.
        let mut known = BTreeSet::new();
        self.hidden.retain(|filter| known.insert(filter.clone()));
        let common = self.included.join(", ");
        let included: Vec<String> = match (self.workloads.as_slice(), common.as_str()) {
            ([], "") => Vec::new(),
            ([], common) => vec![format!("{{{common}}}")],
            (workloads, "") => workloads.iter().map(|it| format!("{{{it}}}")).collect(),
            (workloads, common) => {
                let both = workloads.iter().map(|it| format!("{{{common}, {it}}}"));
                both.collect()
            }
        };
        if !self.pod_labels.is_empty() {
            let keys = std::mem::take(&mut self.pod_labels);
            self.settings
                .insert("agent.kubernetes.pod_labels", Value::List(keys));
        }
        let lists = [
            ("agent.include", included),
            ("agent.exclude", std::mem::take(&mut self.excluded)),
            ("agent.hide", std::mem::take(&mut self.hidden)),
        ];
        for (path, texts) in lists.into_iter().filter(|(_, texts)| !texts.is_empty()) {
            let value = Value::from_node(Kind::Structure, &Node::from(texts));
            self.settings.insert(path, value.expect("it is a list"));
        }
    }

    /// Telegen has one for locks and one for all waits. The shorter one leaves out nothing that either would keep.
    fn set_shortest_wait(&mut self) {
        let waits = std::mem::take(&mut self.shortest_waits);
        let Some(shortest_ns) = waits.iter().map(|(wait_ns, _)| *wait_ns).min() else {
            return;
        };
        for (_, entry) in waits.iter().filter(|(wait_ns, _)| *wait_ns > shortest_ns) {
            self.note(entry, LONGER_WAIT);
        }
        let shortest = waits
            .into_iter()
            .find(|(wait_ns, _)| *wait_ns == shortest_ns);
        // As it is without the key.
        let Some((_, entry)) = shortest.filter(|_| shortest_ns > 0) else {
            return;
        };
        let value = Node::from(format!("{shortest_ns}ns"));
        self.set(SHORTEST_WAIT, &Entry { value, ..entry });
    }

    fn set_kinds(&mut self) {
        if self.kinds.is_empty() {
            return;
        }
        self.kinds.entry("cpu").or_insert(true);
        if !self.kinds.values().any(|is_wanted| *is_wanted) {
            self.settings
                .insert("agent.sampling", Value::Boolean(false));
            return;
        }
        // Telegen has no kind of its own for it: what is always on with us stays on.
        self.kinds.entry("fault").or_insert(true);
        let wanted = self.kinds.iter().filter(|(_, is_wanted)| **is_wanted);
        let wanted: Vec<String> = wanted.map(|(kind, _)| (*kind).to_owned()).collect();
        self.settings.insert(KINDS, Value::List(wanted));
    }
}

/// The first part of a path; of what stands beside profiling below `agent` the first two.
fn section_of(path: &str) -> &str {
    let parts = if path.starts_with("agent.") { 2 } else { 1 };
    let end = path.match_indices('.').nth(parts - 1);
    end.map_or(path, |(end, _)| &path[..end])
}

/// What a label must be to be one of some values; none without values.
fn matcher(label: &str, values: &[String]) -> Option<String> {
    match values {
        [] => None,
        [value] if !value.contains('*') => Some(format!("{label}={}", Node::from(value.as_str()))),
        values => {
            let patterns: Vec<String> = values.iter().map(|value| pattern(value)).collect();
            let pattern = patterns.join("|");
            Some(format!("{label}=~{}", Node::from(pattern)))
        }
    }
}

/// The regular expression of a text in which `*` stands for anything.
fn pattern(text: &str) -> String {
    let letters = text.chars().map(|letter| match letter {
        '*' => ".*".to_owned(),
        plain if plain.is_alphanumeric() || "_-/".contains(plain) => plain.to_string(),
        special => format!("\\{special}"),
    });
    letters.collect()
}

/// A value as variables have it.
fn text_of(value: &Node) -> String {
    match value {
        Node::String(text) => text.trim().to_owned(),
        other => other.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(path: &str, value: impl Into<Node>) -> Entry {
        Entry {
            path: Some(path.to_owned()),
            shown: path.to_owned(),
            value: value.into(),
        }
    }

    fn shown(converted: &Converted) -> Vec<String> {
        let settings = converted.settings.iter();
        settings
            .map(|(key, value)| format!("{key}={value}"))
            .collect()
    }

    #[test]
    fn the_last_value_counts() {
        let converted = convert(&[
            entry("agent.profiling.sample_rate", 99),
            entry("agent.profiling.sample_rate", "49"),
        ]);
        assert_eq!(shown(&converted), ["agent.rate=49"]);
        assert!(converted.notes.is_empty());
    }

    #[test]
    fn values_that_we_do_not_take_are_left_out() {
        let converted = convert(&[
            entry("profiling.cpu.sample_rate", 5000),
            entry("profiling.cpu.enabled", "perhaps"),
            entry("profiling.colour", "red"),
            entry("network.enabled", true),
            entry("network.port", 1),
            entry("agent.logs.enabled", true),
        ]);
        assert!(converted.settings.is_empty());
        let foreign: Vec<&str> = converted.foreign.iter().map(String::as_str).collect();
        assert_eq!(foreign, ["agent.logs", "network"]);
        assert_eq!(converted.notes.len(), 3, "{:?}", converted.notes);
        assert!(
            converted.notes[0].contains("agent.rate"),
            "{:?}",
            converted.notes
        );
    }

    #[test]
    fn kinds_are_those_that_are_wanted() {
        let kinds = |entries: &[Entry]| shown(&convert(entries));
        let off_cpu = entry("profiling.off_cpu.enabled", true);
        assert_eq!(kinds(&[off_cpu]), ["agent.kinds=cpu,fault,off-cpu"]);
        let wall = entry("profiling.wall.enabled", true);
        assert_eq!(kinds(&[wall]), ["agent.kinds=cpu,fault,off-cpu"]);
        let no_wall = entry("profiling.wall.enabled", false);
        assert!(kinds(&[no_wall]).is_empty());
        let only_locks = [
            entry("agent.profiling.cpu", false),
            entry("agent.profiling.mutex", true),
        ];
        assert_eq!(kinds(&only_locks), ["agent.kinds=fault,lock"]);
        let heaps = convert(&[entry("agent.profiling.memory", true)]);
        assert_eq!(shown(&heaps), ["agent.kinds=alloc,cpu,fault"]);
        assert!(
            heaps.notes[0].contains("record -e alloc"),
            "those of C: {:?}",
            heaps.notes
        );
        let no_heaps = convert(&[entry("profiling.memory.enabled", false)]);
        assert!(no_heaps.notes.is_empty(), "{:?}", no_heaps.notes);
        let nothing = [entry("agent.profiling.cpu", false)];
        assert_eq!(kinds(&nothing), ["agent.sampling=false"]);
    }

    #[test]
    fn targets_become_selectors() {
        let converted = convert(&[
            entry("profiling.target_process_names", vec!["web*", "db.main"]),
            entry("profiling.target_namespaces", vec!["shop"]),
            entry("profiling.exclude_namespaces", vec!["kube-*"]),
            entry(
                "agent.profiling.filters.exclude_patterns",
                vec!["runtime.*"],
            ),
            entry("agent.profiling.filters.min_samples", 3),
        ]);
        assert!(converted.notes.is_empty(), "{:?}", converted.notes);
        let lists = [
            r#"agent.exclude=["{namespace=~\"kube-.*\"}"]"#,
            r#"agent.hide=["fn:^(?:runtime.*)"]"#,
            r#"agent.include=["{process_executable_name=~\"web.*|db\\\\.main\", namespace=\"shop\"}"]"#,
            "agent.min_samples=3",
        ];
        assert_eq!(shown(&converted), lists);
    }

    #[test]
    fn the_shorter_of_two_least_waits_counts() {
        let off_cpu = |value: &str| entry("profiling.off_cpu.min_block_time_ns", value);
        let mutex = entry("profiling.mutex.contention_threshold_ns", 2_000_000);
        let both = convert(&[mutex.clone(), off_cpu("500000")]);
        assert_eq!(shown(&both), ["agent.min_block_time=500us"]);
        let note = format!("profiling.mutex.contention_threshold_ns: {LONGER_WAIT}");
        assert_eq!(both.notes, [note]);
        let one = convert(std::slice::from_ref(&mutex));
        assert_eq!(shown(&one), ["agent.min_block_time=2ms"]);
        assert!(one.notes.is_empty(), "{:?}", one.notes);
        let none = convert(&[off_cpu("0")]);
        assert!(shown(&none).is_empty() && none.notes.is_empty());
        let all_waits = convert(&[mutex, off_cpu("0")]);
        assert!(shown(&all_waits).is_empty(), "{:?}", shown(&all_waits));
        assert_eq!(all_waits.notes.len(), 1);
        let wrong = convert(&[off_cpu("1ms"), off_cpu("9999999999999999")]);
        assert!(shown(&wrong).is_empty());
        assert_eq!(wrong.notes.len(), 2, "{:?}", wrong.notes);
    }

    #[test]
    fn workloads_and_labels_of_pods_become_selectors() {
        let converted = convert(&[
            entry("profiling.target_deployments", vec!["web-*"]),
            entry("profiling.target_statefulsets", vec!["db"]),
            entry("profiling.target_daemonsets", Vec::<String>::new()),
            entry("profiling.target_labels.app.kubernetes.io/name", "shop"),
        ]);
        let lists = [
            r#"agent.include=["{\"k8s.pod.label.app.kubernetes.io/name\"=\"shop\", k8s.deployment.name=~\"web-.*\"}","{\"k8s.pod.label.app.kubernetes.io/name\"=\"shop\", k8s.statefulset.name=\"db\"}"]"#,
            "agent.kubernetes.pod_labels=app.kubernetes.io/name",
        ];
        assert_eq!(shown(&converted), lists);
        assert_eq!(converted.notes.len(), 2, "{:?}", converted.notes);
        assert!(converted.notes[0].contains("agent.kubernetes.node"));
        let variable = convert(&[entry("profiling.target_labels", "app=shop")]);
        assert!(variable.settings.is_empty());
        assert!(
            variable.notes[0].contains("pod_labels"),
            "{:?}",
            variable.notes
        );
    }

    #[test]
    fn frames_of_the_kernel_are_hidden_where_they_are_not_wanted() {
        let (documented, read) = (
            "agent.profiling.symbols.include_kernel",
            "profiling.exclude_kernel",
        );
        let wanted = convert(&[entry(documented, true), entry(read, false)]);
        assert!(shown(&wanted).is_empty() && wanted.notes.is_empty());
        let both = convert(&[entry(documented, false), entry(read, "true")]);
        assert_eq!(shown(&both), [r#"agent.hide=["kind:kernel"]"#]);
        assert!(both.notes.is_empty(), "{:?}", both.notes);
    }

    #[test]
    fn patterns_that_are_none_are_left_out() {
        let path = "agent.profiling.filters.exclude_patterns";
        let converted = convert(&[entry(path, vec!["((", "main"])]);
        assert_eq!(shown(&converted), [r#"agent.hide=["fn:^(?:main)"]"#]);
        assert_eq!(converted.notes.len(), 1, "{:?}", converted.notes);
        let note = &converted.notes[0];
        assert!(note.contains("left out: ") && note.contains("(("), "{note}");
    }

    #[test]
    fn endpoints_become_the_server() {
        for (given, server, notes) in [
            ("collector:4317", "http://collector:4317", 0),
            (
                "https://c.example/v1development/profiles",
                "https://c.example",
                0,
            ),
            (
                "http://localhost:4318/v1/profiles",
                "http://localhost:4318",
                1,
            ),
        ] {
            let converted = convert(&[entry("otlp.profiles.endpoint", given)]);
            assert_eq!(shown(&converted), [format!("agent.server={server}")]);
            assert_eq!(converted.notes.len(), notes, "{given}");
        }
    }
}
